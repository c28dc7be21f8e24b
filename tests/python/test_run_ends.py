"""How runs end: killed after any number of entries, by os._exit, by an exception, by `step`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from forked_runs import run_forked
from recording import PLUMB, config, dump, run

pytest.importorskip("torch")

# Upstream rewrites its files at every 1000th entry.
ENDS = [("kill", calls) for calls in (1, 999, 1000, 1001, 2500)]
ENDS += [("exit", 1001), ("raise", 1001), ("raise", 3)]

CALLS = """
how, calls = name.split("_")
debugger = PrecisionDebugger(path)
debugger.start()
for call in range(int(calls)):
    torch.neg(torch.full((2,), float(call)))
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "exit":
    os._exit(7)
raise RuntimeError("the training itself failed")
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("ends")
    settings = {f"{how}_{calls}": {"list": ["neg"]} for how, calls in ENDS}
    codes, output = run_forked(directory, CALLS, settings)
    expected = {"kill": -signal.SIGKILL, "exit": 7, "raise": 1}
    assert codes == {name: expected[name.split("_")[0]] for name in settings}
    assert output.count("RuntimeError: the training itself failed") == 2
    return directory


@pytest.mark.parametrize(("how", "calls"), ENDS)
def test_every_entry_is_there(ended: Path, how: str, calls: int) -> None:
    directory = ended / f"{how}_{calls}"
    rank = directory / "out" / "step0" / "rank"
    if how != "raise":  # then the interpreter ends in order and the files are complete
        done = subprocess.run([PLUMB, "recover", directory / "out"],
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    entries = dump(directory)
    assert list(entries) == [f"Torch.neg.{call}.forward" for call in range(calls)]
    for call in (0, calls // 2, calls - 1):
        entry = entries[f"Torch.neg.{call}.forward"]
        assert entry["input_args"][0]["Max"] == call and entry["output"][0]["Min"] == -call
    assert list(json.loads((rank / "stack.json").read_text())) == list(entries)
    assert not list(rank.glob(".*journal*"))


# Calls whose results are read by calls that both recordings have, and one behind them.
KILLED = """
debugger = PrecisionDebugger(path)
debugger.start()
x = torch.arange(8.0).sin()
y = torch.neg(x)
if "killed" in name:
    torch.neg(y)
    os.kill(os.getpid(), signal.SIGKILL)
z = torch.neg(y)
torch.reshape(z, (2, 4))
debugger.stop()
debugger.step()
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("killed")
    names = ("killed_0", "killed_1", "whole_0")
    run_forked(directory, KILLED, {name: {} for name in names})
    for name in names[:2]:
        subprocess.run([PLUMB, "recover", directory / name / "out"], check=True,
                       capture_output=True, timeout=60)
    return directory


def answer(directory: Path, target: str, golden: str, out: Path) -> tuple[list[str], int]:
    """The lines printed, and the exit status under --fail-on unjudged."""
    sides = [directory / name / "out" / "step0" / "rank" for name in (target, golden)]
    done = subprocess.run([PLUMB, "compare", *sides, "-o", out, "--fail-on", "unjudged"],
                          capture_output=True, text=True, check=False)
    return done.stdout.splitlines(), done.returncode


def test_two_that_end_at_one_call_are_no_pass(killed: Path, tmp_path: Path) -> None:
    lines, status = answer(killed, "killed_0", "killed_1", tmp_path)
    assert lines[0] == ("not judged completely: both recordings end early, behind "
                        "Torch.neg.1.forward; the 4 paired calls show no wrong one"), lines
    assert status == 1


def test_what_a_killed_one_lacks_is_no_other_way(killed: Path, tmp_path: Path) -> None:
    lines, status = answer(killed, "killed_0", "whole_0", tmp_path)
    assert lines[0].startswith("not judged completely: the target's recording ends early, behind "
                               "Torch.neg.1.forward, 1 golden call without counterpart"), lines
    assert not any("another way" in line for line in lines), lines
    assert status == 1


STEPS = """
import os, sys
os.environ["PLUMBLINE_LOG_LEVEL"] = "1"
import torch
import torch.nn.functional as F
from plumbline.pytorch import PrecisionDebugger
model = torch.nn.Sequential(torch.nn.Linear(2, 2))
plain = (torch.add, F.linear, torch.Tensor.mul, type(model[0]).__call__)
hooks = lambda: (len(model[0]._forward_hooks), len(model[0]._forward_pre_hooks),
                 torch._C._len_torch_function_stack())
free = hooks()
debugger = PrecisionDebugger(sys.argv[1])
for step in range(6):
    debugger.start(model=model)
    inside = (torch.add, F.linear, torch.Tensor.mul, type(model[0]).__call__)
    wanted = step in (1, 3)
    assert any(a is not b for a, b in zip(inside, plain)) == wanted, step
    if not wanted:
        assert hooks() == free, step
    torch.add(model(torch.ones(1, 2)), step).sum().backward()
    debugger.stop()
    debugger.step()
    assert hooks() == free
    print("done", step, flush=True)
assert all(p.grad is not None and not p._backward_hooks for p in model.parameters())
"""


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_steps_one_and_three_of_six(tmp_path: Path, level: str) -> None:
    result = run(STEPS, config(tmp_path, step=[1, 3], level=level))
    assert sorted(os.listdir(tmp_path / "out")) == ["step1", "step3"]
    for step in (1, 3):
        entries = dump(tmp_path, step)
        assert entries["Torch.add.0.forward"]["input_args"][1] == {"type": "int", "value": step}
        assert "Torch.add.1.forward" not in entries
    before, _, after = result.stdout.partition("done 3")
    assert "ends successfully" not in before
    box, _, rest = after.partition("done 4")
    assert box.count("ends successfully") == 1, "at the start of step 4"
    assert "ends successfully" not in rest, "and once only"
