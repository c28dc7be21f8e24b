"""Convolution, batch norm, attention and LSTM in MindSpore and in PyTorch with equal weights.

    python layers_in_both.py mindspore|pytorch LEVEL OUT [wrong]

Trains one step of either. `wrong` scales the values of the attention in MindSpore by 1.02, and adds
1e-4 to the gradient of the convolution's bias in PyTorch. The gradients of that bias and of the
keys' are zero but for rounding: the normalisation or the softmax behind takes away what is the same
everywhere.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

WIDTH, STEPS, HIDDEN = 8, 3, 6
SHAPES = {
    "x": (2, 3, 6, 4), "conv.weight": (4, 3, 3, 3), "conv.bias": (4,),
    "bn.weight": (4,), "bn.bias": (4,), "attention.query.weight": (WIDTH, WIDTH),
    "attention.query.bias": (WIDTH,), "attention.key.weight": (WIDTH, WIDTH),
    "attention.key.bias": (WIDTH,),
    "attention.value.weight": (WIDTH, WIDTH),
    "attention.value.bias": (WIDTH,), "lstm.weight_ih": (4 * HIDDEN, WIDTH),
    "lstm.weight_hh": (4 * HIDDEN, HIDDEN), "lstm.bias_ih": (4 * HIDDEN,),
    "lstm.bias_hh": (4 * HIDDEN,), "head.weight": (3, HIDDEN), "head.bias": (3,),
}
# Parameters whose names MindSpore has otherwise.
IN_MINDSPORE = {"bn.weight": "bn.gamma", "bn.bias": "bn.beta"}


def numbers() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {name: (0.5 * rng.standard_normal(shape)).astype(np.float32)
            for name, shape in SHAPES.items()}


def in_mindspore(level: str, out: str, scale: float) -> None:
    import mindspore as ms
    from mindspore import Tensor, mint, nn

    from plumbline.mindspore import PrecisionDebugger

    class Attention(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.value = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)
            self.key = nn.Dense(WIDTH, WIDTH)

        def construct(self, x: Tensor) -> Tensor:
            scores = mint.matmul(self.query(x), mint.transpose(self.key(x), 1, 2))
            weights = mint.nn.functional.softmax(mint.mul(scores, 0.35), dim=-1)
            return mint.matmul(weights, mint.mul(self.value(x), scale))

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, pad_mode="pad", padding=1, has_bias=True)
            self.bn, self.relu = nn.BatchNorm2d(4), nn.ReLU()
            self.attention, self.lstm = Attention(), nn.LSTMCell(WIDTH, HIDDEN)
            self.head = nn.Dense(HIDDEN, 3)

        def construct(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
            y = self.relu(self.bn(self.conv(x)))
            y = self.attention(mint.reshape(y, (2, STEPS * 4, WIDTH)))
            for step in range(STEPS):
                h, c = self.lstm(y[:, step], (h, c))
            return mint.mean(mint.square(self.head(h)))

    values = numbers()
    debugger = PrecisionDebugger(task="tensor", dump_path=out, level=level)
    net = Net()
    net.set_train()
    parameters = dict(net.parameters_and_names())
    for name, value in values.items():
        if name != "x":
            parameters[IN_MINDSPORE.get(name, name)].set_data(Tensor(value))
    state = Tensor(np.zeros((2, HIDDEN), np.float32))
    gradient = ms.value_and_grad(net, None, net.trainable_params())
    debugger.start(net)
    gradient(Tensor(values["x"]), state, state)
    debugger.stop()


def in_torch(level: str, out: str, is_wrong: bool) -> None:
    import torch
    from torch import nn

    from plumbline.pytorch import PrecisionDebugger

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.value = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.key = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scores = torch.matmul(self.query(x), torch.transpose(self.key(x), 1, 2))
            weights = nn.functional.softmax(torch.mul(scores, 0.35), dim=-1)
            return torch.matmul(weights, torch.mul(self.value(x), 1.0))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, padding=1)
            self.bn, self.relu = nn.BatchNorm2d(4), nn.ReLU()
            self.attention, self.lstm = Attention(), nn.LSTMCell(WIDTH, HIDDEN)
            self.head = nn.Linear(HIDDEN, 3)

        def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
            y = self.relu(self.bn(self.conv(x)))
            y = self.attention(torch.reshape(y, (2, STEPS * 4, WIDTH)))
            for step in range(STEPS):
                h, c = self.lstm(y[:, step], (h, c))
            return torch.mean(torch.square(self.head(h)))

    values = {name: torch.from_numpy(value) for name, value in numbers().items()}
    net = Net()
    net.load_state_dict({name: value for name, value in values.items() if name != "x"},
                        strict=False)
    if is_wrong:
        net.get_parameter("conv.bias").register_hook(lambda gradient: gradient + 1e-4)
    debugger = PrecisionDebugger(task="tensor", dump_path=out, level=level)
    state = torch.zeros(2, HIDDEN)
    debugger.start(net)
    # With a gradient of its own, so that PyTorch does not call ones_like for one.
    net(values["x"], state, state).backward(torch.tensor(1.0))
    debugger.stop()


if __name__ == "__main__":
    framework, level, out = sys.argv[1:4]
    if framework == "pytorch":
        in_torch(level, out, bool(sys.argv[4:]))
    else:
        in_mindspore(level, out, 1.02 if sys.argv[4:] else 1.0)
