"""Task overflow_check: which calls are hits, what is stored of them, when it ends."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks import WINDOW, dump_of, run_ranks
from recording import PLUMB, config, dump, run

# The observed run of upstream: two linear layers and a division by zero.
NETWORK = """
import os, sys
os.environ["PLUMBLINE_LOG_LEVEL"] = "1"  # with the information lines
import torch
from torch import nn
from torch.nn import functional as F
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(3)
torch.set_num_threads(1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 2), nn.Linear(2, 5)
    def forward(self, x):
        h = self.a(x)
        h = torch.relu(h / (h - h))
        return F.relu(self.b(h))
net, x = Net(), torch.randn(3, 4)
debugger = PrecisionDebugger(sys.argv[1])
for step in range(int(sys.argv[2])):
    debugger.start(net)
    net(x).sum().backward()
    debugger.stop()
    debugger.step()
    net.zero_grad()
print("trained")
"""
HITS = [
    "Tensor.__truediv__.0.forward", "Torch.relu.0.forward", "Functional.linear.1.forward",
    "Functional.relu.0.forward", "Tensor.sum.0.forward", "Torch.ones_like.0.forward",
    "Functional.linear.1.backward", "Tensor.__truediv__.0.backward",
    "Tensor.__sub__.0.backward", "Functional.linear.0.backward",
]
FIRST_FILES = [f"Tensor.__truediv__.0.forward.{part}.pt"
               for part in ("input.0", "input.1", "output.0")]

# Runs each case in a step of its own; a case is code below `sys.argv[2:]`.
CASES = """
import sys
import numpy as np
import torch
from torch.nn import functional as F
from plumbline.pytorch import PrecisionDebugger
torch.set_num_threads(1)
debugger = PrecisionDebugger(sys.argv[1])
inf, nan = float("inf"), float("nan")
for case in sys.argv[2:]:
    body = {}
    code = compile(case, "case", "exec")
    debugger.start()
    exec(code)
    debugger.stop()
    debugger.step()
"""


def rank_directory(directory: Path, step: int = 0) -> Path:
    """Where a step of an undistributed run lies."""
    return directory / "out" / f"step{step}" / "rank"


def files(directory: Path, step: int = 0) -> list[str]:
    """The tensor files of a step."""
    data = rank_directory(directory, step) / "dump_tensor_data"
    return sorted(path.name for path in data.iterdir())


def stored(directory: Path, name: str, step: int = 0) -> torch.Tensor:
    """One of them."""
    tensor: torch.Tensor = torch.load(
        rank_directory(directory, step) / "dump_tensor_data" / name)
    return tensor


def examined(directory: Path, step: int = 0) -> list[str]:
    """The forward entries that were looked at."""
    return list(json.loads((rank_directory(directory, step) / "stack.json").read_text()))


def cases(directory: Path, codes: list[str], **options: Any) -> list[dict[str, Any]]:
    """The hits of each case."""
    options.setdefault("overflow_nums", -1)
    path = config(directory, task="overflow_check", **options)
    run(CASES, path, *codes)
    return [dump(directory, step) for step in range(len(codes))]


def test_the_observed_run_of_upstream(tmp_path: Path) -> None:
    done = run(NETWORK, config(tmp_path, task="overflow_check", overflow_nums=-1), 2)
    for step in (0, 1):
        entries = dump(tmp_path, step)
        assert list(entries) == HITS
        first = entries[HITS[0]]
        assert list(first) == ["input_args", "input_kwargs", "output", "is_recompute",
                               "overflow_origin"]
        assert list(first["output"][0]) == [
            "type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad",
            "Max_except_inf_nan", "Min_except_inf_nan", "data_name", "overflow_reason"]
        assert "overflow_reason" not in first["input_args"][0]
        assert first["output"][0]["overflow_reason"] == "inf"
        assert first["overflow_origin"] == "origin"
        assert entries["Torch.relu.0.forward"]["overflow_origin"] == "propagated"
        names = {tensor["data_name"] for entry in entries.values()
                 for part in ("input_args", "input", "output")
                 for tensor in entry.get(part, ()) if tensor and "data_name" in tensor}
        assert set(files(tmp_path, step)) == names
        assert len(examined(tmp_path, step)) == 8, "all forward calls, hit or not"
        assert json.loads((rank_directory(tmp_path, step) / "construct.json").read_text()) == {}
        output = stored(tmp_path, FIRST_FILES[2], step)
        assert not torch.isfinite(output).all() and output.shape == (3, 2)
    log = done.stdout + done.stderr
    assert log.count("Overflow detected.") == 20
    assert "ends successfully" not in log


@pytest.mark.parametrize("limit", [1, 2])
def test_ends_after_the_wanted_number_of_hits(tmp_path: Path, limit: int) -> None:
    path = config(tmp_path, task="overflow_check", overflow_nums=limit, count="all")
    done = run(NETWORK, path, 4)
    log = done.stdout + done.stderr
    assert "trained" in log
    assert list(dump(tmp_path)) == HITS[:limit]
    assert [name for name in files(tmp_path) if "truediv" in name] == FIRST_FILES
    assert examined(tmp_path)[-1] == HITS[limit - 1], "nothing is examined after the last hit"
    assert log.count("Overflow detected.") == limit
    assert log.count(f"Reached the preset overflow times, current overflow times: {limit}.") == 1
    assert log.count("ends successfully") == 1, "the end box is printed once"
    assert not (tmp_path / "out" / "step1").exists()


def test_nothing_is_hooked_after_the_last_hit(tmp_path: Path) -> None:
    run("""
import sys, torch
from plumbline.pytorch import PrecisionDebugger
plain = torch.Tensor.__dict__["__truediv__"] if "__truediv__" in torch.Tensor.__dict__ else None
originals = (torch.nn.functional.relu, torch.relu, torch.Tensor.mul)
layer = torch.nn.Linear(2, 2)
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(layer)
torch.ones(1) / 0
debugger.stop()
debugger.step()
debugger.start(layer)
assert (torch.nn.functional.relu, torch.relu, torch.Tensor.mul) == originals
assert torch.relu is originals[1] and not layer._forward_hooks and not layer._forward_pre_hooks
""", config(tmp_path, task="overflow_check", level="mix"))


TABLE: list[tuple[str, list[str]]] = [
    ("torch.ones(2, dtype=torch.float16) * torch.tensor(7e4)", ["Tensor.__mul__.0.forward"]),
    ("(torch.full((2,), 6e4, dtype=torch.float16)).mul(2)", ["Tensor.mul.0.forward"]),
    ("torch.full((2,), 3e38, dtype=torch.bfloat16).mul(10)", ["Tensor.mul.0.forward"]),
    ("torch.full((2,), 3e38).mul(10)", ["Tensor.mul.0.forward"]),
    ("torch.full((2,), 1e308, dtype=torch.float64).mul(1e10)", ["Tensor.mul.0.forward"]),
    # Finite in its own dtype; upstream squeezes it through float32.
    ("torch.full((2,), 1e300, dtype=torch.float64).mul(2)", []),
    ("torch.full((2,), 65504., dtype=torch.float16).mul(1)", []),
    ("torch.tensor([2**31 - 1], dtype=torch.int32).mul(2)", []),
    ("torch.tensor([True]).logical_not()", []),
    ("torch.complex(torch.ones(2), torch.tensor([1., nan])).mul(1)",
     ["Tensor.mul.0.forward"]),
    ("torch.ones(0).div(0)", []),
    ("torch.ones(3, device='meta').div(0)", []),
    ("torch.ones(2).clamp(max=inf)", []),   # a Python float
    ("torch.log(torch.tensor(-1.0))", ["Torch.log.0.forward"]),  # without dimensions
    ("torch.where(torch.tensor([True, False]), torch.tensor(1.), other=torch.tensor([0., nan]))",
     ["Torch.where.0.forward"]),
    ("torch.cat([torch.zeros(1), torch.tensor([-inf])])", ["Torch.cat.0.forward"]),
    ("torch.log(torch.zeros(2))", ["Torch.log.0.forward"]),
    ("torch.tensor([[nan, 1.]]).to_sparse().mul(2)", ["Tensor.mul.0.forward"]),
    # Memory that is only filled may hold anything before.
    ("torch.full((2,), nan).fill_(1)", []),
    ("torch.full((2,), 1.).fill_(inf)", ["Tensor.fill_.0.forward"]),
    ("torch.add(torch.ones(2), 1, out=torch.full((2,), nan))", []),
    ("torch.zeros(2, 2).t()[0].expand(3, 2).contiguous()", []),
]


def test_what_is_a_hit(tmp_path: Path) -> None:
    found = cases(tmp_path, [code for code, _ in TABLE])
    wrong = [(code, list(entries)) for (code, wanted), entries in zip(TABLE, found, strict=True)
             if [name for name in entries if name.split(".")[1] not in
                 ("__getitem__", "tensor", "indices", "values", "full")] != wanted]
    assert wrong == []
    at = {code: entries for (code, _), entries in zip(TABLE, found, strict=True)}
    log = at["torch.log(torch.zeros(2))"]["Torch.log.0.forward"]
    assert log["output"][0]["overflow_reason"] == "-inf" and log["overflow_origin"] == "origin"
    cat = at["torch.cat([torch.zeros(1), torch.tensor([-inf])])"]["Torch.cat.0.forward"]
    assert cat["overflow_origin"] == "propagated"
    assert cat["input_args"][0][1]["overflow_reason"] == "-inf"
    where = found[14]["Torch.where.0.forward"]
    assert where["input_kwargs"]["other"]["overflow_reason"] == "nan"
    assert "Torch.where.0.forward.kwargs.other.pt" in files(tmp_path, 14)
    for step, (_, wanted) in enumerate(TABLE):
        if not wanted and not found[step]:
            assert files(tmp_path, step) == [], "calls that are no hits write nothing"


IN_PLACE: list[tuple[str, str, str, list[float]]] = [
    # code, entry, file of an input, its values before the call
    ("x = torch.ones(3); x.mul_(inf)", "Tensor.mul_.0.forward", "input.0", [1, 1, 1]),
    ("x = torch.ones(3); x += inf", "Tensor.__iadd__.0.forward", "input.0", [1, 1, 1]),
    ("x = torch.tensor([1., inf]); x[1] = 0", "Tensor.__setitem__.0.forward", "input.0",
     [1, float("inf")]),
    ("x = torch.ones(3); torch.div(torch.ones(3), 0, out=x)", "Torch.div.0.forward", "kwargs.out",
     [1, 1, 1]),
    ("x = torch.tensor([-1., inf]); F.relu(x, inplace=True)", "Functional.relu.0.forward",
     "input.0", [-1, float("inf")]),
    ("x = torch.tensor([-1., inf]); F.relu(x, True)", "Functional.relu.0.forward", "input.0",
     [-1, float("inf")]),
    ("m = torch.zeros(2); F.batch_norm(torch.full((4, 2), inf), m, torch.ones(2), training=True)",
     "Functional.batch_norm.0.forward", "input.1", [0, 0]),
    ("x = torch.ones(3); torch._foreach_mul_([x, torch.ones(2)], inf)",
     "Torch._foreach_mul_.0.forward", "input.0.0", [1, 1, 1]),
]


def test_inputs_are_stored_as_they_were_before_the_call(tmp_path: Path) -> None:
    found = cases(tmp_path, [code for code, *_ in IN_PLACE])
    for step, (code, entry, place, values) in enumerate(IN_PLACE):
        if entry.startswith("Torch._foreach") and entry not in found[step]:
            continue  # not an API of every version's list
        assert entry in found[step], code
        assert stored(tmp_path, f"{entry}.{place}.pt", step).tolist() == values, code
    first = found[0]["Tensor.mul_.0.forward"]
    assert first["input_args"][0]["Max"] == 1.0 and first["overflow_origin"] == "origin"
    assert first["output"][0]["Max"] == float("inf")


# What a call that returns None leaves in its first argument.
LEFT: list[tuple[str, str, str | None]] = [
    # code, entry, overflow_origin (None: no hit)
    ("x = torch.ones(3); x[1] = inf", "Tensor.__setitem__.0.forward", "origin"),
    ("x = torch.ones(3); x[:] = torch.tensor([1., nan, 2.])", "Tensor.__setitem__.0.forward",
     "propagated"),
    ("x = torch.tensor([inf, 1.]); x[0] = 0.", "Tensor.__setitem__.0.forward", "propagated"),
    ("x = torch.ones(3); x[1] = 2.", "Tensor.__setitem__.0.forward", None),
    ("x = torch.ones(3, dtype=torch.int64); x[1] = 2", "Tensor.__setitem__.0.forward", None),
]


def test_what_a_call_without_result_writes_is_judged(tmp_path: Path) -> None:
    found = cases(tmp_path, [code + "; x.neg()" for code, *_ in LEFT])
    for step, (code, entry, origin) in enumerate(LEFT):
        assert found[step].get(entry, {}).get("overflow_origin") == origin, code
    left = stored(tmp_path, "Tensor.__setitem__.0.forward.output.0.pt")
    assert left.tolist() == [1, float("inf"), 1]
    assert found[0]["Tensor.__setitem__.0.forward"]["input_args"][0]["Max"] == 1.0
    # The finite result of overwriting an Inf: no later call is blamed for anything.
    assert "Tensor.neg.0.forward" not in found[2]
    assert found[0]["Tensor.neg.0.forward"]["overflow_origin"] == "propagated"


def test_views_are_stored_without_their_storage(tmp_path: Path) -> None:
    cases(tmp_path, ["x = torch.zeros(1000, 1000); x[0, :3].div(0)"])
    path = rank_directory(tmp_path) / "dump_tensor_data" / "Tensor.div.0.forward.input.0.pt"
    assert path.stat().st_size < 2048
    assert stored(tmp_path, path.name).shape == (3,)


MODULES = """
import sys
import torch
from torch import nn
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(0)
torch.set_num_threads(1)
class Overwrites(nn.Module):
    def forward(self, x):
        x.view(-1).mul_(2)   # of another Python object
        return x / 0
class Divide(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.last = nn.ReLU(inplace=True)
    def forward(self, x):
        return self.last(x) * self.scale / 0
model = nn.Sequential(nn.Sequential(nn.Linear(3, 2), Divide()), Overwrites())
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(model)
torch.manual_seed(1)
model(torch.randn(4, 3)).sum().backward()
debugger.stop()
debugger.step()
"""


def test_modules(tmp_path: Path) -> None:
    run(MODULES, config(tmp_path, task="overflow_check", level="L0", overflow_nums=-1))
    entries = dump(tmp_path)
    divide, parent = "Module.0.1.Divide.forward.0", "Module.0.Sequential.forward.0"
    assert list(entries).index(divide) < list(entries).index(parent)
    assert list(entries[divide]) == ["input_args", "input_kwargs", "output", "parameters",
                                     "is_recompute", "overflow_origin"]
    assert entries[divide]["parameters"]["scale"]["data_name"] == f"{divide}.parameters.scale.pt"
    # Its relu works on its input in place: the copy made for the relu serves the outer call.
    before = stored(tmp_path, f"{divide}.input.0.pt")
    assert (before < 0).any()
    assert "Module.0.0.Linear.forward.0" not in entries
    assert entries["Module.0.0.Linear.parameters_grad"].keys() == {"weight", "bias"}
    # Written to through a view that only the module knows: no value is better than a wrong one.
    assert entries["Module.1.Overwrites.forward.0"]["input_args"][0]["Max"] is None
    log = (rank_directory(tmp_path) / "dump_error_info.log").read_text()
    assert "inputs_overwritten: 1" in log and "Module.1.Overwrites.forward.0: input.0" in log
    construct = json.loads((rank_directory(tmp_path) / "construct.json").read_text())
    assert construct["Module.0.0.Linear.forward.0"] == parent, "all calls, hit or not"


def test_gradients_of_parameters(tmp_path: Path) -> None:
    run("""
import sys, torch
from plumbline.pytorch import PrecisionDebugger
model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Linear(1, 1))
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(model)
model(torch.tensor([[1e-30, 1.0]])).sum().mul(1e38).mul(1e38).backward()
debugger.stop()
debugger.step()
""", config(tmp_path, task="overflow_check", level="L0", overflow_nums=-1))
    gradient = dump(tmp_path)["Module.1.Linear.parameters_grad"]["bias"][0]
    assert gradient["overflow_reason"] == "inf"
    assert gradient["data_name"] == "Module.1.Linear.parameters_grad.bias.pt"
    assert "overflow_origin" not in dump(tmp_path)["Module.1.Linear.parameters_grad"]


def test_calls_that_raise_and_filters(tmp_path: Path) -> None:
    raising = """
try: torch.add(torch.tensor([nan]), torch.ones(2, 3), out=torch.ones(1, dtype=torch.int8))
except RuntimeError: pass
"""
    found = cases(tmp_path, [raising, "torch.ones(1).div(0).relu()"], list=["relu", "add"])
    assert [list(entries) for entries in found] == [["Torch.add.0.forward"],
                                                    ["Tensor.relu.0.forward"]]
    assert "output" not in found[0]["Torch.add.0.forward"]


def test_only_origins_count(tmp_path: Path) -> None:
    code = "x = torch.ones(1).div(0); x.relu(); torch.ones(1).log2().log(); x.neg()"
    found = cases(tmp_path, [code], overflow_nums=2)
    assert list(found[0]) == ["Tensor.div.0.forward", "Tensor.relu.0.forward",
                              "Tensor.log.0.forward"]


def test_consequences_fill_no_disk(tmp_path: Path) -> None:
    """A polluted weight: nothing is an origin. The search goes on, and stores a hundred hits."""
    code = "w = torch.tensor([nan])\nfor _ in range(150): torch.relu(w)\ntorch.ones(1).div(0)"
    found = cases(tmp_path, [code, "torch.ones(1).div(0)"], overflow_nums=2)
    assert len(found[0]) == 101 and list(found[0])[-1] == "Tensor.div.0.forward"
    assert len(files(tmp_path)) == 100 * 2 + 2
    log = (rank_directory(tmp_path) / "dump_error_info.log").read_text()
    assert "hits_left_out: 50" in log
    assert list(found[1]) == ["Tensor.div.0.forward"]


# What is left of an overflow on devices that saturate: code, entry, class of it.
SATURATED: list[tuple[str, str | None, str]] = [
    ("torch.full((2,), 65504., dtype=torch.float16).mul(1)", "Tensor.mul.0.forward", "propagated"),
    ("torch.full((2,), 32752., dtype=torch.float16).mul(-2)", "Tensor.mul.0.forward", "origin"),
    ("torch.full((2,), 6e4, dtype=torch.float16).add(1000)", None, ""),
    ("torch.finfo(torch.float32).max * torch.ones(2)", "Tensor.__rmul__.0.forward", "origin"),
    ("torch.ones(2).mul(torch.finfo(torch.bfloat16).max).bfloat16().neg()",
     "Tensor.neg.0.forward", "propagated"),
    ("torch.tensor([127], dtype=torch.int8).mul(1)", None, ""),
]


def test_saturated_tensors(tmp_path: Path) -> None:
    codes = [*(code for code, *_ in SATURATED), "torch.ones(1).div(0)"]
    found = cases(tmp_path, codes, saturated=True, overflow_nums=1)
    for step, (code, entry, origin) in enumerate(SATURATED):
        if entry is None:
            assert found[step] == {}, code
            continue
        record = found[step][entry]
        assert record["overflow_origin"] == origin, code
        assert record["output"][0]["overflow_reason"] == "saturated", code
        assert stored(tmp_path, record["output"][0]["data_name"], step).isfinite().all()
    assert list(found[-1]) == ["Tensor.div.0.forward"], "the first hit that counts"
    (tmp_path / "off").mkdir()
    found = cases(tmp_path / "off", codes[:1])
    assert found == [{}]


@pytest.mark.parametrize("value", [-5, 0, 1.5, True, "1"])
def test_limits_that_are_none(tmp_path: Path, value: object) -> None:
    done = run("""
import sys
import plumbline._core as core
try:
    core.load_config(sys.argv[1], None, None, None, None)
except ValueError as error:
    print(error)
""", config(tmp_path, task="overflow_check", overflow_nums=value))
    assert f"overflow_check.overflow_nums: is {json.dumps(value)} (expected -1" in done.stdout


def test_a_kill_right_after_a_hit_loses_nothing(tmp_path: Path) -> None:
    done = run("""
import os, signal, sys, torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
debugger.start()
torch.ones(3).add(1).div(0)
os.kill(os.getpid(), signal.SIGKILL)
""", config(tmp_path, task="overflow_check", overflow_nums=-1), check=False)
    assert done.returncode == -signal.SIGKILL
    names = [f"Tensor.div.0.forward.{part}.pt" for part in ("input.0", "output.0")]
    assert files(tmp_path) == names, "in place before training went on"
    subprocess.run([PLUMB, "recover", str(tmp_path / "out")], check=True, timeout=60,
                   capture_output=True)
    entries = dump(tmp_path)
    assert list(entries) == ["Tensor.div.0.forward"]
    assert entries["Tensor.div.0.forward"]["output"][0]["data_name"] == names[1]
    assert stored(tmp_path, names[1]).isinf().all()
    assert "Tensor.add.0.forward" in examined(tmp_path)


def test_communication(tmp_path: Path) -> None:
    path = config(tmp_path, task="overflow_check", overflow_nums=-1)
    run_ranks(tmp_path, WINDOW + """
debugger.start()
values = torch.full((2,), 3e38)
dist.all_reduce(values)                      # the sum overflows
clean = torch.ones(2)
work = dist.all_reduce(clean, async_op=True)
work.wait()
late = torch.full((3,), 2e38)
work = dist.all_reduce(late, async_op=True)
torch.ones(1).add(1)
work.wait()
debugger.stop()
debugger.step()
leave()
""", path)
    for rank in (0, 1):
        entries = dump_of(tmp_path, rank)
        assert list(entries) == ["Distributed.all_reduce.0.forward",
                                 "Distributed.all_reduce.2.forward"]
        for name, count, value in (("Distributed.all_reduce.0.forward", 2, 3e38),
                                   ("Distributed.all_reduce.2.forward", 3, 2e38)):
            assert entries[name]["overflow_origin"] == "origin"
            data = tmp_path / "out" / "step0" / f"rank{rank}" / "dump_tensor_data"
            before = torch.load(data / f"{name}.input.0.pt")
            assert torch.equal(before, torch.full((count,), value)), "before the call"
            assert torch.load(data / f"{name}.output.0.pt").isinf().all()


def test_threads_share_the_limit(tmp_path: Path) -> None:
    done = run("""
import sys, threading, torch
from plumbline.pytorch import PrecisionDebugger
torch.set_num_threads(1)
debugger = PrecisionDebugger(sys.argv[1])
debugger.start()
barrier = threading.Barrier(4)
def work():
    values = torch.ones(400000)  # read and stored without the interpreter lock
    barrier.wait()
    for _ in range(3):
        values.div(0)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
debugger.stop()
debugger.step()
""", config(tmp_path, task="overflow_check", overflow_nums=3))
    entries = dump(tmp_path)
    assert len(entries) == 3
    assert (done.stdout + done.stderr).count("Overflow detected.") == 3
    assert set(files(tmp_path)) == {entry[part][0]["data_name"] for entry in entries.values()
                                    for part in ("input_args", "output")}
