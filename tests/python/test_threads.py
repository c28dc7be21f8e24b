"""Threads that are inside recorded calls while another one ends the step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Tensors of this size are read without the interpreter lock, so that steps end in between.
SCRIPT = """
import sys, threading, torch
from plumbline.pytorch import PrecisionDebugger
dump_path, level, task = sys.argv[1:]
debugger = PrecisionDebugger(dump_path=dump_path, level=level, task=task)
model = torch.nn.Sequential(torch.nn.Linear(600, 600))
done = threading.Event()
results = []
def work():
    torch.manual_seed(0)
    x = torch.ones(600, 600, requires_grad=True)
    while not done.is_set():
        y = model(x).relu()
        y.sum().backward()
        x.grad = None
    results.append(y.sum().item())
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(8):
    debugger.start(model)
    torch.add(torch.ones(2000, 1000), 1)
    debugger.stop()
    debugger.step()
done.set()
for thread in threads:
    thread.join()
assert len(set(results)) == 1, results
print("trained")
"""


@pytest.mark.parametrize("level", ["L1", "mix"])
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_step_ends_while_other_threads_record(level: str, task: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = tmp_path / "train.py"  # a call stack shows lines of files only
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(out), level, task],
        capture_output=True, text=True, timeout=240, check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "trained" in done.stdout
    assert "Bad file descriptor" not in done.stdout + done.stderr
    for step in range(8):
        directory = out / f"step{step}" / "rank"
        data = json.loads((directory / "dump.json").read_text())["data"]
        assert "Torch.add.0.forward" in data  # the main thread's call, numbered anew in each step
        assert "output" in data["Torch.add.0.forward"]
        if task == "tensor":
            for value in data["Torch.add.0.forward"]["output"]:
                file = directory / "dump_tensor_data" / value["data_name"]
                assert file.stat().st_size > 2000 * 1000 * 4
        for stack in json.loads((directory / "stack.json").read_text()).values():
            assert stack  # a call that began in the step before would have none
