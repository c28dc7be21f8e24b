"""Records two training steps of a small MindSpore network in PyNative mode.

    python examples/record_mindspore.py OUT|none

With `none` nothing is recorded; the last line, the weights' digest, is the same either way.
"""

from __future__ import annotations

import hashlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from plumbline.mindspore import PrecisionDebugger


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.relu, self.head = nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3)

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.relu(self.hidden(x)))


def main(out: str) -> None:
    ms.set_seed(1)
    rng = np.random.default_rng(1)
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)

    def forward(x: Tensor, y: Tensor) -> Tensor:
        return ops.mse_loss(net(x), y)

    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
    debugger = None if out == "none" else PrecisionDebugger(dump_path=out, level="mix")
    for _ in range(2):
        x = Tensor(rng.standard_normal((4, 6)).astype(np.float32))
        y = Tensor(rng.standard_normal((4, 3)).astype(np.float32))
        if debugger:
            debugger.start(net)
        _, gradients = gradients_of(x, y)
        optimizer(gradients)
        if debugger:
            debugger.stop()
            debugger.step()
    weights = b"".join(parameter.asnumpy().tobytes() for parameter in net.get_parameters())
    print("weights", hashlib.sha256(weights).hexdigest()[:16])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "./out")
