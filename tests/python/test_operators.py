"""Level L2: what the dispatcher runs below one call of one API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recording import config, dump, run

CODE = """
import json, sys, torch, torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.rows = []
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.rows.append([str(func), result.double().norm().item()])
        return result
torch.manual_seed(0)
w, b = torch.randn(3, 4, requires_grad=True), torch.randn(3, requires_grad=True)
x = torch.randn(2, 5, 4)
if sys.argv[1] == "truth":  # what PyTorch itself runs
    forward, backward = Log(), Log()
    F.linear(x, w)
    with forward:
        z = F.linear(x, w, b)
    loss = z.pow(2).sum()
    gradient, = torch.autograd.grad(loss, z, retain_graph=True)
    with backward:
        torch.autograd.grad(z, [w, b], gradient)
    print(json.dumps([forward.rows, backward.rows]))
else:
    from plumbline.pytorch import PrecisionDebugger
    debugger = PrecisionDebugger(sys.argv[1])
    for step in range(2):
        w.grad = b.grad = None
        debugger.start()
        F.linear(x, w)
        F.linear(x, w, b).pow(2).sum().backward()
        debugger.stop(); debugger.step()
    assert torch._C._len_torch_dispatch_stack() == 0
print(w.grad is None or w.grad.sum().item().hex())
"""


def names_and_norms(entries: dict[str, Any]) -> list[list[Any]]:
    rows = []
    for name, entry in entries.items():
        prefix, operator, overload, _, direction = name.split(".")
        assert (prefix, direction) == ("Aten", "forward")
        rows.append([f"aten.{operator}.{overload}", entry["output"][0]["Norm"]])
    return rows


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_operators_are_those_that_the_framework_runs(tmp_path: Path, task: str) -> None:
    truth = json.loads(run(CODE, "truth").stdout.splitlines()[0])
    for at, direction in enumerate(("forward", "backward")):
        directory = tmp_path / direction
        directory.mkdir()
        path = config(directory, level="L2", task=task, list=[f"Functional.linear.1.{direction}"])
        run(CODE, path)
        for step in (0, 1):
            rows = names_and_norms(dump(directory, step))
            kept = [row for row in truth[at] if row[0] != "aten.detach.default"]
            assert sorted(name for name, _ in rows) == sorted(name for name, _ in kept)
            assert sorted(n for _, n in rows) == pytest.approx(sorted(n for _, n in kept), rel=1e-6)
        header = json.loads((directory / "out/step0/rank/dump.json").read_text())
        assert header["level"] == "L2"
        files = list((directory / "out/step0/rank").glob("dump_tensor_data/Aten.*.pt"))
        assert bool(files) == (task == "tensor")


NESTED = """
import sys, torch, torch.nn.functional as F
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
x = torch.ones(2, 1, 4)
weights = torch.ones(12, 4), torch.zeros(12), torch.ones(4, 4), torch.zeros(4)
debugger.start()
F.multi_head_attention_forward(x, x, x, 4, 2, weights[0], weights[1], None, None, False, 0.0,
                               weights[2], weights[3])
F.linear(torch.full((1, 4), 7.0), torch.ones(3, 4))
debugger.stop(); debugger.step()
"""


def test_calls_have_the_number_that_level_l1_gives_them(tmp_path: Path) -> None:
    found = {}
    for level in ("L1", "L2"):
        directory = tmp_path / level
        directory.mkdir()
        run(NESTED, config(directory, level=level, list=["Functional.linear.0.forward"]))
        found[level] = dump(directory)
    outer = found["L1"]["Functional.linear.0.forward"]
    assert outer["input_args"][0]["Max"] == 7.0
    inner = found["L2"]["Aten.mm.default.0.forward"]
    assert inner["output"][0]["Norm"] == outer["output"][0]["Norm"]


def test_a_call_that_never_comes_is_said(tmp_path: Path) -> None:
    done = run(CODE, config(tmp_path, level="L2", list=["Functional.linear.9.forward"]))
    assert "Functional.linear.9.forward: not called in this step (2 calls" in (
        done.stdout + done.stderr
    )
    assert dump(tmp_path) == {}


def test_an_unknown_api_is_said(tmp_path: Path) -> None:
    done = run(CODE, config(tmp_path, level="L2", list=["Functional.linaer.0.forward"]))
    assert "Functional.linaer.0.forward: no such API" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [({}, "expected 1 at level L2"), ({"list": ["linear"]}, "expected a complete name"),
     ({"list": ["Torch.a.0.forward"], "scope": ["Torch.a.0.forward"] * 2}, "expected none at")],
)
def test_the_list_names_one_call(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    done = run(CODE, config(tmp_path, level="L2", **options), check=False)
    assert done.returncode != 0 and text in done.stderr


NPU = """
import json, sys, types, torch
log = []
npu = types.SimpleNamespace(
    synchronize=lambda: log.append("synchronize"), init_dump=lambda: log.append("init"),
    set_dump=lambda path: log.append(json.load(open(path))),
    finalize_dump=lambda: log.append("end"))
sys.modules["torch_npu"] = types.SimpleNamespace(npu=npu)
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
debugger.start()
torch.add(torch.ones(2), 1)
debugger.stop(); debugger.step()
print(json.dumps(log))
"""


def test_a_device_that_dumps_kernels_gets_its_configuration(tmp_path: Path) -> None:
    # A stand-in for the device library: the order of calls and the file, not the dump itself.
    path = config(tmp_path, level="L2", task="tensor", list=["Torch.add.0.forward"])
    log = json.loads(run(NPU, path).stdout.strip().splitlines()[-1])
    step = str(tmp_path / "out/step0")
    settings = {"dump_list": [], "dump_path": step, "dump_mode": "all", "dump_op_switch": "on"}
    assert log == [
        "synchronize", "init", {"dump": settings}, "synchronize",
        "synchronize", "end", "synchronize",
    ]
    assert (tmp_path / "out/step0/kernel_config.json").exists()
