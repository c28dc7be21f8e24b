"""Level debug: save() and debug.json, against a file of the real release 1.2.2."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from recording import PLUMB, config, run, run_script

DATA = Path(__file__).parents[1] / "data"
START = """
import sys, json, os
import torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
path = sys.argv[2]
def read():
    return json.load(open(path + "/debug.json"))["data"]
"""


def debug_run(
    tmp_path: Path, code: str, task: str = "statistics", **options: Any
) -> dict[str, Any]:
    """Entries of debug.json after running `code`."""
    rank = tmp_path / "out" / "rank"
    run(START + code, config(tmp_path, task=task, level="debug", **options), rank)
    entries: dict[str, Any] = json.loads((rank / "debug.json").read_text())["data"]
    return entries


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_same_file_as_upstream(tmp_path: Path, task: str) -> None:
    output = tmp_path / task
    script = DATA / "make_debug_level.py"
    run_script(script, output, "plumbline")
    expected = DATA / "upstream_1.2.2" / "debug_level" / task / "rank"
    ours, theirs = (
        json.loads((path / "debug.json").read_text()) for path in (output / "rank", expected)
    )
    for run_file in (ours, theirs):
        run_file["dump_data_dir"] = bool(run_file["dump_data_dir"])
    assert list(ours["data"]) == list(theirs["data"])
    assert json.dumps(strip_norms(ours)) == json.dumps(strip_norms(theirs))
    files = sorted(path.name for path in (output / "rank" / "dump_tensor_data").glob("*"))
    assert files == sorted(path.name for path in (expected / "dump_tensor_data").glob("*"))
    assert bool(files) == (task == "tensor")
    for name in files:
        tensor = torch.load(output / "rank" / "dump_tensor_data" / name, weights_only=True)
        reference = torch.load(expected / "dump_tensor_data" / name, weights_only=True)
        assert torch.equal(tensor, reference), name


def strip_norms(value: Any) -> Any:
    """The value with norms rounded: their last bit depends on the order of sums."""
    if isinstance(value, list):
        return [strip_norms(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: round(item, 4) if key == "Norm" and item is not None else strip_norms(item)
        for key, item in value.items()
    }


def test_gradients_fill_in_and_later_ones_replace(tmp_path: Path) -> None:
    entries = debug_run(tmp_path, """
x = torch.ones(3, requires_grad=True)
debugger.save([{"a.b": x, "n": 1}, (x.detach(), x)], "v")
debugger.stop()
assert read()["v_grad.0"] == [{"a.b": None, "n": None}, [None, None]]
x.sum().backward()
debugger.stop()
assert read()["v_grad.0"][0]["a.b"]["Max"] == 1.0
(x * 3).sum().backward()
debugger.step()
hooks = len(x._backward_hooks)
assert hooks == 0, hooks
(x * 9).sum().backward()   # of a later step: not of what was saved before
""")
    structure = entries["v_grad.0"]
    assert structure[0]["n"] is None and structure[1][0] is None
    assert structure[0]["a.b"]["Max"] == structure[1][1]["Max"] == 3.0


def test_tensor_file_of_the_last_gradient_wins(tmp_path: Path) -> None:
    entries = debug_run(tmp_path, """
x = torch.ones(3, requires_grad=True)
debugger.save(x, "x"); debugger.save([x], "list")
x.sum().backward()
debugger.stop()
(x * 3).sum().backward()
""", task="tensor")
    assert entries["x.0"]["data_name"] == "x.0.tensor..pt"
    assert entries["x_grad.0"]["data_name"] == "x_grad.0.tensor..pt"
    assert entries["list_grad.0"][0]["data_name"] == "list_grad.0.tensor.0.pt"
    directory = tmp_path / "out" / "rank" / "dump_tensor_data"
    assert len(list(directory.iterdir())) == 4
    for name in ("x_grad.0.tensor..pt", "list_grad.0.tensor.0.pt"):
        assert torch.equal(torch.load(directory / name, weights_only=True), torch.full((3,), 3.0))


def test_numbers_go_on_over_steps_and_step_filters_nothing(tmp_path: Path) -> None:
    entries = debug_run(tmp_path, """
for i in range(3):
    debugger.start()
    debugger.save(torch.full((2,), float(i)), "x", save_backward=False)
    debugger.stop(); debugger.step()
    assert list(read()) == [f"x.{k}" for k in range(i + 1)]
""")
    assert [entries[f"x.{i}"]["Max"] for i in range(3)] == [0.0, 1.0, 2.0]


def test_values_of_every_kind(tmp_path: Path) -> None:
    entries = debug_run(tmp_path, """
import collections, dataclasses
import numpy as np
Pair = collections.namedtuple("Pair", "x y")
@dataclasses.dataclass
class Data:
    t: object
    n: object = None
t = torch.tensor([1.0, float("nan")], requires_grad=True)
deep = t
for _ in range(450): deep = [deep]
for name, value in {
    "pair": Pair(t, None), "data": Data(t), "array": np.array([2.5, 1.0]), "np": np.float32(2),
    "empty": torch.empty(0), "dict": {1: t, (1, 2): object()}, "text": "\\u00e9", "deep": deep,
    "meta": torch.empty(3, device="meta"), "nan": float("nan"), "list": [], "set": {1},
    "big": 10**40,
}.items():
    debugger.save(value, name)
debugger.save(object(), "object")
(t * 2).sum().backward()
""")
    assert entries["pair.0"]["x"]["Max"] != entries["pair.0"]["x"]["Max"]  # NaN stays NaN
    assert entries["pair.0"]["y"] is None
    assert entries["pair_grad.0"] == {"x": entries["data_grad.0"]["t"], "y": None}
    assert entries["pair_grad.0"]["x"]["Max"] == 2.0
    assert entries["array.0"]["Max"] == 2.5
    assert entries["np.0"] == {"type": "float32", "value": 2.0}
    assert entries["empty.0"]["Max"] is None and entries["meta.0"]["Max"] is None
    assert set(entries["dict.0"]) == {"1", "(1, 2)"}
    assert entries["dict.0"]["(1, 2)"]["value"] is None
    assert entries["list.0"] == [] and entries["list_grad.0"] == []
    assert entries["big.0"]["value"] == 10**40
    assert "set.0" not in entries and "object.0" not in entries


def test_killed_process_loses_nothing_that_was_saved(tmp_path: Path) -> None:
    rank = tmp_path / "out" / "rank"
    code = START + """
import signal
x = torch.ones(3, requires_grad=True)
debugger.save({"x": x}, "v")
x.sum().backward()
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = run(code, config(tmp_path, level="debug"), rank, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert json.loads((rank / "debug.json").read_text())["data"] == {}
    # What the journal holds becomes debug.json by `plumb recover` (src/store/entry_table_test.cc).
    journal = (rank / ".dump.journal").read_bytes()
    assert journal.count(b"v_grad.0") == 2 and journal.count(b"torch.float32") == 2
    subprocess.run([PLUMB, "recover", tmp_path / "out"], check=True, capture_output=True)
    entries = json.loads((rank / "debug.json").read_text())["data"]
    assert entries["v.0"]["x"]["Max"] == 1.0 and entries["v_grad.0"]["x"]["Max"] == 1.0
    assert sorted(os.listdir(rank)) == [".run", "debug.json", "dump_error_info.log"]


def test_other_levels_say_that_nothing_is_saved(tmp_path: Path) -> None:
    result = run(START + """
debugger.start()
debugger.save(torch.ones(1), "x"); debugger.save(torch.ones(1), "y")
debugger.stop(); debugger.step()
""", config(tmp_path, level="L1"), tmp_path)
    assert (result.stdout + result.stderr).count('expected level "debug"') == 1


def test_unwritable_directory_does_not_stop_training(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "rank").write_text("a file where the directory should be")
    result = run(START + """
x = torch.ones(3, requires_grad=True)
for _ in range(3):
    debugger.save(x, "x"); x.sum().backward(); debugger.step()
print("trained", x.grad.sum().item())
""", config(tmp_path, level="debug"), tmp_path)
    assert "trained 9.0" in result.stdout
    assert (result.stdout + result.stderr).count("/out/rank") == 1


def test_gradients_stand_under_the_keys_of_the_values(tmp_path: Path) -> None:
    entries = debug_run(tmp_path, """
w = torch.ones(2, requires_grad=True)
keys = [float("nan"), float("inf"), 1.5, 10**30, None, True, (1, 2)]
debugger.save({key: w * 1 for key in keys}, "v")
w.sum().backward()
debugger.step()
""")
    assert list(entries["v.0"]) == ["NaN", "Infinity", "1.5", str(10**30), "null", "true", "(1, 2)"]
    assert list(entries["v_grad.0"]) == list(entries["v.0"])
