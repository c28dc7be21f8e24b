"""`make test-gpu`: values of tensors on the accelerator of this machine, and what they cost.

Without one every test is skipped and says so. Each recording runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

TESTS = Path(__file__).resolve().parents[1] / "python"
_ASK = getattr(torch, "accelerator", None)
DEVICE = str(_ASK.current_accelerator()) if _ASK is not None and _ASK.is_available() else ""
pytestmark = pytest.mark.skipif(not DEVICE, reason="this machine has no accelerator for PyTorch")

_TRAINING = """
import json, sys, torch
from torch import nn
from plumbline.pytorch import PrecisionDebugger
folder, device, task = sys.argv[1:]
torch.backends.cuda.matmul.allow_tf32 = False
debugger = PrecisionDebugger(task=task, level="mix", dump_path=folder)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 8))
model.to(device)
inputs = torch.randn(32, 64).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
if device != "cpu":
    torch.cuda.set_sync_debug_mode("error") if device.startswith("cuda") else None
for _ in range(2):
    debugger.start(model=model)
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
    debugger.stop()
    debugger.step()
if device.startswith("cuda"):
    torch.cuda.set_sync_debug_mode("default")
"""
_DTYPES = """
import json, sys, torch
sys.path.insert(0, sys.argv[3])
from test_device_values import COMPLEX, FLOATS, INTEGERS, samples
from plumbline.pytorch import PrecisionDebugger
folder, device = sys.argv[1:3]
debugger = PrecisionDebugger(task="statistics", level="L1", dump_path=folder)
for where in (device, "cpu"):
    placed = [sample.to(where) for dtype in (*FLOATS, *INTEGERS, *COMPLEX, torch.bool)
              for sample in samples(dtype)]
    debugger.start()
    for tensor in placed:
        torch.clone(tensor)
    debugger.stop()
    debugger.step()
"""
_COST = """
import sys, time, torch
from plumbline.pytorch.device.late_values import LateValues
class Nobody:
    wants_digest = False
    def add_rows(self, *arguments): pass
    def drop_values(self, *arguments): raise SystemExit(arguments)
device = torch.device(sys.argv[1])
values = LateValues()
values.use(Nobody())
small = [torch.randn(512, 512, device=device, dtype=torch.bfloat16) for _ in range(50)]
large = torch.randn(1 << 29, device=device, dtype=torch.bfloat16)
wait = torch.accelerator.synchronize
def step(tensors, times):
    for _ in range(times):
        for tensor in tensors:
            values.reduce(tensor)
    values.send()
step(small, 1); step([large], 1); wait(); values.receive()
begin = time.perf_counter()
step(small, 100)
host_ms = 1e3 * (time.perf_counter() - begin)
wait(); values.receive()
begin = time.perf_counter()
step([large], 20); wait()
seconds = (time.perf_counter() - begin) / 20
copied = torch.empty_like(large)
copied.copy_(large); wait()
begin = time.perf_counter()
for _ in range(20): copied.copy_(large)
wait()
copy_seconds = (time.perf_counter() - begin) / 20
print(f"5,000 tensors: {host_ms:.1f} ms of the host")
print(f"1 GiB bfloat16: {2**30 / seconds / 1e9:.0f} GB/s read; "
      f"a copy on the device moves {2**31 / copy_seconds / 1e9:.0f} GB/s")
"""


def run(program: str, *arguments: str) -> str:
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", program, *arguments],
                           check=False, capture_output=True, text=True, env=dict(os.environ))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_training_is_recorded_without_a_wait(tmp_path: Path, task: str) -> None:
    """On CUDA an operation that waits raises, in the sync debug mode of PyTorch."""
    run(_TRAINING, str(tmp_path), DEVICE, task)
    for step in range(2):
        rank = tmp_path / f"step{step}/rank"
        assert not (rank / "dump_error_info.log").exists()
        text = (rank / "dump.json").read_text()
        assert '"Max": null' not in text and '"Max": ' in text


def test_every_dtype_has_the_statistics_of_the_cpu(tmp_path: Path) -> None:
    run(_DTYPES, str(tmp_path), DEVICE, str(TESTS))
    here, there = (json.loads((tmp_path / f"step{step}/rank/dump.json").read_text())["data"]
                   for step in range(2))
    assert here.keys() == there.keys()
    for name, entry in here.items():
        one, other = entry["output"][0], there[name]["output"][0]
        assert one.keys() == other.keys()
        for key, value in one.items():
            wanted = other[key]
            if isinstance(value, float) and value == value and wanted not in (value, None):
                room = 2.0**-7 * abs(wanted) if "16" in one["dtype"] else 2.0**-20 * abs(wanted)
                assert abs(value - wanted) <= room, (name, key, value, wanted)
            else:
                assert value == wanted or value != value, (name, key, value, wanted)


def test_what_it_costs(capsys: pytest.CaptureFixture[str]) -> None:
    begin = time.time()
    text = run(_COST, DEVICE)
    with capsys.disabled():
        print(f"\n{DEVICE}: {text}({time.time() - begin:.0f} s)")
    assert "5,000 tensors" in text
