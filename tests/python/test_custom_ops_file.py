"""custom_wrap_ops.yaml beside config.json: functions that are recorded like listed APIs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from recording import config, dump, run

from plumbline.custom_ops_file import parse

FILES = [
    "my.kernels:\n  - rms_norm\n  - rotary\noperator: floordiv\n",
    "# comment\n---\na: [b, 'c', \"d\"]  # more\n\nremoved:\n- Tensor.add\n- Torch.linalg.norm\n",
    "'a.b': c\n\"d\": []\ne:\n",
    "# nothing\n",
    "",
]

SCRIPT = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path=sys.argv[1])
sys.path.insert(0, sys.argv[2])
def double(x):
    return x * 2
def once():
    debugger.start()
    double(torch.ones(2))
    late = sys.modules.get("late_kernels")
    if late is not None:
        late.triple(torch.ones(2))
    torch.add(torch.ones(2), 1).abs()
    debugger.stop()
    debugger.step()
once()
from pathlib import Path
Path(sys.argv[2], "late_kernels.py").write_text("def triple(x):\\n    return x * 3\\n")
import late_kernels
once()
"""


@pytest.mark.parametrize("text", FILES)
def test_parses_as_yaml_does(text: str) -> None:
    """Independent truth: PyYAML."""
    expected = []
    removed: list[str] = []
    for key, value in (yaml.safe_load(text) or {}).items():
        names = [] if value is None else [value] if isinstance(value, str) else value
        if key == "removed":
            removed = names
        else:
            expected += [(key, name) for name in names]
    found = parse(text, "f")
    assert found.problems == []
    assert found.functions == expected
    assert found.removed == set(removed)


@pytest.mark.parametrize(("text", "said"), [
    ("- a\n", "f:1: '- a' is skipped"),
    ("a:\n  b:\n    - c\n", "f:2: 'b:' is skipped"),
    ("a-b: c\n", "f:1: 'a-b' is no module path"),
    ("a: 3c\n", "f:1: '3c' is no name of a function"),
    ("a: {b: c}\n", "f:1: '{b: c}' is no name of a function"),
    (f"a: {'x' * 256}\n", "is no name of a function"),
    ("a..b: c\n", "is no module path"),
])
def test_other_lines_are_named_and_skipped(text: str, said: str) -> None:
    found = parse(text, "f")
    assert said in found.problems[0]
    assert ("a", "c") not in found.functions


def test_functions_are_recorded_and_missing_ones_are_tried_again(tmp_path: Path) -> None:
    (tmp_path / "custom_wrap_ops.yaml").write_text(
        "__main__: double\nlate_kernels:\n  - triple\n  - nothing\nremoved: [Torch.add]\n")
    # `double` does not exist when the debugger is made; `late_kernels` comes after step 0.
    done = run(SCRIPT, config(tmp_path), tmp_path)
    # At step 0, `double` was found at start(). Removed names are not recorded.
    assert list(dump(tmp_path, 0)) == ["__main__.double.0.forward", "Tensor.abs.0.forward"]
    assert list(dump(tmp_path, 1)) == [
        "__main__.double.0.forward", "late_kernels.triple.0.forward", "Tensor.abs.0.forward"]
    said = done.stdout + done.stderr
    assert "late_kernels.triple is not recorded yet" in said
    assert said.count("late_kernels.nothing is not recorded yet") >= 1


def test_scope_takes_names_of_custom_functions(tmp_path: Path) -> None:
    (tmp_path / "custom_wrap_ops.yaml").write_text("__main__: double\n")
    scope = ["__main__.double.0.forward", "__main__.double.0.forward"]
    run(SCRIPT, config(tmp_path, scope=scope), tmp_path)
    assert list(dump(tmp_path, 0)) == ["__main__.double.0.forward"]


def test_list_takes_names_of_custom_functions(tmp_path: Path) -> None:
    (tmp_path / "custom_wrap_ops.yaml").write_text("__main__: double\n")
    run(SCRIPT, config(tmp_path, list=["__main__.dou"]), tmp_path)
    assert list(dump(tmp_path, 0)) == ["__main__.double.0.forward"]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x: " + b"y" * (1 << 20)])
def test_an_unreadable_file_is_said_and_training_goes_on(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "custom_wrap_ops.yaml").write_bytes(content)
    done = run(SCRIPT, config(tmp_path), tmp_path)
    assert "No custom API is recorded" in done.stdout + done.stderr
    assert list(dump(tmp_path, 0)) == [
        "Tensor.__mul__.0.forward", "Torch.add.0.forward", "Tensor.abs.0.forward"]
