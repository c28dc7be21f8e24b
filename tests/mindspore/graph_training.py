"""Trains a small network in GRAPH_MODE with a debugger; run in a process of its own.

    python graph_training.py CONFIG FACTOR STEPS [kill] [mark] [mark=CELL] [first=N] [O2]

FACTOR scales what the activation puts out: 1.5 instead of 1 is a fault. `kill` ends the process
with SIGKILL after the last step. `mark` gives set_dump() the last dense layer and a primitive,
`mark=CELL` one cell; first=N numbers the first iteration N. `O2` is the jit level.
"""

import os
import signal
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from plumbline.mindspore import PrecisionDebugger, set_dump


class Net(nn.Cell):
    """Two dense layers and a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.fc1 = nn.Dense(8, 16)
        self.fc2 = nn.Dense(16, 4)
        self.relu = nn.ReLU()
        self.cube = ops.Pow()
        self.factor = Tensor(factor, ms.float32)

    def construct(self, x):
        return self.fc2(ops.mul(self.cube(self.relu(self.fc1(x)), 1.0), self.factor))


def main() -> None:
    config, factor, steps = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    ms.set_context(mode=ms.GRAPH_MODE)
    if "O2" in sys.argv:
        ms.set_context(jit_level="O2")
    ms.set_seed(1)
    debugger = PrecisionDebugger(config)
    net = Net(factor)
    if "mark" in sys.argv:
        set_dump(net.fc1)
        set_dump(net.fc2)
        set_dump(net.fc1, False)
        set_dump(net.cube)
    for word in sys.argv:
        if word.startswith("mark="):
            set_dump(getattr(net, word.removeprefix("mark=")))
        if word.startswith("first="):
            debugger.set_init_step(int(word.removeprefix("first=")))
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
