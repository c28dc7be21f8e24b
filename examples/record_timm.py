"""Records the training of a small vision transformer of timm.

python examples/record_timm.py DIRECTORY|none
"""

from __future__ import annotations

import sys

import timm
import torch
from small_llama import fingerprint


def main() -> None:
    debugger = None
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
    torch.manual_seed(0)
    model = timm.create_model(  # of two layers, with random weights
        "vit_tiny_patch16_224", img_size=32, patch_size=8, embed_dim=16, depth=2, num_heads=2,
        num_classes=5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        pictures, classes = torch.randn(4, 3, 32, 32), torch.randint(0, 5, (4,))
        if debugger is not None:
            debugger.start(model=model)
        torch.nn.functional.cross_entropy(model(pictures), classes).backward()
        optimizer.step()
        optimizer.zero_grad()
        if debugger is not None:
            debugger.stop()
            debugger.step()
    print("weights", fingerprint(model))


if __name__ == "__main__":
    main()
