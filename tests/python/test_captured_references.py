"""Functions that code holds since before the debugger: what of them is seen."""

from __future__ import annotations

import json
from pathlib import Path

from recording import config, dump, run

HELD = """
import functools, operator, sys, threading
import torch
import torch.nn.functional as F
from torch import mm, relu
from torch.nn.functional import linear as f
x = torch.ones(2, 2)
WEIGHT = torch.ones(3, 2)

class Block(torch.nn.Module):
    act = staticmethod(torch.nn.functional.gelu)       # a class attribute
    add = torch.Tensor.add                             # a method of tensors, as one of its own
    def __init__(self):
        super().__init__()
        self.norm = functools.partial(torch.layer_norm, normalized_shape=(3,))
        self.table = {"tanh": torch.tanh, "softmax": F.softmax}
    def forward(self, x, project=torch.nn.functional.linear):  # a default argument
        x = self.norm(self.act(project(x, WEIGHT)))
        return Block.add(self.table["tanh"](x), self.table["softmax"](x, -1))

def outer():
    held = torch.sigmoid                               # a closure
    return lambda x: held(x)

closure, bound = outer(), x.mul
chunk, scale, operand = torch.Tensor.chunk, torch.Tensor.mul_, operator.add
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
"""


def recorded(tmp_path: Path, code: str, before: str = "") -> list[str]:
    """Entries, without direction, of what `code` calls inside a window."""
    run(HELD + before + "\ndebugger.start()\n" + code + "\ndebugger.stop(); debugger.step()\n",
        config(tmp_path))
    return [name.removesuffix(".forward") for name in dump(tmp_path)]


def test_functions_held_anywhere_are_recorded(tmp_path: Path) -> None:
    assert recorded(tmp_path, "relu(x); f(x, WEIGHT); mm(x, x); Block()(x); closure(x)") == [
        "Torch.relu.0", "Functional.linear.0", "Torch.mm.0",
        "Functional.linear.1", "Functional.gelu.0", "Torch.layer_norm.0", "Torch.tanh.0",
        "Functional.softmax.0", "Tensor.add.0", "Torch.sigmoid.0"]


def test_methods_held_anywhere_are_recorded(tmp_path: Path) -> None:
    names = recorded(tmp_path, """
y = bound(x); chunk(y, 2); scale(y, 2.0); operand(x, y)
assert y.tolist() == [[2.0, 2.0], [2.0, 2.0]]
""")
    assert names[:4] == ["Tensor.mul.0", "Tensor.chunk.0", "Tensor.mul_.0", "Tensor.__add__.0"]


def test_operators_do_not_become_methods(tmp_path: Path) -> None:
    names = recorded(tmp_path, """
n = x.int()
-x; +x; abs(x); x != x; x < x; x <= x; 1 - x; 2 ** x; 1 & n; 1 | n; 1 ^ n; ~n
x /= 2; x **= 2; x += 1; n &= 1
""", before="x = torch.ones(2)")
    methods = {"neg", "positive", "abs", "ne", "lt", "le", "pow_", "div_", "rsub", "bitwise_not"}
    assert not {name.split(".")[1] for name in names if name.startswith("Tensor.")} & methods
    assert "Tensor.__iadd__.0" in names


EVERY = """
import copy, json, sys, types, warnings
sys.path.insert(0, sys.argv[2])
import torch, wrapped_api_calls
from plumbline.pytorch import PrecisionDebugger
from plumbline.pytorch.api_hooks import wrapped_apis
warnings.simplefilter("ignore"); torch.set_num_threads(1)
calls, left = wrapped_api_calls.find_calls(wrapped_apis())
held = [getattr(call.owner, call.attribute) for call in calls]
arguments = [copy.deepcopy(call.arguments) for call in calls]
between = types.SimpleNamespace(mark=lambda: None)
debugger = PrecisionDebugger(sys.argv[1])
debugger.register_custom_api(between, "mark", "Between")
debugger.start()
for reference, (args, kwargs) in zip(held, arguments):
    reference(*args, **kwargs)
    between.mark()
debugger.stop(); debugger.step()
print(json.dumps([call.name for call in calls]))
"""


def test_every_listed_function_through_a_held_reference(tmp_path: Path) -> None:
    done = run(EVERY, config(tmp_path), Path(__file__).parent)
    names = json.loads(done.stdout.splitlines()[-1])
    groups: list[set[str]] = [set()]
    for entry in dump(tmp_path):
        if entry.startswith("Between."):
            groups.append(set())
        elif entry.endswith(".forward"):
            groups[-1].add(entry.rsplit(".", 2)[0])
    assert len(groups) == len(names) + 1 > 1000
    unseen = {name for name, group in zip(names, groups, strict=False) if not group}
    assert unseen == {
        "Torch.range",  # asks no override
        # what operators that are not listed look up
        *(f"Tensor.{name}" for name in
          "__and__ __idiv__ __or__ __xor__ abs div_ le lt ne neg pow_".split())}
    others = {name: group for name, group in zip(names, groups, strict=False)
              if group and name.split(".")[-1] not in {one.split(".")[-1] for one in group}}
    # An operator has the name of the method that PyTorch looks up for it.
    operators = {name for name in others if name.startswith("Tensor.__")}
    assert all(len(others[name]) == 1 and next(iter(others[name])).startswith("Tensor.")
               for name in operators)
    # These ask no override themselves: the listed function that they call is seen.
    assert set(others) - operators <= {
        "Functional.upsample", "Functional.upsample_bilinear", "Functional.upsample_nearest",
        *(f"Functional.{kind}max_pool{d}d" for kind in ("", "adaptive_") for d in (1, 2, 3)),
        "Torch.dsmm", "Torch.spmm", "Torch.hspmm", "Torch.sspaddmm"}, others


def test_what_is_not_seen(tmp_path: Path) -> None:
    # docs/design/interception.md: each line is a limit that it names.
    assert recorded(tmp_path, """
thread = threading.Thread(target=lambda: relu(x)); thread.start(); thread.join()
torch.Tensor.neg(x)  # the attribute
with torch._C.DisableTorchFunction(): mm(x, x)
early_neg(x)
""", before="early_neg = torch.Tensor.neg") == ["Tensor.neg.0"]
