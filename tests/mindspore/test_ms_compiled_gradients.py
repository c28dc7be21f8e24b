"""Gradients of cells around compiled functions. MindSpore gives those that somebody wants alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from ms_recording import assert_nothing_lost, entries, new_debugger


class Compiled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(5, 7)

    @ms.jit
    def construct(self, x):
        return ops.sigmoid(self.fc(x))


@ms.jit
def scaled(data, hidden, factor):
    return ops.sum(data) * hidden * factor


class Scaled(nn.Cell):
    def construct(self, data: Tensor, hidden: Tensor, factor: Tensor) -> Tensor:
        return scaled(data, hidden, factor)


class Net(nn.Cell):
    """`rows` of data go to a compiled function beside two values of 4 and 3 rows of 7."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows
        self.inner, self.scaled = Compiled(), Scaled()

    def construct(self, x: Tensor) -> Tensor:
        hidden = self.inner(x)
        data = ops.ones((self.rows, 7), ms.float32) * x[0, 0]
        return ops.sum(self.scaled(data, hidden, ops.mean(hidden, axis=0)))


def gradients(net: Net, directory: Path | None, level: str = "L0") -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(rng.standard_normal(parameter.shape).astype(np.float32)))
    x = Tensor(rng.standard_normal((4, 5)).astype(np.float32))
    debugger = new_debugger(directory, level=level, task="tensor") if directory else None
    if debugger:
        debugger.start(net)
    _, found = ms.value_and_grad(net, None, net.trainable_params())(x)
    if debugger:
        debugger.stop()
        debugger.step()
    return [one.asnumpy() for one in found]


def loaded(directory: Path, tensor: dict[str, Any]) -> np.ndarray:
    values: np.ndarray = np.load(
        directory / "out/step0/rank/dump_tensor_data" / tensor["data_name"])
    return values


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_a_gradient_belongs_to_the_argument_of_its_shape(tmp_path: Path, level: str) -> None:
    """Those of the weights were recorded as those of the data, which had none."""
    net = Net(rows=3)
    recorded = gradients(net, tmp_path, level)
    data = entries(tmp_path)
    assert data["Cell.inner.Compiled.backward.0"]["output"] == [None]
    [of_data, of_hidden, of_factor] = data["Cell.scaled.Scaled.backward.0"]["output"]
    assert of_data is None
    assert (of_hidden["shape"], of_factor["shape"]) == ([4, 7], [7])
    forward = data["Cell.scaled.Scaled.forward.0"]["input_args"]
    values, hidden, factor = (loaded(tmp_path, one).astype(np.float64) for one in forward)
    assert np.allclose(loaded(tmp_path, of_hidden), values.sum() * np.tile(factor, (4, 1)))
    assert np.allclose(loaded(tmp_path, of_factor), values.sum() * hidden.sum(0), rtol=1e-5)
    assert_nothing_lost(tmp_path)
    for one, other in zip(recorded, gradients(net, None), strict=True):
        assert np.array_equal(one, other)


def test_what_cannot_be_told_is_said_and_not_guessed(tmp_path: Path) -> None:
    net = Net(rows=4)  # the data have the shape of the hidden values, and no gradient
    recorded = gradients(net, tmp_path)
    [of_data, of_hidden, of_factor] = entries(tmp_path)["Cell.scaled.Scaled.backward.0"]["output"]
    assert of_data is None and of_hidden is None and of_factor["shape"] == [7]
    log = (tmp_path / "out/step0/rank/dump_error_info.log").read_text()
    assert "gradients_unplaced: 2 (Cell.scaled.Scaled.backward.0: a compiled function" in log
    for one, other in zip(recorded, gradients(net, None), strict=True):
        assert np.array_equal(one, other)
