"""A small network of mint's functions and Tensor methods, recorded by the tool named on the command
line: `python ms_mint_network.py plumbline.mindspore TASK DIRECTORY`, or `msprobe.mindspore`.

Only functions that a CPU has; the network trains one step, so that there are gradients.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn


class Net(nn.Cell):  # type: ignore[misc]
    """Products, sums, activations, views, and calls with several inputs and outputs."""

    def __init__(self) -> None:
        super().__init__()
        draw = np.random.default_rng(3)
        self.weight = Parameter(Tensor(draw.standard_normal((8, 6)).astype(np.float32)))
        self.bias = Parameter(Tensor(draw.standard_normal(6).astype(np.float32)))

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        y = mint.add(mint.matmul(x, self.weight), self.bias)
        y = mint.nn.functional.relu(y)
        y = mint.nn.functional.softmax(y, dim=-1)
        first, second = mint.split(y, 3, 1)
        z = mint.cat([mint.mul(first, second), mint.sub(first, second)], dim=1)
        z = z.masked_fill(mask, 0.5)
        z = z.reshape((2, 12)).transpose(0, 1)
        z = mint.where(z > 0.25, z, mint.exp(z))
        return mint.mean(z.sqrt() + z.square())


def main(package: str, task: str, directory: str) -> None:
    tool: Any = importlib.import_module(package)
    out = Path(directory)
    config = out / "config.json"
    section: dict[str, Any] = {"scope": [], "list": [], "data_mode": ["all"]}
    if task == "statistics":
        section["summary_mode"] = "statistics"
    config.write_text(json.dumps({
        "task": task, "dump_path": str(out / "dump"), "rank": [], "step": [], "level": "L1",
        task: section}))
    debugger = tool.PrecisionDebugger(config_path=str(config))
    net = Net()
    draw = np.random.default_rng(4)
    x = Tensor(draw.standard_normal((4, 8)).astype(np.float32))
    mask = Tensor(draw.random((4, 6)) > 0.7)
    train = ms.value_and_grad(net, None, net.trainable_params())
    debugger.start(net)
    loss, gradients = train(x, mask)
    print("loss", loss.asnumpy().item(), len(gradients))
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    ms.set_context(mode=ms.PYNATIVE_MODE)
    main(*sys.argv[1:4])
