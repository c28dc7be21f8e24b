"""Recording many steps costs no memory, and a slow disk stalls only the thread that records."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recording import config, run

# PLUMBLINE_LONG_STEPS=1000 is the whole run of docs/design/crash_safety.md.
STEPS = int(os.environ.get("PLUMBLINE_LONG_STEPS", "200"))
WARM_UP = 60
# Measured growth over 200 and 1000 steps is 0 to 0.2 MB; what a step records is about 0.5 MB.
TOLERATED_MB = 2.0

GROWTH = """
import json, shutil, sys
import torch
from plumbline.pytorch import PrecisionDebugger
settings, out, steps, warm_up = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(20)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
debugger = PrecisionDebugger(settings)

def resident_mb():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

before = 0
for step in range(warm_up + steps):
    if step == warm_up: before = resident_mb()
    debugger.start(model)
    model(torch.randn(32, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    debugger.stop()
    debugger.step()
    shutil.rmtree(f"{out}/step{step - 3}", ignore_errors=True)
print(json.dumps(resident_mb() - before))
"""


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_memory_does_not_grow(tmp_path: Path, task: str) -> None:
    settings = config(tmp_path, task=task, level="mix")
    result = run(GROWTH, settings, tmp_path / "out", STEPS, WARM_UP)
    grown = json.loads(result.stdout.strip().splitlines()[-1])
    print(f"{task}: {grown:.3f} MB over {STEPS} steps")
    assert grown < TOLERATED_MB, f"{grown:.2f} MB over {STEPS} steps"
    last = tmp_path / "out" / f"step{WARM_UP + STEPS - 1}" / "rank" / "dump.json"
    assert json.loads(last.read_text())["data"]


# Every tensor file takes 50 ms to get its name.
SLOW_RENAME = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
int renameat(int a, const char *from, int b, const char *to) {
  int (*real)(int, const char *, int, const char *) = dlsym(RTLD_NEXT, "renameat");
  if (strstr(to, ".pt")) usleep(50000);
  return real(a, from, b, to);
}
"""
STALLS = """
import json, sys, threading, time
import torch
from plumbline.pytorch import PrecisionDebugger
torch.set_num_threads(1)
debugger = PrecisionDebugger(sys.argv[1])
tensors = [torch.randn(1000) for _ in range(20)]
gaps, running = [], True
def beat():
    last = time.perf_counter()
    while running:
        time.sleep(0.001)
        now = time.perf_counter()
        gaps.append(now - last)
        last = now
debugger.start()
thread = threading.Thread(target=beat)
thread.start()
began = time.perf_counter()
for tensor in tensors: torch.neg(tensor)
took = time.perf_counter() - began
running = False
thread.join()
debugger.stop()
print(json.dumps([took, sorted(gaps)[len(gaps) // 2], sum(gap > 0.03 for gap in gaps)]))
"""


def test_waiting_for_a_slow_disk_does_not_hold_the_other_threads(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to make the disk slow with")
    source, library = tmp_path / "slow.c", tmp_path / "slow.so"
    source.write_text(SLOW_RENAME)
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
    settings = config(tmp_path, task="tensor")
    options = {**json.loads(settings.read_text()), "buffer_bytes": 10_000}
    settings.write_text(json.dumps(options))
    result = subprocess.run(
        [sys.executable, "-c", STALLS, str(settings)], check=True, capture_output=True, text=True,
        env=dict(os.environ, LD_PRELOAD=str(library), PLUMBLINE_LOG_LEVEL="2"), timeout=120,
    )
    took, usual_gap, long_gaps = json.loads(result.stdout.strip().splitlines()[-1])
    # 40 files of 50 ms, and memory for two of them: the recording thread waited for most.
    assert took > 1.0
    assert usual_gap < 0.02
    assert long_gaps < 10, f"{long_gaps} times the other thread stood still for more than 30 ms"
    entries = json.loads((tmp_path / "out/step0/rank/dump.json").read_text())["data"]
    assert len(entries) == 20
    assert len(list((tmp_path / "out/step0/rank/dump_tensor_data").iterdir())) == 40
