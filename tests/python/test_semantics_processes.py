"""Interrupts, compiled regions, worker processes: each in an interpreter of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recording import config, dump, run

INTERRUPTS = """
import signal, sys, torch, torch.nn as nn
import plumbline.pytorch.adapter as adapter
from plumbline.pytorch import PrecisionDebugger

real = adapter.describe_tensor
pending = []
def describe_tensor(*args):  # runs inside a hook, for tensors whose memory is not their value
    if pending:
        raise pending.pop()
    return real(*args)
adapter.describe_tensor = describe_tensor

class Stopping(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func == torch.matmul:
            raise KeyboardInterrupt("from an API")
        return super().__torch_function__(func, types, args, kwargs or {})

debugger = PrecisionDebugger(sys.argv[1])
class Pass(nn.Module):
    def forward(self, x):
        return torch.relu(x)

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
through = Pass()
debugger.start(nn.ModuleList([model, through]))
caught = []
sparse = torch.ones(2, 2).to_sparse()
for error in (KeyboardInterrupt("from a hook"), SystemExit(3)):
    pending.append(error)
    try:
        through(sparse)
        model(torch.ones(1, 8))
        torch.sigmoid(torch.ones(2))
    except (KeyboardInterrupt, SystemExit) as error:
        caught.append(str(error))
try:
    torch.matmul(torch.ones(2, 2).as_subclass(Stopping), torch.ones(2, 2))
except KeyboardInterrupt as error:
    caught.append(str(error))
assert caught == ["from a hook", "3", "from an API"], caught
torch.add(torch.ones(2), 1)
model(torch.ones(1, 8))

# Interrupts at arbitrary instants: each is seen once by the program.
rung = [0]
def ring(*_):
    rung[0] += 1
    raise KeyboardInterrupt("timer")
signal.signal(signal.SIGALRM, ring)
seen = calls = 0
while seen < 60:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.00003 * seen, 1.0)
        try:
            while True:
                model(torch.randn(4, 8)).sum().backward()
                calls += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        seen += 1
assert rung[0] == seen, (rung, seen)
last = model(torch.ones(1, 8))
torch.cos(torch.ones(2))
debugger.stop()
debugger.step()
print(calls)
"""


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_interrupts_go_through_and_the_files_stay_whole(tmp_path: Path, level: str) -> None:
    run(INTERRUPTS, config(tmp_path, level=level))
    entries = dump(tmp_path)
    if level != "L0":
        assert "output" not in entries["Torch.matmul.0.forward"]
        assert "output" in entries["Torch.add.0.forward"]
        assert "output" in entries["Torch.cos.0.forward"]
    if level != "L1":
        names = [n for n in entries if n.startswith("Module.0.0.Linear.forward.")]
        assert "output" in entries[names[-1]]
    for name in ("stack.json", "construct.json"):
        json.loads((tmp_path / "out/step0/rank" / name).read_text())


COMPILE = """
import json, sys, torch, torch.nn as nn
way, when, backend, path = sys.argv[1:5]
def count():
    from torch._dynamo.utils import counters
    return [counters["stats"]["unique_graphs"], sorted(counters["graph_break"]),
            counters["frames"]["total"]]
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), Block(), nn.Linear(4, 2))
def compiled():
    if way == "root":
        return torch.compile(model, backend=backend)
    if way == "part":
        model[1] = torch.compile(model[1], backend=backend)
    if way == "method":
        model[1].compile(backend=backend)
    if way == "function":
        return torch.compile(lambda x: model(x) * 2, backend=backend)
    return model
if when == "before":
    call = compiled()
debugger = None
if path != "none":
    from plumbline.pytorch import PrecisionDebugger
    debugger = PrecisionDebugger(path)
if when == "after":
    call = compiled()
values = []
for step in range(4):  # steps 0 and 2 of the loop are recorded
    if debugger and step % 2 == 0:
        debugger.start(call if way == "root" else model)
        if when == "inside" and step == 0:
            call = compiled()
    elif when == "inside" and step == 0:
        call = compiled()
    torch.sigmoid(torch.ones(1))
    y = call(torch.randn(3, 4))
    y.sum().backward()
    if debugger and step % 2 == 0:
        debugger.stop(); debugger.step()
    values.append(y.sum().item().hex())
values += [p.grad.sum().item().hex() for p in model.parameters()]
print(json.dumps([values, count()]))
"""


def compile_run(way: str, when: str, backend: str, path: object) -> tuple[Any, str]:
    done = run(COMPILE, way, when, backend, path)
    return json.loads(done.stdout.strip().splitlines()[-1]), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("way", "when", "backend", "levels"),
    [
        ("root", "after", "aot_eager", ["L0", "mix"]),
        ("part", "inside", "eager", ["mix"]),
        ("method", "inside", "eager", ["mix"]),
        ("function", "inside", "eager", ["L0", "L1"]),
        ("function", "before", "eager", ["mix"]),
    ],
)
def test_compiled_regions_are_left_alone_and_it_is_said_once(
    tmp_path: Path, way: str, when: str, backend: str, levels: list[str]
) -> None:
    expected, _ = compile_run(way, when, backend, "none")
    assert expected[1][0] > 0
    for level in levels:
        directory = tmp_path / level
        directory.mkdir()
        value, text = compile_run(way, when, backend, config(directory, level=level))
        assert value == expected, level  # numbers, graphs, breaks, frames compiled
        assert text.count("torch.compile region") == 1, text
        entries = dump(directory)
        assert not [n for n in entries if ".a.Linear" in n or n.startswith("Torch.relu")]
        if level != "L0":
            assert "Torch.sigmoid.0.forward" in entries
        if level != "L1" and way in ("part", "method"):
            assert "Module.2.Linear.backward.0" in entries
        if level != "L1" and way == "part":  # at the boundary, once the model has it at start()
            assert "Module.1.OptimizedModule.forward.0" in dump(directory, 1)
        log = (directory / "out/step0/rank/dump_error_info.log").read_text()
        assert "compiled_regions" in log


WORKERS = """
import sys, torch, torch.nn as nn
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return torch.sub(torch.full((4,), float(i)), 0.5).relu()
if __name__ == "__main__":
    path, workers, method = sys.argv[1:]
    from plumbline.pytorch import PrecisionDebugger
    debugger = PrecisionDebugger(path)
    model = nn.Sequential(nn.Linear(4, 4))
    debugger.start(model)
    total = torch.zeros(())
    loader = DataLoader(Data(), batch_size=4, num_workers=int(workers),
                        multiprocessing_context=method if int(workers) else None)
    for batch in loader:
        total = torch.add(total, model(batch).detach().sum() * 0 + batch.sum())
    debugger.stop(); debugger.step()
    print(total.item())
"""


@pytest.mark.parametrize(("workers", "method"), [(0, "fork"), (2, "fork"), (2, "spawn")])
def test_workers_of_a_data_loader_leave_nothing(tmp_path: Path, workers: int, method: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(WORKERS)
    path = config(tmp_path, level="mix")
    done = subprocess.run(
        [sys.executable, str(script), str(path), str(workers), method],
        capture_output=True, text=True, timeout=120, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == str(sum(4 * max(i - 0.5, 0) for i in range(8)))
    entries = dump(tmp_path)
    own = sum(name.startswith("Torch.sub.") for name in entries)
    assert own == (8 if workers == 0 else 0)
    assert sum(name.startswith("Torch.add.") for name in entries) == 2
    assert "Module.0.Linear.forward.1" in entries
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["step0"]
    assert sorted(p.name for p in (tmp_path / "out/step0").iterdir()) == ["rank"]
