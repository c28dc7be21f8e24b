"""A process that is forked while its training is watched ends, and leaves its parent's files."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

TRAINING = """
import json, os, signal, sys
import torch
from torch import nn
from plumbline.pytorch import PrecisionDebugger, TrainerMon, black_box

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters())
monitor = TrainerMon("monitor.json", params_have_main_grad=False)
monitor.set_monitor(model, optimizer=optimizer)
box = black_box(model, optimizer, path="box", budget=None)
probe = PrecisionDebugger("probe.json")
probe.monitor(model)

def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(3, 4)).sum().backward()
        optimizer.step()

train(5)
child = os.fork()
if child == 0:
    signal.alarm(30)
    train(3)
    monitor.stop()
    sys.exit(0)
print("status", os.waitpid(child, 0)[1])
print("ended", json.loads(open(box.directory + "/black_box.json").read())["ended"])
train(5)
monitor.stop()
box.stop()
probe.stop()
"""


def test_a_forked_child_ends_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "monitor.json").write_text(json.dumps({
        "xy_distribution": True, "param_distribution": True, "step_count_per_record": 100}))
    (tmp_path / "probe.json").write_text(json.dumps({
        "task": "grad_probe", "dump_path": "probe", "grad_probe": {"grad_level": "L2"}}))
    done = subprocess.run([sys.executable, "-c", TRAINING], cwd=tmp_path, timeout=120,
                          capture_output=True, text=True)
    assert done.returncode == 0 and "status 0\nended None" in done.stdout, (
        done.stdout + done.stderr)
    [path] = (tmp_path / "monitor_output").glob("*/param_0-99.csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [int(row["step"]) for row in rows] == [step for step in range(10) for _ in range(4)]
    [path] = (tmp_path / "box").glob("*/black_box.json")
    assert json.loads(path.read_text())["steps"] == 10
    assert len(list((tmp_path / "probe/rank0").glob("grad_summary_*.csv"))) == 10
