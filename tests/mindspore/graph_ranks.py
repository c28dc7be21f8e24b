"""Runs a dense layer and a sum over all ranks in GRAPH_MODE; started by msrun.

    msrun --worker_num=2 ... graph_ranks.py CONFIG

The data of rank R are R + 1, so that ranks can be told apart.
"""

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_rank, init

from plumbline.mindspore import PrecisionDebugger


class Net(nn.Cell):
    """One layer, and its sum over the ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(8, 4)
        self.reduce = ops.AllReduce()

    def construct(self, x):
        return self.reduce(self.fc(x))


def main() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    debugger = PrecisionDebugger(sys.argv[1])
    debugger.start()
    init()
    ms.set_seed(1)
    net = Net()
    data = Tensor(np.full((2, 8), get_rank() + 1, np.float32))
    for _ in range(2):
        debugger.start(net)
        net(data).asnumpy()
        debugger.stop()
        debugger.step()


if __name__ == "__main__":
    main()
