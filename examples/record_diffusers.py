"""Records the training of a small U-Net of diffusers, and the steps that make a picture of noise.

python examples/record_diffusers.py DIRECTORY|none
"""

from __future__ import annotations

import sys

import torch
from diffusers import DDIMScheduler, UNet2DModel
from small_llama import fingerprint


def make() -> UNet2DModel:
    """Two stages, attention in the second; nothing is downloaded."""
    torch.manual_seed(0)
    return UNet2DModel(
        sample_size=8, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        attention_head_dim=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"))


def main() -> None:
    debugger = None
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
    model = make()
    scheduler = DDIMScheduler(num_train_timesteps=20)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        clean, noise = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)
        times = torch.randint(0, 20, (2,))
        if debugger is not None:
            debugger.start(model=model)
        guess = model(scheduler.add_noise(clean, noise, times), times).sample
        torch.nn.functional.mse_loss(guess, noise).backward()
        optimizer.step()
        optimizer.zero_grad()
        if debugger is not None:
            debugger.stop()
            debugger.step()
    scheduler.set_timesteps(2)
    picture = torch.randn(1, 3, 8, 8)
    for time in scheduler.timesteps:
        if debugger is not None:
            debugger.start(model=model)
        with torch.no_grad():
            picture = scheduler.step(model(picture, time).sample, time, picture).prev_sample
        if debugger is not None:
            debugger.stop()
            debugger.step()
    print("weights", fingerprint(model), picture.double().sum().item().hex())


if __name__ == "__main__":
    main()
