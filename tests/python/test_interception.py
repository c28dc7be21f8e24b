"""What is seen, and what is left as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recording import config, dump, run

START = """
import sys
import torch
import torch.nn.functional as F
from torch import relu as early_relu
early_gelu = F.gelu
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
"""
END = """
debugger.stop()
debugger.step()
"""


def record(tmp_path: Path, body: str, **options: object) -> dict[str, object]:
    run(START + "debugger.start()\n" + body + END, config(tmp_path, **options))
    return dump(tmp_path)


def test_references_taken_before_the_window_are_recorded(tmp_path: Path) -> None:
    entries = record(tmp_path, "early_relu(torch.ones(2)); early_gelu(torch.ones(2))\n")
    assert "Torch.relu.0.forward" in entries
    assert "Functional.gelu.0.forward" in entries


def test_direct_calls_of_operators_are_recorded_and_operators_stay_themselves(
    tmp_path: Path,
) -> None:
    entries = record(tmp_path, """
aten, ones = torch.ops.aten, torch.ones(2, requires_grad=True)
identities = aten.add, aten.add.Tensor
aten.add(ones, ones); aten.add.Tensor(ones, ones).sum().backward(); F.gelu(ones)
aten.mul.out(ones.detach(), ones.detach(), out=torch.zeros(2))
torch.ops.prims.sin(ones.detach())
assert identities == (aten.add, aten.add.Tensor)
""")
    names = [name for name in entries if not name.startswith("Torch.")]
    assert names == ["Aten.add.0.forward", "Aten.add.Tensor.0.forward", "Tensor.sum.0.forward",
                     "Tensor.sum.0.backward", "Aten.add.Tensor.0.backward",
                     "Functional.gelu.0.forward", "Aten.mul.out.0.forward"]


@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputed_calls_through_earlier_references_are_recorded(
    tmp_path: Path, reentrant: bool
) -> None:
    entries = record(tmp_path, f"""
from torch.utils.checkpoint import checkpoint
x = torch.ones(3, requires_grad=True)
checkpoint(lambda t: early_gelu(early_gelu(t)), x, use_reentrant={reentrant}).sum().backward()
assert torch._C._len_torch_function_stack() == 1
""")
    recomputed = {name: entry["is_recompute"] for name, entry in entries.items()
                  if name.startswith("Functional.gelu") and name.endswith("forward")}
    assert recomputed == {"Functional.gelu.0.forward": False, "Functional.gelu.1.forward": False,
                          "Functional.gelu.2.forward": True, "Functional.gelu.3.forward": True}
    if reentrant:
        assert {"Functional.gelu.2.backward", "Functional.gelu.3.backward"} <= set(entries)


def test_no_function_mode_is_left_on_the_stack(tmp_path: Path) -> None:
    # What describes the first nested tensor imports a module: hooks step aside inside a probe.
    run(START + """
depth = torch._C._len_torch_function_stack
def through_relu(tensor): debugger.stop(); return early_relu(tensor)
debugger.start()
nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])
nested * 2
assert depth() == 1, depth()
class Importing(torch.autograd.Function):
    @staticmethod
    def forward(context, x): return x * 2
    @staticmethod
    def backward(context, grad):
        import xml.sax.saxutils
        return grad
Importing.apply(torch.ones(2, requires_grad=True)).sum().backward()
assert depth() == 1, depth()
debugger.stop()
assert depth() == 0, depth()
debugger.start()
debugger._instance._window._recorder.probe(through_relu, "Functional.selu", False)(torch.ones(2))
assert depth() == 0, depth()
assert torch.compile(lambda x: (x + 1).relu(), backend="eager", fullgraph=True)(
    torch.ones(2)).tolist() == [2.0, 2.0]
""", config(tmp_path))


def test_operators_keep_their_own_names(tmp_path: Path) -> None:
    entries = record(tmp_path, "x = torch.ones(2)\nx * x; x.mul(x); x += 1; -x; x @ x; x[0]\n")
    for name in ("__mul__", "mul", "__iadd__", "__matmul__", "__getitem__"):
        assert f"Tensor.{name}.0.forward" in entries


def test_only_the_outermost_api_is_an_entry(tmp_path: Path) -> None:
    entries = record(
        tmp_path, "F.cross_entropy(torch.ones(2, 3), torch.zeros(2, dtype=torch.long))\n"
    )
    assert "Functional.cross_entropy.0.forward" in entries
    assert not [name for name in entries if "log_softmax" in name]


def test_every_attribute_is_the_original_after_stop(tmp_path: Path) -> None:
    code = START + """
from plumbline import _core
from plumbline.pytorch.api_hooks import wrapped_apis
import importlib._bootstrap as bootstrap
before = [(o, a, getattr(o, a), a in vars(o)) for _, _, o, a in wrapped_apis()]
find_and_load, clip = bootstrap._find_and_load, torch.nn.utils.clip_grad_norm_
assert len(before) > 900
model = torch.nn.Sequential(torch.nn.Linear(2, 2))
debugger.start(model)
patched = sum(_core.original_of(getattr(o, a)) is original for o, a, original, _ in before)
assert patched == len(before), patched
model(torch.ones(1, 2))
debugger.stop()
for owner, attribute, original, own in before:
    assert getattr(owner, attribute) is original, attribute
    assert (attribute in vars(owner)) == own, attribute
assert bootstrap._find_and_load is find_and_load
assert torch.nn.utils.clip_grad_norm_ is clip
assert torch._C._len_torch_function_stack() == 0
assert not model[0]._forward_hooks and not model[0]._forward_pre_hooks
assert (torch.ones(2) * 3).tolist() == [3.0, 3.0]
"""
    run(code, config(tmp_path, level="mix"))


def test_probes_look_like_the_functions_they_stand_for(tmp_path: Path) -> None:
    record(
        tmp_path,
        """
import copy, inspect, pickle
assert F.gelu == early_gelu and early_gelu == F.gelu and hash(F.gelu) == hash(early_gelu)
assert {early_gelu: 1}[F.gelu] == 1
assert F.softmax.__name__ == "softmax" and F.softmax.__module__ == "torch.nn.functional"
assert list(inspect.signature(F.softmax).parameters)[:2] == ["input", "dim"]
assert F.softmax.__doc__.strip()
assert copy.deepcopy(F.gelu) is early_gelu
class Holder:
    python_function = F.softmax
    builtin = F.gelu
try:
    Holder().python_function(torch.ones(2), 0)
    raise SystemExit("a Python function in a class binds")
except (TypeError, AttributeError):
    pass
Holder().builtin(torch.ones(2))
""",
    )


def test_libraries_imported_inside_the_window_see_the_originals(tmp_path: Path) -> None:
    (tmp_path / "late_library.py").write_text(
        "import torch\nimport torch.nn.functional as F\nheld = F.relu\n"
        "@torch.jit.script\ndef scripted(x):\n    return torch.relu(x) + 1\n"
    )
    record(
        tmp_path,
        f"""
from plumbline import _core
sys.path.insert(0, {str(tmp_path)!r})
import late_library
assert _core.original_of(late_library.held) is None
late_library.held(torch.ones(2)); late_library.scripted(torch.ones(2))
script = torch.jit.script(lambda x: x) if False else None
import transformers.models.llama.modeling_llama
assert _core.original_of(F.relu) is not None, "patched again after the import"
""",
    )


def test_every_thread_is_recorded_with_unique_names(tmp_path: Path) -> None:
    entries = record(
        tmp_path,
        """
import threading
def work():
    for _ in range(50):
        torch.add(torch.ones(2), 1)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
""",
    )
    assert sum(name.startswith("Torch.add.") for name in entries) == 200


def test_an_api_that_raises_does_not_end_recording(tmp_path: Path) -> None:
    entries = record(
        tmp_path,
        """
try:
    torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
except RuntimeError:
    pass
torch.add(torch.ones(2), 1)
""",
    )
    assert "output" not in entries["Torch.matmul.0.forward"]
    assert "output" in entries["Torch.add.0.forward"]


def test_tensors_without_memory_are_described(tmp_path: Path) -> None:
    entries = record(
        tmp_path,
        """
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    torch.relu(torch.ones(3))
freed = torch.ones(1000)
freed.untyped_storage().resize_(0)
torch.transpose(freed, 0, 0)
""",
    )
    tensor = entries["Torch.relu.0.forward"]["input_args"][0]
    assert (tensor["shape"], tensor["Max"]) == ([3], None)
    tensor = entries["Torch.transpose.0.forward"]["input_args"][0]
    assert (tensor["shape"], tensor["Norm"]) == ([1000], None)


def test_forked_children_leave_no_entries(tmp_path: Path) -> None:
    entries = record(
        tmp_path,
        """
import os
child = os.fork()
if child == 0:
    torch.mul(torch.ones(2), 2)
    debugger.stop()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
torch.add(torch.ones(2), 1)
""",
    )
    assert "Torch.add.0.forward" in entries
    assert "Torch.mul.0.forward" not in entries


def test_data_loader_workers_leave_no_entries(tmp_path: Path) -> None:
    entries = record(
        tmp_path,
        """
class Data(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return torch.sub(torch.ones(2), i)
for batch in torch.utils.data.DataLoader(Data(), num_workers=2): torch.add(batch, 1)
""",
    )
    assert sum(name.startswith("Torch.add.") for name in entries) == 4
    assert not [name for name in entries if name.startswith("Torch.sub.")]


def test_recomputed_calls_are_marked(tmp_path: Path) -> None:
    body = """
from torch.utils.checkpoint import checkpoint
x = torch.ones(2, requires_grad=True)
checkpoint(lambda v: torch.sin(v), x, use_reentrant={}).sum().backward()
"""
    for reentrant in (True, False):
        directory = tmp_path / str(reentrant)
        directory.mkdir()
        entries = record(directory, body.format(reentrant))
        assert entries["Torch.sin.0.forward"]["is_recompute"] is False
        assert entries["Torch.sin.1.forward"]["is_recompute"] is True


def test_a_compiled_region_gives_the_same_numbers(tmp_path: Path) -> None:
    record(
        tmp_path,
        """
def f(x): return torch.sin(x) + F.relu(x)
expected = f(torch.arange(4.0))
compiled = torch.compile(f, backend="eager")
assert torch.equal(compiled(torch.arange(4.0)), expected)
""",
    )


def test_user_function_modes_and_subclasses_keep_working(tmp_path: Path) -> None:
    entries = record(
        tmp_path,
        """
class Tagged(torch.Tensor):
    calls = 0
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Tagged.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})
t = torch.ones(3).as_subclass(Tagged)
before = Tagged.calls
y = torch.add(t, 1)
assert Tagged.calls == before + 1, Tagged.calls - before
assert type(y) is Tagged
with torch.device("cpu"):
    torch.sub(torch.ones(2), 1)
""",
    )
    assert "Torch.add.0.forward" in entries
    assert "Torch.sub.0.forward" in entries


def test_tensor_files_carry_the_name_of_their_own_entry(tmp_path: Path) -> None:
    # Large tensors are scanned without the interpreter lock; the entry's name was shared once.
    entries = record(
        tmp_path,
        """
import threading
def work(function):
    for _ in range(10):
        function(torch.ones(600, 600), 1)
threads = [threading.Thread(target=work, args=(f,)) for f in (torch.add, torch.sub, torch.mul)]
[t.start() for t in threads]; [t.join() for t in threads]
""",
        task="tensor",
    )
    files = [
        (name, value["data_name"])
        for name, entry in entries.items()
        for value in [*entry["input_args"], *entry["output"]]
        if "data_name" in value
    ]
    assert len(files) == 60  # 30 calls, one tensor in and one out
    assert [pair for pair in files if not pair[1].startswith(pair[0] + ".")] == []


USER_MODE = """
import json
from torch.overrides import TorchFunctionMode
seen = []
class Mine(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
x = torch.ones(2, 4, requires_grad=True)
def work():
    y = model(x)
    (F.gelu(y) * 2).sum().backward()
    return torch.add(y, 1).t()
"""
INSIDE = """
if recording: debugger.start(model)
with Mine():
    work()
if recording: debugger.stop()
print(json.dumps(seen))
"""
AROUND = """
with Mine():
    if recording: debugger.start(model)
    seen.clear()
    work()
    calls = list(seen)
    if recording: debugger.stop()
print(json.dumps(calls))
"""


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("place", [INSIDE, AROUND], ids=["inside", "around"])
def test_a_mode_of_the_user_sees_the_calls_of_the_training_only(
    tmp_path: Path, level: str, place: str
) -> None:
    seen = []
    for recording in (False, True):
        code = START + f"recording = {recording}" + USER_MODE + place
        output = run(code, config(tmp_path, level=level)).stdout
        seen.append(json.loads(output.strip().splitlines()[-1]))
    assert seen[0] == ["linear", "relu", "gelu", "mul", "sum", "backward", "add", "t"]
    assert seen[1] == seen[0]
