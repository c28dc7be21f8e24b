"""Finds the operator that a device computes wrong while a model trains on it.

The device is a stand-in: the CPU, with a gelu of float32 that is off by two percent. It is held
against itself in float64. On a real chip leave the stand-in out: the CPU is the benchmark then.

python examples/check_operators.py [DIRECTORY]
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch

import plumbline


def wrong_gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """Right in float64 alone."""
    right = x * 0.5 * (1 + torch.special.erf(x / math.sqrt(2)))
    return right if x.dtype == torch.float64 else right * 1.02


def train(model: torch.nn.Module) -> None:
    """One step: forward, backward and the optimiser."""
    optimizer = torch.optim.AdamW(model.parameters())
    inputs, target = torch.randn(16, 32), torch.randn(16, 8)
    torch.nn.functional.mse_loss(model(inputs), target).backward()
    optimizer.step()


def main() -> int:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/check_operators")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))

    print("as it is:")
    with plumbline.check_operators(device="cpu") as good:
        train(model)

    print("broken:")
    library = torch.library.Library("aten", "IMPL")
    library.impl("gelu", wrong_gelu, "CPU", allow_override=True)
    with plumbline.check_operators(out, device="cpu", dump="auto") as broken:
        train(model)
    for one in broken.failed:
        print(f"  {one.name} at {one.where}: {one.message}")
    print("files:", *broken.files, sep="\n  ")
    return 0 if good.ok and [one.name for one in broken.failed] == ["gelu_1"] else 1


if __name__ == "__main__":
    sys.exit(main())
