"""Settings of the recorder from Python: structure, xor, tensor_list, extra_info, risk_level."""

from __future__ import annotations

import functools
import json
import operator
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording import config, dump, run

MODEL = """
import sys, json, os
import torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.fc = torch.nn.Linear(4, 4); self.act = torch.nn.ReLU()
    def forward(self, x): return self.act(self.fc(x)) + x
torch.manual_seed(1)
model = torch.nn.Sequential(Block(), torch.nn.Linear(4, 2))
x = torch.randn(3, 4)
def train():
    debugger.start(model=model)
    model(x).sum().backward()
    debugger.stop(); debugger.step()
"""


def with_top(path: Path, **fields: Any) -> Path:
    """The same config.json with top-level fields added."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    return path


def files(tmp_path: Path, step: int = 0) -> dict[str, Any]:
    """Contents of the JSON files of a step by name."""
    directory = tmp_path / "out" / f"step{step}" / "rank"
    return {path.stem: json.loads(path.read_text()) for path in directory.glob("*.json")}


def test_structure_has_names_stacks_and_parents_only(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    run(MODEL + "train()", config(tmp_path, task="structure", level="mix"))
    run(MODEL + "train()", config(tmp_path / "full", level="mix"))
    structure, full = files(tmp_path), files(tmp_path / "full")
    assert structure["dump"]["data"] == {} and structure["dump"]["task"] == "structure"
    assert structure["dump"]["dump_data_dir"] is None
    assert list(structure["stack"]) == list(full["stack"])
    assert structure["construct"] == full["construct"]
    assert structure["construct"]["Functional.relu.0.forward"] == "Module.0.act.ReLU.forward.0"
    assert structure["construct"]["Module.1.Linear.backward.0"] is None


def test_structure_at_level_l1_becomes_mix_with_a_warning(tmp_path: Path) -> None:
    result = run(MODEL + "train()", config(tmp_path, task="structure", level="L1"))
    assert 'level: is "L1"' in result.stdout + result.stderr
    assert files(tmp_path)["dump"]["level"] == "mix"
    assert "Module.0.Block.forward.0" in files(tmp_path)["construct"]


def xor_of(array: np.ndarray[Any, Any]) -> str:
    """The checksum by NumPy."""
    raw = array.tobytes()
    words = np.frombuffer(raw + b"\0" * (-len(raw) % 8), dtype="<u8")
    return f"0x{functools.reduce(operator.xor, words.tolist(), 0):016x}"


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_xor_is_of_the_bytes_in_the_own_dtype(tmp_path: Path, task: str) -> None:
    run("""
import sys, torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
debugger.start()
for t in (x, x.t(), x.half(), x.bfloat16(), x.to(torch.int64), x > 2, torch.tensor(1.5),
          torch.empty(0), torch.arange(70001, dtype=torch.int16)[::3]):
    torch.clone(t)
debugger.stop(); debugger.step()
""", config(tmp_path, task=task, summary_mode="xor"))
    entries = dump(tmp_path)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    bfloat = np.right_shift(x.view(np.uint32), 16).astype(np.uint16)
    arrays = [x, x.T, x.astype(np.float16), bfloat, x.astype(np.int64), x > 2, np.float32(1.5)]
    arrays += [None, np.arange(70001, dtype=np.int64).astype(np.int16)[::3]]
    recorded = [value for key, value in entries.items() if key.startswith("Torch.clone")]
    assert len(recorded) == len(arrays)
    assert recorded[0]["output"][0]["md5"] == "0x3f60000000800000"  # of the real tool
    for entry, array in zip(recorded, arrays, strict=True):
        for element in (entry["input_args"][0], entry["output"][0]):
            if array is None:
                assert "md5" not in element and element["Max"] is None
                continue
            assert element["md5"] == xor_of(array)
            assert "Max" not in element and "Norm" not in element
            assert ("data_name" in element) == (task == "tensor")


def test_tensor_list_stores_the_named_entries_only(tmp_path: Path) -> None:
    run(MODEL + "train()", config(tmp_path, level="mix", tensor_list=["relu", "1.Linear.backward"]))
    directory = tmp_path / "out" / "step0" / "rank" / "dump_tensor_data"
    stored = sorted(path.name for path in directory.iterdir())
    assert stored and all("relu" in name or "1.Linear.backward" in name for name in stored)
    assert "Functional.relu.0.forward.input.0.pt" in stored
    header = files(tmp_path)["dump"]
    assert header["task"] == "statistics" and header["dump_data_dir"].endswith("dump_tensor_data")
    entries = dump(tmp_path)
    assert "data_name" in entries["Functional.relu.0.forward"]["output"][0]
    assert "data_name" not in entries["Functional.linear.0.forward"]["output"][0]


def test_without_extra_info_there_are_no_side_files(tmp_path: Path) -> None:
    path = config(tmp_path, level="mix")
    run(MODEL + "train()", path)
    assert set(files(tmp_path)) == {"dump", "stack", "construct"}
    before = dump(tmp_path)
    run(MODEL + "train()", with_top(path, extra_info=False))  # into the same directory
    assert set(files(tmp_path)) == {"dump"}
    after = dump(tmp_path)
    for entry in before.values():
        entry.pop("is_recompute", None)  # is read from the stack
    assert after == before


@pytest.mark.parametrize(
    ("level", "present", "absent"),
    [("CORE", {"linear"}, {"relu", "arange"}), ("FOCUS", {"linear", "relu"}, {"arange"}),
     ("ALL", {"linear", "relu", "arange"}, set())],
)
def test_risk_level(tmp_path: Path, level: str, present: set[str], absent: set[str]) -> None:
    code = MODEL + """
debugger.start(model=model)
torch.arange(3); model(x).sum().backward()
debugger.stop(); debugger.step()
"""
    run(code, with_top(config(tmp_path, level="mix"), risk_level=level))
    entries = dump(tmp_path)
    names = {name.split(".")[1] for name in entries if not name.startswith("Module.")}
    assert present <= names and not absent & names
    assert "Module.0.act.ReLU.forward.0" in entries
    assert ("Functional.relu.0.backward" in entries) == ("relu" in present)


def test_constructor_arguments_win_over_the_file(tmp_path: Path) -> None:
    path = config(tmp_path, task="tensor", level="L0", step=[5], list=["nothing"])
    run(MODEL.replace(
        "PrecisionDebugger(sys.argv[1])",
        "PrecisionDebugger(sys.argv[1], task='structure', dump_path=sys.argv[2], level='mix',"
        " step=[1])",
    ) + "train(); train()", path, tmp_path / "other")
    assert os.listdir(tmp_path / "other") == ["step1"]
    header = json.loads((tmp_path / "other" / "step1" / "rank" / "dump.json").read_text())
    assert (header["task"], header["level"]) == ("structure", "mix")
    assert not (tmp_path / "out").exists()
