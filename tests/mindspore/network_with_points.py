"""Saves values inside a network, by the tool of argv[1]; argv[2]: output directory, argv[3]: mode.

Both tools' functions are called in the same way. What goes wrong is printed.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

TOOL, OUT, MODE = sys.argv[1:]
points = importlib.import_module(TOOL)
save, save_grad = points.save, points.save_grad


class Net(nn.Cell):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(3, 2)
        self.fc.weight.set_data(Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)))
        self.fc.bias.set_data(Tensor(np.ones(2, np.float32)))

    def construct(self, x: Any) -> Any:
        h = self.fc(x)
        save(OUT, "hidden", h)
        save(OUT, "many", {"a": h, "b": [x, (h, None)]})
        save(OUT, "half", h.astype(ms.bfloat16))
        h = save_grad(OUT, "hidden", h)
        return (h * h).sum()


def end_step() -> None:
    try:
        points.step()
    except RuntimeError as error:
        print("step:", str(error).replace("\n", " ")[:200])


ms.set_context(mode=ms.GRAPH_MODE if MODE == "graph" else ms.PYNATIVE_MODE)
net = Net()
way_back = ms.value_and_grad(net, None, net.trainable_params())
for number in range(3):
    x = Tensor(np.full((1, 3), number + 1, np.float32))
    try:
        value, gradients = way_back(x)
        print("loss", float(value.asnumpy()), gradients[1].asnumpy().tolist())
    except Exception as error:
        print(type(error).__name__, str(error).replace("\n", " ")[:2000])
        break
    end_step()
for wrong in ("text", {1: 2}):
    try:
        save(OUT, "wrong", wrong)
    except TypeError as error:
        print("TypeError", error)
try:
    save_grad(OUT, "wrong", [1])
except TypeError as error:
    print("TypeError", error)
