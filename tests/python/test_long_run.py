"""Recording many steps costs no memory, and a slow disk stalls only the thread that records."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recording import PLUMB, config

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
    result = subprocess.run(
        [sys.executable, "-c", GROWTH, str(settings), str(tmp_path / "out"), str(STEPS),
         str(WARM_UP)],
        capture_output=True, text=True, timeout=100 + 2 * STEPS, check=True,
    )
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


@pytest.fixture(scope="module")
def slow_disk(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of a process whose tensor files take 50 ms each."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to make the disk slow with")
    folder = tmp_path_factory.mktemp("slow")
    (folder / "slow.c").write_text(SLOW_RENAME)
    command = [compiler, "-shared", "-fPIC", folder / "slow.c", "-o", folder / "slow.so", "-ldl"]
    subprocess.run(command, check=True)
    return dict(os.environ, LD_PRELOAD=str(folder / "slow.so"), PLUMBLINE_LOG_LEVEL="2")


def slowly(code: str, settings: Path, environment: dict[str, str]) -> list[float]:
    """Runs `code` and returns the list it prints."""
    result = subprocess.run(
        [sys.executable, "-c", code, str(settings)], capture_output=True, text=True,
        env=environment, timeout=120, check=False,
    )
    assert result.returncode in (0, -9), result.stderr
    numbers: list[float] = json.loads(result.stdout.strip().splitlines()[-1])
    return numbers


def test_waiting_for_a_slow_disk_does_not_hold_the_other_threads(
    tmp_path: Path, slow_disk: dict[str, str]
) -> None:
    settings = config(tmp_path, task="tensor")
    options = {**json.loads(settings.read_text()), "buffer_bytes": 10_000}
    settings.write_text(json.dumps(options))
    took, usual_gap, long_gaps = slowly(STALLS, settings, slow_disk)
    # 40 files of 50 ms, and memory for two of them: the recording thread waited for most.
    assert took > 1.0
    assert usual_gap < 0.02
    assert long_gaps < 10, f"{long_gaps} times the other thread stood still for more than 30 ms"
    entries = json.loads((tmp_path / "out/step0/rank/dump.json").read_text())["data"]
    assert len(entries) == 20
    assert len(list((tmp_path / "out/step0/rank/dump_tensor_data").iterdir())) == 40


# Three steps; how long stop() and step() take together. IS_CUT: killed at once afterwards.
WINDOWS = """
import json, os, signal, sys, time
import torch
from plumbline.pytorch import PrecisionDebugger
torch.set_num_threads(1)
torch.manual_seed(0)
debugger = PrecisionDebugger(sys.argv[1])
waited = []
for step in range(3):
    debugger.start()
    for _ in range(5): torch.neg(torch.randn(1000))
    began = time.perf_counter()
    debugger.stop()
    debugger.step()
    waited.append(time.perf_counter() - began)
print(json.dumps(waited), flush=True)
if IS_CUT: os.kill(os.getpid(), signal.SIGKILL)
"""


def async_config(folder: Path, async_dump: bool) -> Path:
    folder.mkdir()
    settings = config(folder, task="tensor", list=["neg"])
    options = {**json.loads(settings.read_text()), "async_dump": async_dump}
    settings.write_text(json.dumps(options))
    return settings


def entries_of(folder: Path, step: int) -> object:
    directory = folder / "out" / f"step{step}" / "rank"
    entries = json.loads((directory / "dump.json").read_text())["data"]
    assert not (directory / "dump_error_info.log").exists()
    for name in entries:
        for part in ("input", "output"):
            assert (directory / "dump_tensor_data" / f"{name}.{part}.0.pt").is_file()
    return entries


def test_async_dump_does_not_wait_for_the_disk_and_writes_the_same(
    tmp_path: Path, slow_disk: dict[str, str]
) -> None:
    program = WINDOWS.replace("IS_CUT", "False")
    settings = {mode: async_config(tmp_path / str(mode), mode) for mode in (True, False)}
    waited = {mode: slowly(program, settings[mode], slow_disk) for mode in settings}
    # 10 files of 50 ms per step.
    assert min(waited[False]) > 0.3
    assert max(waited[True][:2]) < 0.2
    for step in range(3):
        assert entries_of(tmp_path / "True", step) == entries_of(tmp_path / "False", step)
        names = sorted(path.name for path in (tmp_path / f"True/out/step{step}/rank").iterdir())
        assert ".dump.journal" not in names  # the exit waited for it


def test_async_dump_killed_after_step_is_recovered(
    tmp_path: Path, slow_disk: dict[str, str]
) -> None:
    settings = async_config(tmp_path / "run", True)
    slowly(WINDOWS.replace("IS_CUT", "True"), settings, slow_disk)
    subprocess.run([PLUMB, "recover", tmp_path / "run/out"], check=True, capture_output=True,
                   timeout=60)
    for step in range(3):
        directory = tmp_path / "run" / "out" / f"step{step}" / "rank"
        text = (directory / "dump.json").read_text()
        assert len(json.loads(text)["data"]) == 5
        for path in (directory / "dump_tensor_data").iterdir():
            assert not path.name.endswith(".tmp")
    # Files that were not written yet are counted, not named.
    assert "tensors_dropped" in (directory / "dump_error_info.log").read_text()
