"""Names of tensor files: collisions, lengths, characters that no file name may have."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from recording import config, run

import plumbline

SETUP = """
import sys
import torch
from plumbline.pytorch import PrecisionDebugger
class Take(torch.nn.Module):
    def forward(self, *args, **kwargs):
        return None
def value(number):
    return torch.full((2,), float(number))
root = torch.nn.Sequential(Take())
debugger = PrecisionDebugger(sys.argv[1])
"""
END = """
debugger.stop(); debugger.step()
"""


def tensors_in(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict) and "data_name" in value:
        return [value]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in tensors_in(item)]
    if isinstance(value, list):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def record(tmp_path: Path, body: str) -> list[tuple[str, str]]:
    """(entry, file name) of every tensor; each file is checked to hold what the record says."""
    torch = pytest.importorskip("torch")
    run(SETUP + body + END, config(tmp_path, task="tensor", level="L0"))
    rank = tmp_path / "out" / "step0" / "rank"
    pairs = []
    for entry, members in json.loads((rank / "dump.json").read_text())["data"].items():
        for tensor in tensors_in(members):
            loaded = torch.load(rank / "dump_tensor_data" / tensor["data_name"], weights_only=True)
            assert loaded.tolist() == [tensor["Max"]] * 2 == [tensor["Min"]] * 2
            pairs.append((entry, tensor["data_name"]))
    on_disk = {path.name for path in (rank / "dump_tensor_data").iterdir()}
    assert on_disk == {name for _, name in pairs} and len(on_disk) == len(pairs)
    return pairs


def test_two_values_of_one_name_get_two_files(tmp_path: Path) -> None:
    body = """
debugger.start(model=root)
root[0](**{"a.b": value(1), "a": {"b": value(2)}, "c": value(3)})
root[0]({"0.1": value(4), "0": [value(5), value(6)]})
root[0]({"1.0": value(7), "1": [value(8)], "1.0.dup1": value(9)}, {"1": value(10)})
root[0]({"a b": value(11), "a_b": value(12), "a/b": value(13)})
"""
    names = [name for _, name in record(tmp_path, body)]
    call = "Module.0.Take.forward"
    assert names == [
        f"{call}.0.kwargs.a.b.pt", f"{call}.0.kwargs.a.b.dup1.pt", f"{call}.0.kwargs.c.pt",
        f"{call}.1.input.0.0.1.pt", f"{call}.1.input.0.0.0.pt", f"{call}.1.input.0.0.1.dup1.pt",
        f"{call}.2.input.0.1.0.pt", f"{call}.2.input.0.1.0.dup1.pt",
        f"{call}.2.input.0.1.0.dup1.dup1.pt", f"{call}.2.input.1.1.pt",
        f"{call}.3.input.0.a_b.pt", f"{call}.3.input.0.a_b.dup1.pt",
        f"{call}.3.input.0.a_b.dup2.pt",
    ]


def test_names_that_no_file_may_have(tmp_path: Path) -> None:
    body = """
keys = ["a b/\\u00fc", "../../up", "/abs", "", ".", "..", "a\\0b", "a\\nb", "\\ud800",
        "'\\"$*?<>|", "-"]
debugger.start(model=root)
root[0](dict((key, value(number)) for number, key in enumerate(keys)))
"""
    names = [name for _, name in record(tmp_path, body)]
    assert len(set(names)) == 11
    for name in names:
        assert name.startswith("Module.0.Take.forward.0.input.0.") and "/" not in name
        assert set(name) <= set(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
        )
    assert names[0] == "Module.0.Take.forward.0.input.0.a_b___.pt"  # one _ for every byte
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["step0"]


def test_long_names_are_cut_and_stay_apart(tmp_path: Path) -> None:
    body = """
class Deep(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.depth, self.inner = depth, Deep(depth - 1) if depth else Take()
    def forward(self, x): return self.inner(x)
root = torch.nn.Sequential(Deep(60))
debugger.start(model=root)
root(value(1))
root[0]({"k" * 500: value(2), "k" * 501: value(3)})
"""
    pairs = record(tmp_path, body)
    assert any(len(entry) > 350 for entry, _ in pairs)  # entries keep their names
    assert all(len(name) <= 200 + len(".pt") for _, name in pairs)
    cut = [name for _, name in pairs if len(name) == 180 + 1 + 16 + 3]
    assert len(cut) > 2 and len(set(cut)) == len(cut)


def test_an_api_that_raises_or_is_given_nonsense_leaves_the_next_one_alone(tmp_path: Path) -> None:
    body = """
debugger.start(model=root)
for wrong in (lambda: torch.add(), lambda: torch.add(None, ...), lambda: torch.cat([1, "x"]),
              lambda: torch.add(value(1), value(2), alpha=object()), lambda: torch.zeros(-1).sin(),
              lambda: value(1)[object()], lambda: torch.nn.functional.linear(x=value(1))):
    try:
        wrong()
    except (TypeError, RuntimeError, IndexError):
        continue
    raise SystemExit("the error was swallowed")
torch.add(value(5), 0)
"""
    run(SETUP + body + END, config(tmp_path, task="tensor", level="L1"))
    rank = tmp_path / "out" / "step0" / "rank"
    data = json.loads((rank / "dump.json").read_text())["data"]
    added = [entry for name, entry in data.items() if name.startswith("Torch.add.")]
    assert len(added) == 4
    assert [("output" in entry) for entry in added] == [False, False, False, True]
    assert added[2]["input_kwargs"]["alpha"] == {"type": "builtins.object", "value": None}
    assert added[3]["output"][0]["Max"] == 5.0


def files_of(tmp_path: Path, body: str, **options: Any) -> set[str]:
    run(SETUP + body + END, config(tmp_path, task="tensor", **options))
    return {path.name for path in
            (tmp_path / "out" / "step0" / "rank" / "dump_tensor_data").iterdir()}


def test_names_of_every_place(tmp_path: Path) -> None:
    """The examples of the format, and a module registered under a name with a space."""
    pytest.importorskip("torch")
    body = """
from torch.nn import functional as F
class Head(torch.nn.Module):
    def forward(self, x): return {"y": x * 2, "aux": [x + 1]}
class Blk(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.fc = torch.nn.Linear(2, 2)
    def forward(self, x): return self.fc(x)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blk, self.head = Blk(), Head()
        self.add_module("my block", torch.nn.ReLU())
    def forward(self, x):
        return self.head(self._modules["my block"](self.blk(x)))["y"]
net = Net()
debugger.start(model=net)
x = torch.ones(1, 2, requires_grad=True)
torch.cat([x, x + 1]); torch.cat(tensors=[x, x * 3])
F.linear(input=x, weight=torch.ones(2, 2, requires_grad=True))
F.linear(x + 0, torch.full((2, 2), 5.0, requires_grad=True)).sum().backward()
net(x).sum().backward()
"""
    found = files_of(tmp_path, body, level="mix")
    assert found >= {
        "Functional.linear.1.forward.input.0.pt", "Functional.linear.0.forward.kwargs.input.pt",
        "Torch.cat.0.forward.input.0.1.pt", "Torch.cat.1.forward.kwargs.tensors.0.pt",
        "Module.head.Head.forward.0.output.0.y.pt", "Module.head.Head.forward.0.output.0.aux.0.pt",
        "Module.blk.fc.Linear.forward.0.parameters.weight.pt",
        "Module.blk.fc.Linear.parameters_grad.weight.pt",
        "Functional.linear.1.backward.output.1.pt", "Module.my_block.ReLU.forward.0.input.0.pt",
    }
    entries = json.loads((tmp_path / "out/step0/rank/dump.json").read_text())["data"]
    assert "Module.my block.ReLU.forward.0" in entries, "entries keep their names"


def test_names_of_a_list_of_models(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    body = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.conv1 = torch.nn.Conv2d(1, 1, 1)
    def forward(self, x): return self.conv1(x)
net = Net()
debugger.start(model=[net])
net(torch.ones(1, 1, 2, 2))
"""
    assert "Module.0.conv1.Conv2d.forward.0.input.0.pt" in files_of(tmp_path, body, level="L0")


def test_every_dtype_in_every_shape_is_loaded_again(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    names = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 "
             "float64 complex64 complex128 float8_e4m3fn float8_e5m2").split()
    shapes = [(), (0,), (1,), (2, 3), (0, 4), (5, 1, 2)]
    body = f"""
def made(name, shape):
    count = 1
    for size in shape: count *= size
    x = (torch.arange(count) % 5 * 0.5).reshape(shape)
    return x.to(getattr(torch, name))
debugger.start(model=root)
for name in {names}:
    root[0](*(made(name, shape) for shape in {shapes}))
root[0]((torch.arange(300 * 70000) % 251).to(torch.uint8).reshape(300, 70000))
"""
    found = files_of(tmp_path, body, level="L0")
    assert len(found) == len(names) * len(shapes) + 1
    directory = tmp_path / "out" / "step0" / "rank" / "dump_tensor_data"
    for call, name in enumerate(names):
        for position, shape in enumerate(shapes):
            path = directory / f"Module.0.Take.forward.{call}.input.{position}.pt"
            loaded = torch.load(path, weights_only=True)
            count = torch.Size(shape).numel()
            expected = (torch.arange(count) % 5 * 0.5).reshape(shape).to(getattr(torch, name))
            assert (loaded.dtype, loaded.shape) == (expected.dtype, expected.shape)
            assert bytes(loaded.reshape(-1).view(torch.uint8).tolist()) == bytes(
                expected.reshape(-1).view(torch.uint8).tolist()), path.name
            with zipfile.ZipFile(path) as archive:
                assert archive.testzip() is None
    large = torch.load(directory / f"Module.0.Take.forward.{len(names)}.input.0.pt",
                       weights_only=True)
    assert large.shape == (300, 70000)
    assert torch.equal(large.reshape(-1), (torch.arange(300 * 70000) % 251).to(torch.uint8))


def test_a_moved_recording_finds_its_tensors(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    body = "debugger.start(model=root)\nroot[0](value(1), value(2))\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files_of(tmp_path / name, body, level="L0")
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "one" / "out").rename(tmp_path / "elsewhere" / "dump")
    result = plumbline.compare(moved, tmp_path / "two" / "out")
    assert [row["verdict"] for row in result.rows] == ["same"] * 3  # two arguments, None
    (moved / "step0/rank/dump_tensor_data/Module.0.Take.forward.0.input.1.pt").unlink()
    after = plumbline.compare(moved, tmp_path / "two" / "out")
    assert [row["verdict"] for row in after.rows] == ["same", "not comparable", "same"]
