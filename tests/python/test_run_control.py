"""What a script can steer while it runs: own APIs, steps, tokens, dump_enable, data loaders."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest
from recording import config, dump, run
from test_settings import MODEL, with_top

START = """
import sys, json, os, types, time
import torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
x = torch.ones(3, requires_grad=True)
"""


def steps(tmp_path: Path) -> list[str]:
    """Step directories of a run, sorted."""
    return sorted(os.listdir(tmp_path / "out")) if (tmp_path / "out").exists() else []


def test_custom_apis_are_recorded_and_restored(tmp_path: Path) -> None:
    run(START + """
def double(t, *, times=2):
    'Doc.'
    return torch.mul(t, times)
kernels = types.ModuleType("kernels")
kernels.double = original = double
class Ops:
    @staticmethod
    def twice(t): return t * 2
    @classmethod
    def name_of(cls, t): return cls.__name__
class Child(Ops): pass
debugger.register_custom_api(kernels, "double")
debugger.register_custom_api(kernels, "double")          # twice: a warning
debugger.register_custom_api(Ops, "twice", "Mine")
debugger.register_custom_api(Child, "name_of", "Child")  # inherited
from_closed = kernels.double(x)                          # the window is closed
assert kernels.double.__doc__ == "Doc." and Ops.twice(x).sum() == 6
debugger.start()
kernels.double(x, times=3).sum().backward()
kernels.double(x)
assert Ops.twice(x).sum() == 6 and Ops().twice(x).sum() == 6
assert Child.name_of(x) == "Child" and Ops.name_of(x) == "Ops"
debugger.restore_custom_api(kernels, "double")
assert kernels.double is original
kernels.double(x)
debugger.restore_custom_api(Ops, "twice"); debugger.restore_custom_api(Child, "name_of")
assert type(vars(Ops)["twice"]) is staticmethod and "name_of" not in vars(Child)
debugger.stop(); debugger.step()
""", config(tmp_path))
    entries = dump(tmp_path)
    assert entries["kernels.double.0.forward"]["input_kwargs"]["times"]["value"] == 3
    assert entries["kernels.double.0.backward"]["output"][0]["Max"] == 3.0
    assert "kernels.double.1.forward" in entries and "kernels.double.2.forward" not in entries
    assert {"Mine.twice.0.forward", "Mine.twice.1.forward"} <= set(entries)
    assert "Child.name_of.0.forward" in entries
    # What a registered function calls is inside it; the call after restoring is not.
    assert [name for name in entries if name.startswith("Torch.mul")] == ["Torch.mul.0.forward"]


@pytest.mark.parametrize("call", [
    'register_custom_api(os, "no_such")', 'register_custom_api(os, "sep")',
    'register_custom_api(os, "getcwd", 5)', 'restore_custom_api(os, "no_such")',
    "register_custom_api(os, 3)", "set_init_step(-1)", "set_init_step(True)",
    "set_init_step('2')", "start(rank_id=-1)", "start(rank_id=1.0)",
    "start(model=torch.nn.ReLU(), token_range=[2, 1])", "start(token_range=[0, 1])",
    "start(model=torch.nn.ReLU(), token_range=(0, 1, 2))",
    "start(model=torch.nn.ReLU(), token_range=[-1, 2])", "start(model=3, token_range=[0, 2])",
])
def test_wrong_arguments_are_refused_by_name(tmp_path: Path, call: str) -> None:
    result = run(START + f"""
try:
    debugger.{call}
except ValueError as error:
    print("refused:", error)
""", config(tmp_path))
    assert "refused:" in result.stdout
    text = result.stdout.split("refused:")[1]
    assert call.split("(")[0] in text and "(" in text
    assert steps(tmp_path) == []


def test_first_step_number_and_rank(tmp_path: Path) -> None:
    path = with_top(config(tmp_path, step=[7, 8]), rank=[3])
    run(START + """
debugger.set_init_step(6)
for _ in range(4):
    debugger.start(rank_id=3); torch.relu(x); debugger.stop(); debugger.step()
debugger.set_init_step(7)
debugger.start(rank_id=4); torch.relu(x); debugger.stop(); debugger.step()
""", path)
    assert steps(tmp_path) == ["step7", "step8"]
    assert os.listdir(tmp_path / "out" / "step7") == ["rank3"]


@pytest.mark.parametrize("level", ["L1", "L0", "mix"])
def test_token_range_records_those_calls(tmp_path: Path, level: str) -> None:
    run(MODEL + """
    pass
debugger.start(model=[model], token_range=(1, 2))
with torch.no_grad():
    for token in range(5):
        x = torch.full((3, 4), float(token))
        torch.abs(x); model(x); torch.neg(x)
debugger.stop(); debugger.step()
debugger.start(model=model, token_range=[9, 9]); model(x); debugger.stop(); debugger.step()
""", config(tmp_path, level=level))
    entries = dump(tmp_path)
    if level != "L0":
        # Work between the end of the last call and the next belongs to it; work before the first
        # does not.
        abs_of = [entry["input_args"][0]["Max"] for name, entry in entries.items()
                  if name.startswith("Torch.abs")]
        neg_of = [entry["input_args"][0]["Max"] for name, entry in entries.items()
                  if name.startswith("Torch.neg")]
        assert abs_of == [2.0, 3.0] and neg_of == [1.0, 2.0]
    if level != "L1":
        names = [name for name in entries if name.startswith("Module.0.1.Linear.forward")]
        assert names == ["Module.0.1.Linear.forward.0", "Module.0.1.Linear.forward.1"]
    assert steps(tmp_path) == ["step0"]


def test_random_save_lists_the_outer_calls(tmp_path: Path) -> None:
    run("""
import sys, random
import numpy as np
import torch
from plumbline.pytorch import random_save
random_save(sys.argv[1]); random_save(sys.argv[1])
torch.manual_seed(3); first = torch.rand(2)
torch.manual_seed(3); assert torch.equal(first, torch.rand(2))
random.randint(1, 3); np.random.rand(2); torch.empty(2).normal_()
try: torch.rand(-1)
except RuntimeError: pass
random.randint(1, 3)
""", tmp_path / "table")
    (path,) = (tmp_path / "table").iterdir()
    assert path.name.startswith("random_proc") and path.suffix == ".csv"
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == ["api_name", "stack"]
    assert [row[0] for row in rows] == [
        "torch_random.rand.0", "torch_random.rand.1", "python_random.randint.0",
        "numpy_random.rand.0", "tensor_random.normal_.0", "python_random.randint.1"]


def test_random_save_shows_the_call_site(tmp_path: Path) -> None:
    script = tmp_path / "draw.py"
    script.write_text("import torch\ndef draw():\n    return torch.rand(2)\ndraw()\n")
    run("""
import sys, runpy
from plumbline.pytorch import random_save
random_save(sys.argv[1]); runpy.run_path(sys.argv[2])
""", tmp_path / "table", script)
    (path,) = (tmp_path / "table").iterdir()
    with path.open(newline="") as file:
        stack = list(csv.reader(file))[1][1]
    assert stack.startswith(f"File {script}, line 3, in draw, \n return torch.rand(2) \n")


HOT = START + """
from plumbline.config_watch import ConfigWatch
ConfigWatch.interval_enabled = ConfigWatch.interval_disabled = 0.0
def write(text, clock=[0]):
    open(sys.argv[1], "w").write(text)
    clock[0] += 1
    os.utime(sys.argv[1], ns=(10**18, 10**18 + clock[0]))
def change(**fields):
    write(json.dumps({**base, **fields}))
base = json.load(open(sys.argv[1]))
def loop(count=1):
    for _ in range(count):
        debugger.start(); torch.relu(x); debugger.stop(); debugger.step()
"""


def test_dump_enable_switches_a_running_loop(tmp_path: Path) -> None:
    result = run(HOT + """
loop()                                    # step 0: off
change(dump_enable=True); loop(2)         # 1, 2
change(dump_enable=False); loop(2)        # 3, 4
write('{"dump_enable": true,'); loop()    # 5: broken, stays off
change(dump_enable=True); loop()          # 6
write("not json"); loop()                 # 7: broken, off
change(dump_enable=True, statistics={"summary_mode": "md5"}); loop()  # 8, with other settings
write(json.dumps({k: v for k, v in base.items() if k != "dump_enable"})); loop()  # 9: still on
""", with_top(config(tmp_path), dump_enable=False))
    assert steps(tmp_path) == ["step1", "step2", "step6", "step8", "step9"]
    output = dump(tmp_path, 8)["Torch.relu.0.forward"]["output"][0]
    assert "md5" in output and "md5" not in dump(tmp_path, 6)["Torch.relu.0.forward"]["output"][0]
    text = result.stdout + result.stderr
    assert text.count("Recording is switched off until the file changes again") == 2


def test_dump_enable_in_mid_step_keeps_what_was_recorded(tmp_path: Path) -> None:
    run(HOT + """
debugger.start(); torch.relu(x)
change(dump_enable=False); debugger.stop()          # seen here
debugger.start(); torch.sin(x); debugger.stop()     # off
change(dump_enable=True, statistics={"summary_mode": "md5"})
debugger.start(); torch.cos(x); debugger.stop()     # on again, the step keeps its settings
debugger.step(); loop()
""", with_top(config(tmp_path), dump_enable=True))
    entries = dump(tmp_path)
    assert list(entries) == ["Torch.relu.0.forward", "Torch.cos.0.forward"]
    assert "md5" not in entries["Torch.cos.0.forward"]["output"][0]
    assert "md5" in dump(tmp_path, 1)["Torch.relu.0.forward"]["output"][0]


def test_dump_enable_can_change_the_level_and_keeps_constructor_arguments(tmp_path: Path) -> None:
    code = HOT.replace("PrecisionDebugger(sys.argv[1])",
                       "PrecisionDebugger(sys.argv[1], step=[0, 1])")
    run(code + """
mine = types.ModuleType("mine"); mine.half = lambda t: t / 2
debugger.register_custom_api(mine, "half")
model = torch.nn.Sequential(torch.nn.Linear(3, 3))
def train():
    debugger.start(model=model); mine.half(model(x)).sum().backward()
    debugger.stop(); debugger.step()
train(); change(level="mix", dump_enable=True); train(); train()
""", with_top(config(tmp_path, level="L1"), dump_enable=True))
    assert steps(tmp_path) == ["step0", "step1"]
    first, second = dump(tmp_path), dump(tmp_path, 1)
    assert not any(name.startswith("Module.") for name in first)
    assert "Module.0.Linear.forward.0" in second and "mine.half.0.forward" in second
    assert {name for name in second if not name.startswith("Module.")} == set(first)


def test_without_dump_enable_the_file_is_read_once(tmp_path: Path) -> None:
    run(HOT + 'loop(); change(dump_enable=False); loop(); write("{"); loop()', config(tmp_path))
    assert steps(tmp_path) == ["step0", "step1", "step2"]


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_every_batch_of_a_data_loader_is_a_step(tmp_path: Path, level: str) -> None:
    result = run("""
import sys, torch
from torch.utils.data import DataLoader
from plumbline.pytorch import PrecisionDebugger
model = torch.nn.Sequential(torch.nn.Linear(2, 2))
debugger = PrecisionDebugger(sys.argv[1], model=model)
next_before = torch.utils.data.dataloader._BaseDataLoaderIter.__next__
for epoch in range(2):
    for batch in DataLoader(torch.arange(6.0).reshape(3, 2), batch_size=1):
        debugger.start()   # ignored
        torch.relu(model(batch)).sum().backward()
        debugger.stop(); debugger.step()
    torch.sin(batch)       # between epochs: outside
""", with_top(config(tmp_path, level=level, step=["1-4"]), enable_dataloader=True))
    assert "enable_dataloader: is deprecated" in result.stdout + result.stderr
    assert steps(tmp_path) == ["step1", "step2", "step3", "step4"]
    for step, largest in ((1, 3.0), (2, 5.0), (3, 1.0), (4, 3.0)):
        entries = dump(tmp_path, step)
        linear: dict[str, Any] = entries["Functional.linear.0.forward"]
        assert linear["input_args"][0]["Max"] == largest
        assert "Torch.relu.0.backward" in entries and "Torch.sin.0.forward" not in entries
        assert ("Module.0.Linear.forward.0" in entries) == (level == "mix")
