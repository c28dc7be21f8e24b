"""Task grad_probe: files against NumPy, bounds, odd gradients, iterations, a kill."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording import config, run

# Trains a small net with the probe; the gradients go into a file of their own.
TRAIN = """
import sys, numpy, torch
from plumbline.pytorch import PrecisionDebugger
config, kept, dtype = sys.argv[1], sys.argv[2], getattr(torch, sys.argv[3])
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 5))
net = net.to(dtype)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
if config:
    debugger = PrecisionDebugger(config)
    debugger.monitor(net)
    debugger.start(net)
arrays = {}
for step in range(3):
    net(torch.randn(7, 20, dtype=dtype)).square().sum().backward()
    for name, parameter in net.named_parameters():
        arrays[f"{step} {name}"] = parameter.grad.float().numpy().copy()
    optimizer.step()
    optimizer.zero_grad()
if config:
    debugger.stop()
    PrecisionDebugger.step()
numpy.savez(kept, *[parameter.detach().float().numpy() for parameter in net.parameters()],
            **arrays)
"""


def rows_of(path: Path) -> list[dict[str, str]]:
    """A grad_summary csv; its bytes are as upstream writes them."""
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf") and data.count(b"\n") == data.count(b"\r\n")
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def bf16(value: float) -> float:
    """Rounded to bfloat16, ties to even."""
    bits = int(np.float32(value).view(np.uint32))
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(np.uint32(bits).view(np.float32))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the training gives without the probe, by dtype."""
    path = tmp_path_factory.mktemp("bare") / "kept.npz"
    found = {}
    for dtype in ("float32", "bfloat16"):
        run(TRAIN, "", path, dtype)
        found[dtype] = dict(np.load(path))
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("level", ["L0", "L1", "L2"])
def test_files_say_what_numpy_says(tmp_path: Path, bare: dict[str, Any], level: str,
                                   dtype: str) -> None:
    path = config(tmp_path, task="grad_probe", grad_level=level, bounds=[-0.5, 0, 0.25])
    run(TRAIN, path, tmp_path / "kept.npz", dtype)
    kept = np.load(tmp_path / "kept.npz")
    rank = tmp_path / "out" / "rank0"
    for step in range(3):
        rows = rows_of(rank / f"grad_summary_{step}.csv")
        assert [row["param_name"] for row in rows] == ["0.weight", "0.bias", "2.weight", "2.bias"]
        for row in rows:
            check_row(row, kept[f"{step} {row['param_name']}"], level, dtype)
            if level != "L0":
                signs = np.load(rank / f"step{step}" / f"{row['param_name']}.npy")
                assert signs.dtype == bool
                assert np.array_equal(signs, kept[f"{step} {row['param_name']}"] > 0)
    assert (rank / "step0").exists() == (level != "L0")
    for name, array in bare[dtype].items():
        assert array.tobytes() == kept[name].tobytes(), name


def check_row(row: dict[str, str], gradient: np.ndarray[Any, Any], level: str,
              dtype: str) -> None:
    """One row against the gradient as float32."""
    columns = {"L0": ["MD5"], "L1": [], "L2": ["(-inf, -0.5]", "(-0.5, 0]", "(0, 0.25]",
                                               "(0.25, inf)", "=0"]}[level]
    assert list(row) == ["param_name", *columns, "max", "min", "norm", "shape"]
    assert row["shape"] == str(list(gradient.shape))
    assert float(row["max"]) == gradient.max() and float(row["min"]) == gradient.min()
    norm = np.sqrt((gradient.astype(np.float64) ** 2).sum())
    assert float(row["norm"]) == (bf16(norm) if dtype == "bfloat16" else np.float32(norm))
    if level == "L0":
        assert row["MD5"] == hashlib.md5(gradient.tobytes()).hexdigest()
    if level == "L2":
        shares = [gradient <= -0.5, (gradient > -0.5) & (gradient <= 0),
                  (gradient > 0) & (gradient <= 0.25), gradient > 0.25, gradient == 0]
        assert [float(row[name]) for name in columns] == [share.mean() for share in shares]


# Odd gradients; each parameter is called after what its gradient is.
ODD = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
def parameter(gradient, shape=None, dtype=torch.float32):
    one = torch.nn.Parameter(torch.zeros(len(gradient) if shape is None else shape, dtype=dtype))
    one.grad = torch.tensor(gradient, dtype=dtype).reshape(one.shape)
    return one
net = torch.nn.Module()
net.example = parameter([9.3, 5.4, -1.0, -12.3])
net.main = parameter([1.0])
net.main.main_grad = torch.tensor([-3.0, ], dtype=torch.float64)
net.frozen = torch.nn.Parameter(torch.zeros(2))
net.empty = parameter([], (0, 4))
net.nan = parameter([float("nan"), 1.0, -1.0, 0.0])
net.infinite = parameter([float("inf"), -float("inf"), -0.0])
net.scalar = parameter([2.5], ())
net.complex = parameter([1j], dtype=torch.complex64)
net.strided = torch.nn.Parameter(torch.zeros(3, 2))
net.strided.grad = torch.arange(6.0).reshape(2, 3).t() - 2
net.sparse = torch.nn.Parameter(torch.zeros(4, 2))
net.sparse.grad = torch.sparse_coo_tensor([[1]], [[-1.0, 2.0]], (4, 2))
net.short = parameter([1e-7, 60000.0, 60000.0, -1.0], dtype=torch.float16)
net.negated = torch.nn.Parameter(torch.zeros(2))
net.negated.grad = torch.complex(torch.zeros(2), torch.ones(2)).conj().imag
debugger = PrecisionDebugger(sys.argv[1])
debugger.monitor(net)
torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1).step()
debugger.stop()
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, str]], Path, str]:
    """Rows by parameter, the step's directory, what was said."""
    directory = tmp_path_factory.mktemp("odd")
    path = config(directory, task="grad_probe", grad_level="L2", bounds=[-10, 0, 10])
    said = run(ODD, path).stdout
    rank = directory / "out" / "rank0"
    rows = {row["param_name"]: row for row in rows_of(rank / "grad_summary_0.csv")}
    return rows, rank / "step0", said


def shares_of(row: dict[str, str]) -> list[float]:
    return [float(row[name]) for name in
            ("(-inf, -10]", "(-10, 0]", "(0, 10]", "(10, inf)", "=0")]


def test_odd_gradients(odd: tuple[dict[str, dict[str, str]], Path, str]) -> None:
    rows, step, said = odd
    assert shares_of(rows["example"]) == [0.25, 0.25, 0.5, 0.0, 0.0]
    assert rows["main"]["max"] == "-3.0"  # main_grad wins over grad
    assert "frozen" not in rows and not (step / "frozen.npy").exists()
    empty = rows["empty"]
    assert (empty["max"], empty["min"], empty["norm"], empty["=0"]) == ("nan", "nan", "0.0", "0")
    assert empty["shape"] == "[0, 4]" and np.load(step / "empty.npy").shape == (0, 4)
    assert shares_of(rows["nan"]) == [0.0, 0.5, 0.25, 0.25, 0.25]
    assert [rows["nan"][key] for key in ("max", "min", "norm")] == ["nan"] * 3
    assert np.load(step / "nan.npy").tolist() == [False, True, False, False]
    infinite = rows["infinite"]
    assert [infinite[key] for key in ("max", "min", "norm")] == ["inf", "-inf", "inf"]
    assert rows["scalar"]["shape"] == "[]" and np.load(step / "scalar.npy").shape == ()
    assert "complex" not in rows and "the gradient of complex is not recorded" in said
    assert np.load(step / "strided.npy").tolist() == [[False, True], [False, True], [False, True]]
    assert shares_of(rows["sparse"]) == [0.0, 0.875, 0.125, 0.0, 0.75]
    assert rows["short"]["norm"] == "inf"  # no float16 is that large
    assert np.load(step / "short.npy").tolist() == [True, True, True, False]
    assert rows["negated"]["max"] == "-1.0"


BOUNDS = """
import json, sys, torch
from plumbline.debugger import DebuggerBase
from plumbline.pytorch import PrecisionDebugger
base = json.loads(sys.argv[1])
for number, section in enumerate(json.loads(sys.argv[2])):
    base["grad_probe"], base["dump_path"] = section, f"{sys.argv[3]}/{number}"
    with open(sys.argv[3] + "/config.json", "w") as file:
        json.dump(base, file)
    try:
        debugger = PrecisionDebugger(sys.argv[3] + "/config.json")
    except ValueError as error:
        print(json.dumps(str(error)))
        continue
    net = torch.nn.Linear(2, 2)
    debugger.monitor(net)
    net(torch.ones(1, 2)).sum().backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    debugger.stop()
    debugger._close()
    DebuggerBase._instance = None
    with open(f"{base['dump_path']}/rank0/grad_summary_0.csv", encoding="utf-8-sig") as file:
        print(json.dumps(file.readline().strip()))
"""


def test_settings(tmp_path: Path) -> None:
    """Bounds and the other keys: what is accepted and how it is spelled, what is an error."""
    wrong: list[tuple[dict[str, Any], list[str]]] = [
        ({"bounds": [1, 0]}, ["grad_probe.bounds: is 0 (expected more than 1"]),
        ({"bounds": [0, 0]}, ["grad_probe.bounds: is 0 (expected more than 0"]),
        ({"bounds": ["a"]}, ['is "a" (expected every element to be a number)']),
        ({"bounds": [True]}, ["every element to be a number"]),
        ({"bounds": [2**63]}, ["from -2^63 to 2^63 - 1"]),
        ({"bounds": [-1e30]}, ["from -2^63 to 2^63 - 1"]),
        ({"bounds": 3}, ["a list of ascending numbers"]),
        # all at once
        ({"grad_level": "L3", "param_list": "x", "bounds": [1, 0], "step_by": "epoch",
          "packed": 1}, ["grad_level", "param_list", "bounds", "step_by", "packed"]),
    ]
    right = [
        ({"bounds": []}, '"(-inf, inf)",=0,'),
        ({"bounds": [0]}, '"(-inf, 0]","(0, inf)",=0,'),
        ({"bounds": [-(2**63), -1e-05, 0.5, 3.0]},
         '"(-inf, -9223372036854775808]","(-9223372036854775808, -1e-05]","(-1e-05, 0.5]",'
         '"(0.5, 3.0]","(3.0, inf)",=0,'),
    ]
    sections = [section for section, _ in wrong] + [{"grad_level": "L2", **one} for one, _ in right]
    done = run(BOUNDS, json.dumps({"task": "grad_probe"}), json.dumps(sections), tmp_path)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('"')]
    assert len(answers) == len(sections)
    for (_, expected), answer in zip(wrong, answers, strict=False):
        assert all(text in answer for text in expected), answer
    for (_, header), answer in zip(right, answers[len(wrong):], strict=True):
        assert answer == f"param_name,{header}max,min,norm,shape"


# Two optimizers; the second one skips iteration 2. A list of modules, a list of parameters.
ITERATIONS = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
one, other = torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False)
first = torch.optim.SGD(one.parameters(), lr=0.1)
second = torch.optim.Adam(other.parameters(), lr=0.1)
debugger = PrecisionDebugger(sys.argv[1])
debugger.monitor([one, other])
debugger.monitor([one, other])
for iteration in range(4):
    one.weight.grad = torch.full((2, 2), 1.0 + iteration)
    other.weight.grad = torch.full((2, 2), -100.0)  # not yet what its optimizer gets
    first.step()
    other.weight.grad = torch.full((2, 2), -1.0 - iteration)
    if iteration != 2:
        second.step()
debugger.stop()
"""


def maxima(rank: Path) -> dict[int, dict[str, float]]:
    return {step: {row["param_name"]: float(row["max"])
                   for row in rows_of(rank / f"grad_summary_{step}.csv")}
            for step in range(8) if (rank / f"grad_summary_{step}.csv").exists()}


def test_steps_are_iterations_or_optimizer_steps(tmp_path: Path) -> None:
    for name in ("iteration", "optimizer"):
        (tmp_path / name).mkdir()
        path = config(tmp_path / name, task="grad_probe", step_by=name, step=["0-6"])
        said = run(ITERATIONS, path).stdout
        assert ("several optimizers step" in said) == (name == "optimizer")
    found = maxima(tmp_path / "iteration" / "out" / "rank0")
    assert found == {0: {"0.weight": 1.0, "1.weight": -1.0},
                     1: {"0.weight": 2.0, "1.weight": -2.0},
                     2: {"0.weight": 3.0},
                     3: {"0.weight": 4.0, "1.weight": -4.0}}
    found = maxima(tmp_path / "optimizer" / "out" / "rank0")
    assert found[0] == {"0.weight": 1.0, "1.weight": -100.0}
    assert found[1] == {"0.weight": 1.0, "1.weight": -1.0} and sorted(found) == list(range(7))


AGAIN = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
net = torch.nn.Linear(2, 2)
debugger = PrecisionDebugger(sys.argv[1])
debugger.set_init_step(5)
debugger.monitor(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
hooks = torch.optim.optimizer_hooks = __import__("sys").modules["torch.optim.optimizer"]
assert len(hooks._global_optimizer_pre_hooks) == 1
debugger._close()
assert not hooks._global_optimizer_pre_hooks
optimizer.step()
try:
    debugger.monitor("net")
except ValueError as error:
    print(error)
"""


def test_an_earlier_run_stays_and_names_are_told(tmp_path: Path) -> None:
    path = config(tmp_path, task="grad_probe", step=[5, 7], param_list=["weight", "wieght"])
    for _ in range(2):
        said = run(AGAIN, path).stdout
    assert '"wieght" is no parameter of the model' in said
    assert "monitor(): model must be a module or a list of modules (got str)" in said
    assert "rank0_earlier1" in said
    for name in ("rank0", "rank0_earlier1"):
        rank = tmp_path / "out" / name
        steps = sorted(one.name for one in rank.iterdir() if not one.name.startswith("."))
        assert steps == ["grad_summary_5.csv", "grad_summary_7.csv", "step5", "step7"]
        assert [row["param_name"] for row in rows_of(rank / "grad_summary_5.csv")] == ["weight"]


FOREVER = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
net = torch.nn.Linear(512, 512)
PrecisionDebugger(sys.argv[1]).monitor(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
net(torch.ones(1, 512)).sum().backward()
while True:
    optimizer.step()
"""


def test_a_kill_leaves_whole_steps(tmp_path: Path) -> None:
    path = config(tmp_path, task="grad_probe")
    rank = tmp_path / "out" / "rank0"
    process = subprocess.Popen([sys.executable, "-c", FOREVER, str(path)],
                               stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (rank / "grad_summary_20.csv").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    tables = sorted(rank.glob("grad_summary_*.csv"))
    assert len(tables) > 20
    for table in tables:
        step = rank / table.stem.replace("grad_summary_", "step")
        assert len(rows_of(table)) == 2
        assert np.load(step / "weight.npy").all() and np.load(step / "bias.npy").all()
    # No directory under its name is part of a step.
    for step in rank.glob("step*"):
        assert len(list(step.iterdir())) == 2
