"""One network in MindSpore and in PyTorch with equal weights; trains one step of either.

    python ms_and_torch.py mindspore|graph|pytorch LEVEL OUT [wrong]

`graph` is MindSpore's GRAPH_MODE, whose kernels are dumped at level L2. `wrong` scales the second
layer's input in MindSpore by 1.01.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def numbers() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    shapes = {"x": (4, 6), "first.weight": (8, 6), "first.bias": (8,), "second.weight": (8, 8),
              "second.bias": (8,), "last.weight": (3, 8), "last.bias": (3,)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def in_mindspore(level: str, out: str, scale: float, as_graph: bool) -> None:
    import mindspore as ms
    from mindspore import Parameter, Tensor, mint, nn

    from plumbline.mindspore import PrecisionDebugger

    ms.set_context(mode=ms.GRAPH_MODE if as_graph else ms.PYNATIVE_MODE)

    values = numbers()

    class Linear(nn.Cell):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.weight = Parameter(Tensor(values[f"{name}.weight"]), name=f"{name}.weight")
            self.bias = Parameter(Tensor(values[f"{name}.bias"]), name=f"{name}.bias")

        def construct(self, x: Tensor) -> Tensor:
            return mint.add(mint.matmul(x, mint.transpose(self.weight, 0, 1)), self.bias)

    class Block(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Linear("first"), Linear("second")

        def construct(self, x: Tensor) -> Tensor:
            relu = mint.nn.functional.relu
            return relu(self.second(mint.mul(relu(self.first(x)), scale)))

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.block, self.last = Block(), Linear("last")

        def construct(self, x: Tensor) -> Tensor:
            return mint.mean(mint.square(self.last(self.block(x))))

    net = Net()
    debugger = PrecisionDebugger(task="tensor", dump_path=out, level=level)
    gradient = ms.value_and_grad(net, None, net.trainable_params())
    debugger.start(net)
    gradient(Tensor(values["x"]))
    debugger.stop()


def in_torch(level: str, out: str) -> None:
    import torch
    from torch import nn

    from plumbline.pytorch import PrecisionDebugger

    values = {name: torch.from_numpy(value) for name, value in numbers().items()}

    class Linear(nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.weight = nn.Parameter(values[f"{name}.weight"])
            self.bias = nn.Parameter(values[f"{name}.bias"])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.add(torch.matmul(x, torch.transpose(self.weight, 0, 1)), self.bias)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Linear("first"), Linear("second")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            relu = nn.functional.relu
            return relu(self.second(torch.mul(relu(self.first(x)), 1.0)))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block, self.last = Block(), Linear("last")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.mean(torch.square(self.last(self.block(x))))

    net = Net()
    debugger = PrecisionDebugger(task="tensor", dump_path=out, level=level)
    debugger.start(net)
    # With a gradient of its own, so that PyTorch does not call ones_like for one.
    net(values["x"]).backward(torch.tensor(1.0))
    debugger.stop()


if __name__ == "__main__":
    framework, level, out = sys.argv[1:4]
    if framework == "pytorch":
        in_torch(level, out)
    else:
        in_mindspore(level, out, 1.01 if sys.argv[4:] else 1.0, framework == "graph")
