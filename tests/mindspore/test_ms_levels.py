"""Three nets at every level and in every mode: what is recorded, and the same training."""

from __future__ import annotations

import copy
import functools
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import ms_models
import numpy as np
import pytest
from mindspore import Tensor, nn
from ms_recording import assert_nothing_lost, entries, new_debugger, read, tensors

MODES: dict[str, dict[str, Any]] = {
    "statistics": {"task": "statistics"},
    "md5": {"task": "statistics", "summary_mode": "md5"},
    "xor": {"task": "statistics", "summary_mode": "xor"},
    "tensor": {"task": "tensor"},
}
CASES = [("lstm", level, mode) for level in ("L0", "L1", "mix") for mode in MODES]
CASES += [(net, level, mode) for net in ("transformer", "resnet")
          for level, mode in (("L0", "tensor"), ("L1", "md5"), ("mix", "statistics"))]


@functools.cache
def unrecorded(net: str) -> str:
    return ms_models.train(net)


@pytest.mark.parametrize(("net", "level", "mode"), CASES)
def test_training_is_the_same_and_every_call_is_there(
    tmp_path: Path, net: str, level: str, mode: str
) -> None:
    debugger = new_debugger(tmp_path, level=level, **MODES[mode])
    assert ms_models.train(net, debugger) == unrecorded(net)
    assert_nothing_lost(tmp_path)
    assert read(tmp_path)["framework"] == "mindspore"
    names = list(entries(tmp_path))
    assert names == list(entries(tmp_path, step=1))
    cells = [name for name in names if name.startswith("Cell.")]
    apis = [name for name in names if not name.startswith("Cell.")]
    assert bool(cells) == (level != "L1") and bool(apis) == (level != "L0")
    for name, entry in entries(tmp_path).items():
        check_entry(name, entry)
        for tensor in tensors(entry):
            check_tensor(tensor, mode, tmp_path)


def check_entry(name: str, entry: dict[str, Any]) -> None:
    if name.endswith(".parameters_grad"):
        assert all(len(value) == 1 and value[0] is not None for value in entry.values())
    elif ".backward" in name:
        assert list(entry) == ["input", "output"]
    else:
        keys = ["input_args", "input_kwargs", "output"]
        assert list(entry) == ([*keys, "parameters"] if name.startswith("Cell.") else keys)


def check_tensor(tensor: dict[str, Any], mode: str, directory: Path) -> None:
    keys = ["type", "dtype", "shape"]
    keys += [] if mode == "xor" else ["Max", "Min", "Mean", "Norm"]
    keys += {"statistics": [], "tensor": ["data_name"]}.get(mode, ["md5"])
    assert list(tensor) == keys
    if mode != "tensor":
        return
    assert tensor["data_name"].endswith(".npy")
    values = np.load(directory / "out/step0/rank/dump_tensor_data" / tensor["data_name"])
    assert list(values.shape) == tensor["shape"]
    assert tensor["dtype"].lower() == str(values.dtype)
    if values.size > 1:
        assert tensor["Max"] == values.max() and tensor["Min"] == values.min()
        assert np.isclose(tensor["Mean"], values.mean(dtype=np.float64), atol=1e-7)
        exact = values.astype(np.float64)
        assert np.isclose(tensor["Norm"], np.sqrt(np.sum(exact * exact)), rtol=1e-6)


def test_lists_and_scopes_take_patterns(tmp_path: Path) -> None:
    def recorded(number: int, **options: Any) -> list[str]:
        directory = tmp_path / str(number)
        directory.mkdir()
        ms_models.train("transformer", new_debugger(directory, **options), steps=1)
        return list(entries(directory))

    every = recorded(0, level="L0")
    chosen = re.compile(r"Cell\.blocks\.1\.(up|down)\.")
    assert recorded(1, level="L0", list=["*.blocks.1.up.*", "re:blocks\\.1\\.d"]) == [
        name for name in every if chosen.match(name)]
    block = recorded(2, level="L0", scope=["re:blocks\\.1\\..*forward", "*.blocks.1.*.forward.?"])
    assert "Cell.blocks.1.Block.forward.0" in block
    assert {name for name in block if ".forward." in name} == {
        name for name in every if name.startswith("Cell.blocks.1.") and ".forward." in name}
    apis = recorded(3, level="L1", list=["re:^Functional\\.(gelu|softmax)\\.[01]\\.forward$"])
    assert sorted(apis) == [f"Functional.{name}.{number}.forward" for name in ("gelu", "softmax")
                            for number in (0, 1)]
    inside = recorded(4, level="mix", list=["Cell.blocks.0.attention.*.forward.*"])
    assert "Functional.softmax.0.forward" in inside and "Functional.softmax.1.forward" not in inside
    assert "Functional.gelu.0.forward" not in inside


def test_backward_of_cells_has_the_gradients_of_results_and_inputs(tmp_path: Path) -> None:
    ms_models.train("lstm", new_debugger(tmp_path, level="mix", task="tensor"), steps=1)
    data = entries(tmp_path)
    # The second result of the last call is not used: it has no gradient.
    last = data["Cell.cell.Lstm.backward.2"]
    assert [value and value["shape"] for value in last["input"]] == [[4, 6], None]
    assert [value and value["shape"] for value in last["output"]] == [None, [4, 6], [4, 6]]
    middle = data["Cell.cell.Lstm.backward.1"]
    assert [value["shape"] for value in middle["input"]] == [[4, 6], [4, 6]]
    # What a call sends back is what the call before it gets.
    files = [name["data_name"] for name in (last["output"][2], middle["input"][1])]
    folder = tmp_path / "out/step0/rank/dump_tensor_data"
    sent, got = (np.load(folder / name) for name in files)
    assert np.array_equal(sent, got) and np.abs(got).max() > 0
    assert list(data["Cell.cell.gates.Dense.parameters_grad"]) == ["weight", "bias"]


class Parts(nn.Cell):  # type: ignore[misc]
    """Two results in a container."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.fc = nn.Dense(3, 3)
        self.kind = kind

    def construct(self, x: Any) -> Any:
        first, second = self.fc(x), x * 3
        if self.kind == "dict":
            return {"a": first, "b": second, "c": 1}
        return [first, second] if self.kind == "list" else (first, second)


class Net(nn.Cell):  # type: ignore[misc]
    """Three cells with the same results."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.CellList([Parts(kind) for kind in ("tuple", "list", "dict")])

    def construct(self, x: Any) -> Any:
        for part in self.parts:
            results = part(x)
            first, second = list(results.values())[:2] if isinstance(results, dict) else results
            x = first * 2 + second
        return x.sum()


def gradients(directory: Path | None, kind: Callable[[], Any] = Net) -> list[np.ndarray]:
    """Of the weights of a net of that kind, recorded below `directory` or not."""
    ms.set_seed(3)
    net = kind()
    debugger = new_debugger(directory, level="L0") if directory else None
    if debugger:
        debugger.start(net)
    run = ms.value_and_grad(net, None, net.trainable_params())
    _, found = run(Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)))
    if debugger:
        debugger.stop()
        debugger.step()
    return [one.asnumpy() for one in found]


def test_results_in_lists_and_dicts_have_gradients(tmp_path: Path) -> None:
    """MindSpore's own backward hooks see those in tuples alone."""
    recorded = gradients(tmp_path)
    data = entries(tmp_path)
    for number, kind in enumerate(("tuple", "list", "dict")):
        entry = data[f"Cell.parts.{number}.Parts.backward.0"]
        first, second, *rest = entry["input"]
        assert rest == ([None] if kind == "dict" else [])
        assert first["shape"] == [2, 3]
        # The input of the net, which the first cell has, needs no gradient.
        assert (second is None) == (entry["output"][0] is None) == (number == 0), kind
        if second:
            assert first["Norm"] == pytest.approx(2 * second["Norm"], rel=1e-6), kind
    last, before = (data[f"Cell.parts.{number}.Parts.backward.0"] for number in (2, 1))
    assert before["input"][1]["Norm"] == last["output"][0]["Norm"]
    assert_nothing_lost(tmp_path)
    for one, other in zip(recorded, gradients(None), strict=True):
        assert np.array_equal(one, other)


class Nested(nn.Cell):  # type: ignore[misc]
    """Results in containers inside the results, an input among them."""

    def construct(self, x: Any) -> Any:
        return 2, x * 2, ([x * 3, {"a": x * 5, "b": None}], (x * 7,)), x


class NestedNet(nn.Cell):  # type: ignore[misc]
    """The first cell has all its results used, the second one none of the last container."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.first, self.second = nn.Dense(3, 3), Nested(), Nested()

    def construct(self, x: Any) -> Any:
        _, a, ((b, rest), (c,)), same = self.first(self.fc(x))
        _, a, ((b, rest), _), _ = self.second(a + b * 10 + rest["a"] * 100 + c * 1000 + same * 1e4)
        return (a + b * 10 + rest["a"] * 100).sum()


def test_results_in_containers_inside_the_results_have_gradients(tmp_path: Path) -> None:
    """As the state (h, c) that nn.LSTM returns beside its output."""
    recorded = gradients(tmp_path, NestedNet)
    data = entries(tmp_path)

    def largest(value: Any) -> Any:
        if isinstance(value, list):
            return [largest(item) for item in value]
        return value and value["Max"]

    second, first = (data[f"Cell.{name}.Nested.backward.0"] for name in ("second", "first"))
    into = 2 * 1 + 3 * 10 + 5 * 100
    # What passes through has the gradient of all uses of the input, those inside as well.
    assert largest(second["input"]) == [None, 1, [[10, [100, None]], None], into]
    assert largest(second["output"]) == [into]
    *inner, same = largest(first["input"])
    assert inner == [None, into, [[10 * into, [100 * into, None]], [1000 * into]]]
    assert largest(first["output"]) == [same] == [(2 + 30 + 500 + 7000 + 10000) * into]
    assert_nothing_lost(tmp_path)
    for one, other in zip(recorded, gradients(None, NestedNet), strict=True):
        assert np.array_equal(one, other)


def test_a_copy_of_a_cell_is_not_recorded(tmp_path: Path) -> None:
    net = Net()
    debugger = new_debugger(tmp_path, level="L0")
    debugger.start(net)
    copy.deepcopy(net.parts[0])(Tensor(np.ones((2, 3), np.float32)))
    net.parts[1](Tensor(np.ones((2, 3), np.float32)))
    debugger.stop()
    debugger.step()
    assert [name for name in entries(tmp_path) if ".forward." in name] == [
        "Cell.parts.1.fc.Dense.forward.0", "Cell.parts.1.Parts.forward.0"]


def test_parents_and_call_stacks(tmp_path: Path) -> None:
    ms_models.train("transformer", new_debugger(tmp_path, level="mix"), steps=1)
    parents = read(tmp_path, "construct")
    block = "Cell.blocks.1.Block"
    attention = "Cell.blocks.1.attention.Attention"
    assert parents[f"{attention}.forward.0"] == f"{block}.forward.0"
    assert parents["Functional.softmax.1.forward"] == f"{attention}.forward.0"
    assert parents["Functional.softmax.1.backward"] == f"{attention}.backward.0"
    assert parents[f"{attention}.backward.0"] == f"{block}.backward.0"
    assert parents[f"{block}.forward.0"] is None
    stacks = read(tmp_path, "stack")
    text = stacks["Functional.softmax.1.forward"]
    assert "ms_models.py" in text[0] and "in construct" in text[0]


def test_checksums_are_those_of_the_chapter(tmp_path: Path) -> None:
    from mindspore import ops

    debugger = new_debugger(tmp_path, level="L1", **MODES["md5"])
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    debugger.start()
    for tensor in (Tensor(values), Tensor(values).astype(ms.bfloat16), Tensor(values).T):
        ops.add(tensor, tensor)  # of those that every CPU has for bfloat16
    debugger.stop()
    debugger.step()
    data = entries(tmp_path)
    digests = [data[f"Functional.add.{i}.forward"]["input_args"][0]["md5"] for i in range(3)]
    assert digests == ["91e79017", "91e79017", f"{zlib.crc32(values.T.tobytes()):08x}"]
