"""Trains a small network in GRAPH_MODE with a debugger; run in a process of its own.

    python graph_training.py CONFIG FACTOR STEPS [kill]

FACTOR scales what the activation puts out: 1.5 instead of 1 is a fault. `kill` ends the process
with SIGKILL after the last step.
"""

import os
import signal
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from plumbline.mindspore import PrecisionDebugger


class Net(nn.Cell):
    """Two dense layers and a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.fc1 = nn.Dense(8, 16)
        self.fc2 = nn.Dense(16, 4)
        self.relu = nn.ReLU()
        self.factor = Tensor(factor, ms.float32)

    def construct(self, x):
        return self.fc2(ops.mul(self.relu(self.fc1(x)), self.factor))


def main() -> None:
    config, factor, steps = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(1)
    debugger = PrecisionDebugger(config)
    net = Net(factor)
    train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()),
                                nn.SGD(net.trainable_params(), 0.1))
    train.set_train()
    random = np.random.default_rng(0)
    for _ in range(steps):
        debugger.start(net)
        train(Tensor(random.standard_normal((5, 8)).astype("f4")),
              Tensor(random.standard_normal((5, 4)).astype("f4")))
        debugger.stop()
        debugger.step()
    if "kill" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
