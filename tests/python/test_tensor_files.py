"""Names of tensor files: collisions, lengths, characters that no file name may have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recording import config, run

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
