"""Records training under DeepSpeed's ZeRO stages 1, 2 and 3, one after the other.

DS_ACCELERATOR=cpu torchrun --nproc-per-node 2 examples/record_deepspeed.py DIRECTORY|none
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import deepspeed
import torch
from torch.nn import functional

SETTINGS = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 2,
    "gradient_clipping": 1.0,
    "zero_allow_untested_optimizer": True,  # torch's own AdamW
}
# Where gradients lie until they are reduced. Calls that take parts of it are recorded with all of
# it: the default, 500 million elements, takes 0.4 s to read each time.
ZERO = {
    "reduce_bucket_size": 100_000,
    # Else stage 3 keeps the parameters of so small a model whole.
    "stage3_param_persistence_threshold": 0,
    "stage3_max_reuse_distance": 0,
    "stage3_prefetch_bucket_size": 0,
}


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm = torch.nn.Linear(8, 16), torch.nn.LayerNorm(16)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(functional.gelu(self.up(x))))


def fingerprint(net: Net) -> str:
    """A hash of all weights, which stage 3 has to gather first."""
    digest = hashlib.sha256()
    with deepspeed.zero.GatheredParameters(list(net.parameters())):
        for parameter in net.parameters():
            digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def train(stage: int, debugger: Any) -> None:
    torch.manual_seed(1)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    engine, *_ = deepspeed.initialize(model=net, optimizer=optimizer, config={
        **SETTINGS, "zero_optimization": {"stage": stage, **ZERO}})
    batches = torch.Generator().manual_seed(torch.distributed.get_rank())
    for _ in range(2):
        if debugger is not None:
            debugger.start(model=engine)
        for _ in range(SETTINGS["gradient_accumulation_steps"]):
            x = torch.randn(2, 8, generator=batches).to(engine.device)
            y = torch.randn(2, 4, generator=batches).to(engine.device)
            loss = functional.mse_loss(engine(x), y)
            engine.backward(loss)
            engine.step()  # steps the optimizer behind the last of the micro-batches
        if debugger is not None:
            debugger.stop()
            debugger.step()
        print("loss", stage, float(loss.detach()).hex())
    print("weights", stage, fingerprint(net))
    engine.destroy()


def main() -> None:
    debugger = None
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
    # The bucket is memory that nobody wrote: filled, it holds the same in every run.
    torch.use_deterministic_algorithms(True)
    deepspeed.init_distributed()
    for stage in (1, 2, 3):
        train(stage, debugger)


if __name__ == "__main__":
    main()
