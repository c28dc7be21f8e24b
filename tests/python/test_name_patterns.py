"""Globs and regular expressions in `list`, `scope` and `tensor_list`, on real models."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import Any

import pytest
from recording import config, dump, run

TRAIN = """
import sys
import torch
import torch.nn.functional as F
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(0)

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.Linear(4, 4)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(),
                                       torch.nn.Linear(8, 4))
    def forward(self, x):
        x = x + torch.softmax(self.attention(x), -1)
        return F.layer_norm(x + self.mlp(x), (4,))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(3, 4)
        self.layers = torch.nn.ModuleList(Block() for _ in range(12))
        self.head = torch.nn.Linear(4, 2)
    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

model = Net()
debugger = PrecisionDebugger(sys.argv[1])
for _ in range(2):
    debugger.start(model); model(torch.ones(2, 3)).sum().backward(); debugger.stop()
    debugger.step()
"""

RECORDED: dict[str, list[str]] = {}


@pytest.fixture(params=["L0", "L1", "mix"])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def entries(directory: Path, level: str, **options: Any) -> list[str]:
    """Of both steps, which must be the same."""
    directory.mkdir(exist_ok=True)
    run(TRAIN, config(directory, level=level, **options))
    names = list(dump(directory))
    assert names == list(dump(directory, 1))
    return names


@pytest.fixture
def everything(level: str, tmp_path: Path) -> list[str]:
    if level not in RECORDED:
        RECORDED[level] = entries(tmp_path / "all", level)
    return RECORDED[level]


@pytest.mark.parametrize("pattern", [
    "*linear.1?.*", "*.forward", "Functional.[!l]*", "re:^Functional\\.linear\\.[02]\\.",
    "re:(softmax|layer_norm)\\..*backward$", "linear.1", "re:\\.\\d{2}\\."])
def test_a_list_of_apis(tmp_path: Path, pattern: str) -> None:
    if "L1" not in RECORDED:
        RECORDED["L1"] = entries(tmp_path / "all", "L1")
    names = entries(tmp_path / "some", "L1", list=[pattern])
    if pattern.startswith("re:"):
        expected = [name for name in RECORDED["L1"] if re.search(pattern[3:], name)]
    elif pattern == "linear.1":
        expected = [name for name in RECORDED["L1"] if pattern in name]
    else:
        expected = [name for name in RECORDED["L1"] if fnmatch.fnmatchcase(name, pattern)]
    assert 0 < len(expected) < len(RECORDED["L1"])
    assert names == expected


def test_a_list_of_modules(tmp_path: Path, level: str, everything: list[str]) -> None:
    names = entries(tmp_path / "some", level, list=["*.layers.[37].*", "re:^Module\\.head\\."])
    if level == "L1":
        assert names == []  # there are no modules
        return
    of_modules = [name for name in names if name.startswith("Module.")]
    expected = [name for name in everything
                if re.match(r"Module\.(layers\.[37]|head)\.", name)]
    assert sorted(of_modules) == sorted(expected)
    apis = [name for name in names if not name.startswith("Module.")]
    if level == "L0":
        assert apis == []
    else:  # the six calls of two blocks and the one of the head, and their gradients
        forwards = [name for name in apis if name.endswith(".forward")]
        assert sum("linear" in name for name in forwards) == 2 * 3 + 1
        assert sum("softmax" in name for name in forwards) == 2


def test_a_scope_of_one_block(tmp_path: Path, level: str, everything: list[str]) -> None:
    ends = ["*.layers.5.*.forward.*", "re:\\.layers\\.5\\..*\\.forward\\."]
    if level == "L1":
        ends = ["Torch.softmax.5.f*", "re:layer_norm\\.5\\.forward$"]
    names = entries(tmp_path / "some", level, scope=ends)
    if level == "L0":
        assert sorted(names) == sorted(
            name for name in everything if name.startswith("Module.layers.5.")
            and (".forward." in name or name.endswith("parameters_grad")) and name in names)
        assert "Module.layers.5.Block.forward.0" in names
        assert "Module.layers.5.mlp.2.Linear.forward.0" in names
        assert not any(".backward." in name for name in names)
    elif level == "L1":
        first, last = (everything.index(f"{name}.5.forward")
                       for name in ("Torch.softmax", "Functional.layer_norm"))
        forwards = [name for name in everything[first:last + 1] if name.endswith(".forward")]
        assert [name for name in names if name.endswith(".forward")] == forwards
    else:
        assert [name for name in names if "layer_norm" in name] == [
            "Functional.layer_norm.5.forward"]
        assert sum("linear" in name for name in names) == 3


def test_tensors_of_entries_that_match(tmp_path: Path) -> None:
    entries(tmp_path, "L1", tensor_list=["re:softmax\\.1[01]\\.forward", "*.linear.36.*"])
    files = {path.name.split(".forward")[0].split(".backward")[0]
             for path in tmp_path.glob("out/step0/rank/dump_tensor_data/*.pt")}
    assert files == {"Torch.softmax.10", "Torch.softmax.11", "Functional.linear.36"}


@pytest.mark.parametrize(("section", "top"), [
    ({"list": ["relu", "re:a(b"]}, {}),
    ({"scope": ["re:a(b", "Torch.relu.0.forward"]}, {}),
    ({"tensor_list": ["re:a(b"]}, {}),
    ({"list": ["re:a(b"]}, {"task": "overflow_check"}),
    ({"tensor_list": ["re:a(b"]}, {"task": "nan_check"}),
    ({"scope": ["re:a(b"]}, {"task": "free_benchmark"}),
    ({"list": ["re:a(b"]}, {"task": "free_benchmark"}),
])
def test_a_bad_expression_is_one_line_at_the_start(
    tmp_path: Path, section: dict[str, Any], top: dict[str, Any]
) -> None:
    path = config(tmp_path, **section, **top)
    done = run("""
import sys
from plumbline.pytorch import PrecisionDebugger
try:
    PrecisionDebugger(sys.argv[1])
except ValueError as error:
    print("refused:", error)
""", path)
    [line] = [line for line in done.stdout.splitlines() if line.startswith("refused: ")]
    field = f"{top.get('task', 'statistics')}.{next(iter(section))}"
    assert f'config.json: {field}: is "re:a(b" (expected behind re: a regular expression' in line
    assert line.endswith("wrong from its character 2 on)")
    assert not (tmp_path / "out").exists()
