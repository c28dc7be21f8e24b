"""Records one small model once sound and once per fault, each below its own directory.

    cause_models.py DIRECTORY TASK

The fault sits inside a module whose arithmetic is done by NumPy, which no recorder sees, so the
module is the first wrong call and its tensors are all the evidence.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from plumbline.pytorch import PrecisionDebugger

ROWS, WIDTH = 12, 32
Array = np.ndarray
Edit = Callable[[Array, Array, Array], Array]


def block_zero(x: Array, *_: Array) -> Array:
    y = x.copy()
    y[:, 8:16] = 0
    return y


def swapped(x: Array, *_: Array) -> Array:
    y = x.copy()
    y[[3, 7]] = y[[7, 3]]
    return y


def nan_lane(x: Array, *_: Array) -> Array:
    y = x.copy()
    y[:, 5] = np.nan
    return y


def as_bfloat16(x: Array, *_: Array) -> Array:
    return torch.from_numpy(x.copy()).to(torch.bfloat16).to(torch.float32).numpy()


def truncated(x: Array, *_: Array) -> Array:
    return (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def dropped(x: Array, *_: Array) -> Array:
    mask = np.random.default_rng(5).random(x.shape) >= 0.25
    return (x * mask / 0.75).astype(np.float32)


def other_numbers(x: Array, *_: Array) -> Array:
    return (np.random.default_rng(6).standard_normal(x.shape) * x.std() + x.mean()).astype(x.dtype)


# Fault -> what the module yields from its sound result, its input and its parameter.
FAULTS: dict[str, Edit] = {
    "sound": lambda y, x, b: y,
    "scale": lambda y, x, b: y * np.float32(WIDTH**-0.5),
    "sign": lambda y, x, b: -y,
    "offset": lambda y, x, b: y + np.float32(0.625),
    "missing-addend": lambda y, x, b: y - x,
    "extra-addend": lambda y, x, b: y + b,
    "shifted": lambda y, x, b: np.roll(y, 1, axis=0),
    "permuted": swapped,
    "zeroed-block": block_zero,
    "nonfinite": nan_lane,
    "saturated": lambda y, x, b: np.clip(y, -0.75, 0.75),
    "narrowed": as_bfloat16,
    "truncated": truncated,
    "dropout": dropped,
    "random": other_numbers,
    "not-applied": lambda y, x, b: x,
}


class Edited(torch.nn.Module):
    """tanh(x) + x + b, spoiled by the fault in force."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.b = torch.nn.Parameter(torch.randn(WIDTH, generator=generator))
        self.fault = "sound"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values, bias = x.detach().numpy(), self.b.detach().numpy()
        sound = np.tanh(values) + values + bias
        return torch.from_numpy(FAULTS[self.fault](sound, values, bias).astype(np.float32))


class Doubled(torch.autograd.Function):
    """The identity; its gradient is multiplied."""

    @staticmethod
    def forward(ctx, x, factor):  # type: ignore[no-untyped-def]
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient * ctx.factor, None


class Backward(torch.nn.Module):
    """Sound forward; the gradient counted twice when the fault is in force."""

    factor = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Doubled.apply(x, self.factor)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, WIDTH)
        self.doubled = Backward()
        self.edited = Edited()
        self.last = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.edited(self.doubled(self.first(x)))).sum() + (
            self.doubled(self.first(x)) ** 2
        ).sum()


def main() -> None:
    directory, task = Path(sys.argv[1]), sys.argv[2]
    config = directory / "config.json"
    config.write_text(json.dumps(
        {"task": task, "level": "L0", "dump_path": str(directory / "out"), task: {}}))
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    net = Net()
    x = torch.randn(ROWS, WIDTH)
    debugger = PrecisionDebugger(str(config))
    names = [*FAULTS, "backward-twice"]
    for name in names:
        net.edited.fault = name if name in FAULTS else "sound"
        Backward.factor = 2.0 if name == "backward-twice" else 1.0
        debugger.start(net)
        net(x).backward()
        debugger.stop()
        debugger.step()
        net.zero_grad()
    for step, name in enumerate(names):
        shutil.move(directory / "out" / f"step{step}", directory / name)
    os.rmdir(directory / "out")


if __name__ == "__main__":
    main()
