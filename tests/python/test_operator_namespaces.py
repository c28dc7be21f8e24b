"""custom_op_namespaces: operators of torch.ops, however they were registered and are called."""

from __future__ import annotations

import json
from pathlib import Path

from recording import config, dump, run

OPERATORS = """
import sys
import torch
from plumbline.pytorch import PrecisionDebugger

@torch.library.custom_op("mine::scale", mutates_args=())
def scale(x: torch.Tensor, by: float) -> torch.Tensor:
    return torch.mul(x, by)  # no entry of its own

scale.register_autograd(lambda ctx, grad: (grad * ctx.by, None),
                        setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))
library = torch.library.Library("mine", "FRAGMENT")
library.define("shift(Tensor x, int by) -> Tensor")
library.define("shift.Float(Tensor x, float by) -> Tensor")
for name in ("shift", "shift.Float"):
    library.impl(name, lambda x, by: x + by, "CompositeExplicitAutograd")
other = torch.library.Library("other", "DEF")
other.define("unasked(Tensor x) -> Tensor")
other.impl("unasked", lambda x: x.clone(), "CompositeExplicitAutograd")
ascend = torch.library.Library("_C_ascend", "DEF")
ascend.define("rope(Tensor x) -> Tensor")
ascend.impl("rope", lambda x: x * 2, "CompositeExplicitAutograd")
early = torch.ops.mine.shift

def calls(x):
    scale(x, 2.0).sum().backward()
    torch.ops.mine.scale(x, 3.0)
    torch.ops.mine.scale.default(x, 4.0)
    early(x, 1)
    early(x, 1.5)
    torch.ops.mine.shift.Float(x, 2.5)
    torch.ops.other.unasked(x)
    torch.ops._C_ascend.rope(x)

debugger = PrecisionDebugger(sys.argv[1])
x = torch.ones(3, requires_grad=True)
kept = torch.ops.mine.shift
debugger.start(); calls(x); debugger.stop(); debugger.step()
assert torch.ops.mine.shift is kept
assert x.grad.tolist() == [2.0] * 3
calls(x)
debugger.start(); torch.ops.mine.later = None
lazy = torch.library.Library("mine", "FRAGMENT")  # registered inside the window
lazy.define("made(Tensor x) -> Tensor")
lazy.impl("made", lambda x: -x, "CompositeExplicitAutograd")
torch.ops.mine.made(x); debugger.stop(); debugger.step()
"""


def with_namespaces(path: Path, namespaces: object) -> Path:
    path.write_text(json.dumps({**json.loads(path.read_text()),
                                "custom_op_namespaces": namespaces}))
    return path


def test_operators_of_a_namespace_are_recorded(tmp_path: Path) -> None:
    path = with_namespaces(config(tmp_path, list=["mine", "other", "_C_ascend"]), ["mine"])
    printed = run(OPERATORS, path).stdout
    assert "custom_op_namespaces" not in printed
    data = dump(tmp_path)
    assert list(data) == [
        "mine.scale.0.forward", "mine.scale.0.backward", "mine.scale.1.forward",
        "mine.scale.2.forward", "mine.shift.0.forward", "mine.shift.1.forward",
        "mine.shift.Float.0.forward", "_C_ascend.rope.0.forward"]
    assert data["mine.scale.2.forward"]["output"][0]["Max"] == 4.0
    assert data["mine.shift.1.forward"]["output"][0]["Max"] == 2.5
    assert data["mine.shift.Float.0.forward"]["output"][0]["Max"] == 3.5
    assert data["mine.scale.0.forward"]["input_args"][1]["value"] == 2.0
    assert data["mine.scale.0.backward"]["output"][0]["Max"] == 2.0
    assert list(dump(tmp_path, 1)) == ["mine.made.0.forward"]


def test_without_the_key_only_upstreams_namespace_is(tmp_path: Path) -> None:
    run(OPERATORS, config(tmp_path, list=["mine", "other", "_C_ascend"]))
    assert list(dump(tmp_path)) == ["_C_ascend.rope.0.forward"]


def test_removed_operators_are_not(tmp_path: Path) -> None:
    path = with_namespaces(config(tmp_path, list=["mine"]), ["mine"])
    (tmp_path / "custom_wrap_ops.yaml").write_text("removed: [mine.scale]\n")
    run(OPERATORS, path)
    assert "mine.shift.0.forward" in dump(tmp_path)
    assert not any("scale" in name for name in dump(tmp_path))


def test_namespaces_that_are_no_texts_are_refused(tmp_path: Path) -> None:
    path = with_namespaces(config(tmp_path), ["mine", 3])
    done = run(OPERATORS, path, check=False)
    assert done.returncode != 0
    assert "custom_op_namespaces: is [\"mine\",3] (expected a list of strings)" in (
        done.stdout + done.stderr)
