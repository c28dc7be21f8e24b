"""Cells with a `bprop` of their own: MindSpore takes no forward hook for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from ms_recording import assert_nothing_lost, entries, new_debugger, read


class Scaled(nn.Cell):
    """A number first, and a cell inside that runs outside the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ReLU()

    def construct(self, factor: int, x: Tensor) -> Tensor:
        return self.inner(x) * factor

    def bprop(self, factor: int, x: Tensor, out: Tensor, dout: Tensor) -> Any:
        return 0, dout * 3


class Two(nn.Cell):
    """Two inputs and two results."""

    def construct(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, x * y

    def bprop(self, x: Tensor, y: Tensor, out: Any, dout: Any) -> Any:
        return dout[0] * 5 + dout[1], dout[1] * 7


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Dense(3, 3), nn.Dense(3, 3)
        self.scaled, self.two = Scaled(), Two()

    def construct(self, x: Tensor) -> Tensor:
        x = self.first(x)
        y, z = self.two(x, self.scaled(2, x))
        return self.last(y + z).sum()


def run(directory: Path | None, level: str = "L0") -> list[np.ndarray]:
    """Loss and gradients of a network whose weights are the same every time."""
    net = Net()
    for number, weight in enumerate(net.get_parameters()):
        values = np.linspace(-1, 1 + number, weight.size, dtype=np.float32)
        weight.set_data(Tensor(values.reshape(weight.shape)))
    gradients_of = ms.value_and_grad(net, None, net.trainable_params())
    debugger = new_debugger(directory, level=level, task="tensor") if directory else None
    if debugger:
        debugger.start(net)
    loss, gradients = gradients_of(Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)))
    if debugger:
        debugger.stop()
        debugger.step()
    return [loss.asnumpy(), *(one.asnumpy() for one in gradients)]


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_their_calls_and_gradients_are_recorded(tmp_path: Path, level: str) -> None:
    recorded = run(tmp_path, level)
    data = entries(tmp_path)
    cells = [name for name in data if name.startswith("Cell.") and "parameters" not in name]
    assert cells == [
        "Cell.first.Dense.forward.0", "Cell.scaled.inner.ReLU.forward.0",
        "Cell.scaled.Scaled.forward.0", "Cell.two.Two.forward.0", "Cell.last.Dense.forward.0",
        "Cell.last.Dense.backward.0", "Cell.two.Two.backward.0", "Cell.scaled.Scaled.backward.0",
        "Cell.first.Dense.backward.0"]
    assert (read(tmp_path, "construct")["Cell.scaled.inner.ReLU.forward.0"]
            == "Cell.scaled.Scaled.forward.0")
    values = Values(tmp_path, data)
    (dy,) = values("Cell.last.Dense.backward.0", "output")
    assert all(np.array_equal(one, dy) for one in values("Cell.two.Two.backward.0", "input"))
    dx, dz = values("Cell.two.Two.backward.0", "output")
    assert np.array_equal(dx, dy * 5 + dy) and np.array_equal(dz, dy * 7)
    nothing, scaled = values("Cell.scaled.Scaled.backward.0", "output")
    assert nothing is None and np.array_equal(scaled, dz * 3)
    assert_nothing_lost(tmp_path)
    for one, other in zip(recorded, run(None), strict=True):
        assert np.array_equal(one, other)


class Values:
    """The stored tensors of an entry's part; None for a null."""

    def __init__(self, directory: Path, data: dict[str, Any]) -> None:
        self._folder, self._data = directory / "out/step0/rank/dump_tensor_data", data

    def __call__(self, entry: str, part: str) -> list[Any]:
        return [value and np.load(self._folder / value["data_name"])
                for value in self._data[entry][part]]


class Raises(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        raise RuntimeError("of the user")

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> Any:
        return (dout,)


class Careful(nn.Cell):
    """Goes on when a cell inside raises."""

    def __init__(self) -> None:
        super().__init__()
        self.raises, self.relu = Raises(), nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        with pytest.raises(RuntimeError, match="of the user"):
            self.raises(x)
        return ops.square(self.relu(x))


def test_one_that_raises_is_no_parent_of_later_calls(tmp_path: Path) -> None:
    net = Careful()
    debugger = new_debugger(tmp_path, level="L0")
    debugger.start(net)
    net(Tensor(np.ones(3, np.float32)))
    debugger.stop()
    debugger.step()
    assert read(tmp_path, "construct")["Cell.relu.ReLU.forward.0"] is None
    assert "output" not in entries(tmp_path)["Cell.raises.Raises.forward.0"]
    hooks = (net.raises._forward_hook, net.raises._forward_hook_with_kwargs,
             net.raises._forward_hook_always_called, net.raises._forward_pre_hook)
    assert not any(hooks)
