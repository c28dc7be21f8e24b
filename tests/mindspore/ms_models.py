"""Small networks of the three kinds that people train, and one training loop for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, nn, ops


class Attention(nn.Cell):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key = nn.Dense(width, width), nn.Dense(width, width)
        self.value, self.out = nn.Dense(width, width), nn.Dense(width, width)

    def construct(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape

        def split(y: Tensor) -> Tensor:
            return y.reshape(batch, length, self.heads, self.size).transpose(0, 2, 1, 3)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) / self.size**0.5
        mixed = ops.matmul(ops.softmax(scores, axis=-1), v)
        return self.out(mixed.transpose(0, 2, 1, 3).reshape(batch, length, width))


class RmsNorm(nn.Cell):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = ms.Parameter(ops.ones((width,), ms.float32), name="weight")

    def construct(self, x: Tensor) -> Tensor:
        return x * ops.rsqrt(ops.mean(ops.square(x), -1, True) + 1e-5) * self.weight


class Block(nn.Cell):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attention = Attention(width, 2)
        self.up, self.down = nn.Dense(width, 2 * width), nn.Dense(2 * width, width)

    def construct(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


class Transformer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.blocks = nn.CellList([Block(8), Block(8)])
        self.head = nn.Dense(8, 3)

    def construct(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(ops.mean(x, axis=1))


class Residual(nn.Cell):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, has_bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, has_bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(x + self.bn2(self.conv2(y)))


class ResNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.layers = nn.SequentialCell(Residual(4), Residual(4))
        self.pool = nn.MaxPool2d(2, 2)
        self.head = nn.Dense(4, 3)

    def construct(self, image: Tensor) -> Tensor:
        x = self.pool(self.layers(self.stem(image)))
        return self.head(mint.mean(x, dim=(2, 3)))


class Lstm(nn.Cell):
    """A cell with two results, the second of which is not used after the last step."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.gates = nn.Dense(inputs + width, 4 * width)

    def construct(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = ops.chunk(self.gates(ops.cat((x, h), axis=1)), 4, axis=1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        # A node of its own: the gradient of `c` would have that of tanh in it.
        return ops.sigmoid(o) * ops.tanh(c), c * 1.0


class LstmNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.cell = Lstm(5, 6)
        self.head = nn.Dense(6, 3)

    def construct(self, x: Tensor) -> Tensor:
        h = c = ops.zeros((x.shape[0], 6), ms.float32)
        for step in range(x.shape[1]):
            h, c = self.cell(x[:, step], h, c)
        return self.head(h)


def _tokens(rng: Any) -> Tensor:
    return Tensor(rng.integers(0, 11, (4, 6)).astype(np.int32))


def _floats(*shape: int) -> Callable[[Any], Tensor]:
    return lambda rng: Tensor(rng.standard_normal(shape).astype(np.float32))


NETS: dict[str, tuple[Callable[[], nn.Cell], Callable[[Any], Tensor]]] = {
    "transformer": (Transformer, _tokens),
    "resnet": (ResNet, _floats(2, 3, 8, 8)),
    "lstm": (LstmNet, _floats(4, 3, 5)),
}


def set_weights(net: nn.Cell, seed: int) -> None:
    """Weights that do not depend on any generator of the framework."""
    rng = np.random.default_rng(seed)
    for parameter in net.get_parameters():
        if parameter.requires_grad:
            values = rng.standard_normal(parameter.shape) * 0.3
            parameter.set_data(Tensor(values.astype(np.float32)))


def train(name: str, debugger: Any = None, steps: int = 2, change: Any = None) -> str:
    """Trains and returns what the losses and weights are, bit for bit.

    `change(net)` is called before the first step.
    """
    make, inputs = NETS[name]
    rng = np.random.default_rng(3)
    net = make()
    set_weights(net, 5)
    if change is not None:
        change(net)
    weights = ms.ParameterTuple(net.trainable_params())

    def forward(x: Tensor, y: Tensor) -> Tensor:
        # Not ops.cross_entropy: its bits change from one call to the next on a CPU.
        return -ops.mean(ops.sum(ops.log_softmax(net(x), -1) * y, -1))

    gradients_of = ms.value_and_grad(forward, None, weights)
    digest = hashlib.sha256()
    for _ in range(steps):
        x = inputs(rng)
        y = Tensor(np.eye(3, dtype=np.float32)[rng.integers(0, 3, x.shape[0])])
        if debugger is not None:
            debugger.start(net)
        loss, gradients = gradients_of(x, y)
        for weight, gradient in zip(weights, gradients, strict=True):
            ops.assign_sub(weight, 0.1 * gradient)
        if debugger is not None:
            debugger.stop()
            debugger.step()
        digest.update(loss.asnumpy().tobytes())
    for parameter in net.get_parameters():
        digest.update(parameter.asnumpy().tobytes())
    return digest.hexdigest()
