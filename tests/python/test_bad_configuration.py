"""Every wrong setting: the exception, the field and the value in its text, and nothing done."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from recording import run

pytest.importorskip("torch")
_TRY = """
import json, sys
import torch
import torch.nn.functional as F
from plumbline.pytorch import PrecisionDebugger
plain = (torch.add, F.linear, torch.Tensor.mul)
for case in json.loads(open(sys.argv[1]).read()):
    try:
        PrecisionDebugger(**case)
        print(json.dumps(["none", [], ""]))
        break  # one debugger per process
    except Exception as error:
        bases = [base.__name__ for base in type(error).__mro__]
        print(json.dumps([type(error).__name__, bases, str(error)]))
    assert (torch.add, F.linear, torch.Tensor.mul) == plain
    try:
        PrecisionDebugger.start()
        raise SystemExit("there is a debugger")
    except RuntimeError:
        pass
"""


def outcomes(tmp_path: Path, cases: list[dict[str, Any]]) -> list[list[Any]]:
    """[class, its bases, text] of each construction, all in one process."""
    path = tmp_path / "cases"
    path.write_text(json.dumps(cases))
    lines = run(_TRY, path).stdout.splitlines()
    found = [json.loads(line) for line in lines if line.startswith("[")]
    assert len(found) == len(cases), lines
    return found


# Of rank and of step (collection.md 2.3): value, texts in the message.
LISTS: list[tuple[object, list[str]]] = [
    (3, ["is 3", "a list"]),
    ("3", ['is "3"', "a list"]),
    ({}, ["a list"]),
    ([1.5], ["1.5", "an integer or a range"]),
    ([True], ["true", "an integer or a range"]),
    ([-1], ["-1", "between 0 and 1000000"]),
    ([1000001], ["1000001", "between 0 and 1000000"]),
    (["0-1000001"], ['"0-1000001"', "0 to 1000000"]),
    (["3"], ['"3"', '"3-5"']),
    (["1-2-3"], ['"1-2-3"', '"3-5"']),
    (["a-b"], ['"a-b"', "decimal number"]),
    (["5-3"], ['"5-3"', "left boundary"]),
]
L1_NAME, L0_NAME = "Torch.add.0.forward", "Module.fc.Linear.forward.0"
# Of the whole file (2.5): changes to a good one, texts in the message.
FIELDS: list[tuple[dict[str, Any], list[str]]] = [
    ({"task": "statistic"}, ["task", '"statistic"', "one of"]),
    ({"task": 3}, ["task", "3"]),
    ({"task": "run_ut"}, ["task", "run_ut"]),
    ({"level": "l1"}, ["level", '"l1"', "one of"]),
    ({"level": 1}, ["level", "1"]),
    ({"dump_path": 3}, ["dump_path", "3", "a string"]),
    ({"dump_path": ""}, ["dump_path"]),
    ({"dump_path": None}, ["dump_path"]),
    ({"dump_path": "a b"}, ["dump_path", "a b", "special characters"]),
    ({"dump_path": "\u00fc"}, ["dump_path", "special characters"]),
    ({"enable_dataloader": 1}, ["enable_dataloader", "1", "true or false"]),
    ({"async_dump": "yes"}, ["async_dump", '"yes"', "true or false"]),
    ({"dump_enable": "on"}, ["dump_enable", '"on"', "true or false"]),
    ({"extra_info": 0}, ["extra_info", "0", "true or false"]),
    ({"precision": "double"}, ["precision", '"double"', "low, high"]),
    ({"risk_level": "core"}, ["risk_level", '"core"', "ALL, CORE, FOCUS"]),
    ({"statistics": []}, ["statistics", "an object"]),
    ({"statistics": {"scope": "x"}}, ["statistics.scope", '"x"', "list"]),
    ({"statistics": {"scope": [1, 2]}}, ["statistics.scope", "list"]),
    ({"statistics": {"list": [1]}}, ["statistics.list", "[1]"]),
    ({"statistics": {"list": "relu"}}, ["statistics.list", '"relu"']),
    ({"statistics": {"tensor_list": "relu"}}, ["statistics.tensor_list", '"relu"']),
    ({"statistics": {"data_mode": "all"}}, ["statistics.data_mode", '"all"', "list"]),
    ({"statistics": {"data_mode": [1]}}, ["statistics.data_mode", "list"]),
    ({"statistics": {"data_mode": ["all", "input"]}}, ["statistics.data_mode", '"all"', "alone"]),
    ({"statistics": {"data_mode": ["input", "output"] * 2 + ["input"]}},
     ["statistics.data_mode", "at most 4"]),
    ({"statistics": {"data_mode": ["in"]}}, ["statistics.data_mode", '"in"', "forward"]),
    ({"statistics": {"summary_mode": "crc"}}, ["statistics.summary_mode", '"crc"']),
    ({"task": "tensor", "tensor": {"file_format": "pt"}}, ["tensor.file_format", '"pt"']),
    ({"task": "overflow_check", "overflow_check": {"overflow_nums": -5}},
     ["overflow_check.overflow_nums", "-5"]),
    ({"task": "overflow_check", "overflow_check": {"overflow_nums": True}},
     ["overflow_check.overflow_nums", "true"]),
    ({"task": "overflow_check", "overflow_check": {"overflow_nums": 10**20}},
     ["overflow_check.overflow_nums", "beyond 64 bits", "-1 (no limit)"]),
    ({"task": "overflow_check", "overflow_check": {"check_mode": "aic"}},
     ["overflow_check.check_mode", '"aic"']),
    ({"task": "tensor", "async_dump": True}, ["tensor.list", "empty"]),
    ({"level": "L2", "statistics": {"scope": [L1_NAME, L1_NAME], "list": [L1_NAME]}},
     ["statistics.scope: is [", L1_NAME, "level L2"]),
    ({"level": "L2"}, ["statistics.list: is []", "expected 1 at level L2"]),
    ({"level": "L2", "task": "tensor", "tensor": {"list": ["a", "b"]}},
     ['tensor.list: is ["a","b"]', "expected 1 at level L2"]),
    ({"level": "L2", "statistics": {"list": ["relu"]}},
     ['statistics.list: is "relu"', "complete name"]),
    ({"statistics": {"scope": ["one"]}}, ['statistics.scope: is ["one"]', "2 names, not 1"]),
    ({"statistics": {"scope": [L1_NAME, "add"]}}, ['statistics.scope: is "add"']),
    ({"task": "tensor", "tensor": {"scope": [L1_NAME, L0_NAME]}},
     ["tensor.scope", L0_NAME, "level L1"]),
    ({"level": "L0", "statistics": {"scope": [L0_NAME, L1_NAME]}},
     ["statistics.scope", L1_NAME, "level L0"]),
    ({"level": "mix", "statistics": {"scope": ["x", L1_NAME]}}, ['statistics.scope: is "x"']),
    ({"task": "tensor", "tensor": {"diff_nums": 0}}, ["tensor.diff_nums", "0"]),
    ({"task": "tensor", "tensor": {"diff_nums": 1.5}}, ["tensor.diff_nums", "1.5"]),
]
FIELDS += [({field: value}, [field, *texts]) for field in ("rank", "step")
           for value, texts in LISTS]
# Of the file itself: bytes, texts in the message.
FILES: list[tuple[bytes, list[str]]] = [
    (b"{", ["not valid JSON"]), (b"", ["not valid JSON"]), (b"[]", ["top level", "an object"]),
    (b'"text"', ["top level"]), (b"// no\n{}", ["not valid JSON"]),
    (b'{"dump_path": "x",}', ["not valid JSON"]), (b'{"dump_path": "\xff"}', ["not valid JSON"]),
]


def test_wrong_fields(tmp_path: Path) -> None:
    cases = []
    for number, (changes, _) in enumerate(FIELDS):
        path = tmp_path / f"config{number}.json"
        good = {"task": "statistics", "level": "L1", "dump_path": str(tmp_path / "out")}
        path.write_text(json.dumps({**good, **changes}))
        cases.append({"config_path": str(path)})
    for (changes, texts), (name, bases, text) in zip(
        FIELDS, outcomes(tmp_path, cases), strict=True
    ):
        assert name == "ValueError" and "Exception" in bases, (changes, name, text)
        for part in [*texts, "config"]:
            assert part in text, (changes, part, text)
        assert "\n" not in text
    assert not (tmp_path / "out").exists()


Case = tuple[dict[str, Any], str, list[str]]  # arguments, class, texts in the message


def wrong_files(directory: Path) -> list[Case]:
    good = directory / "good.json"
    good.write_text(json.dumps({"dump_path": str(directory / "out")}))
    cases: list[tuple[Path, str, list[str]]] = []
    for number, (content, texts) in enumerate(FILES):
        path = directory / f"bad{number}.json"
        path.write_bytes(content)
        cases.append((path, "ValueError", texts))
    (directory / "link.json").symlink_to(good)
    (directory / "a b.json").write_text(good.read_text())
    (directory / "config.txt").write_text(good.read_text())
    cases += [
        (directory / "missing.json", "FileNotFoundError", ["missing.json"]),
        (directory / "link.json", "ValueError", ["link.json", "symbolic link"]),
        (directory / "a b.json", "ValueError", ["a b.json", "special characters"]),
        (directory / "config.txt", "ValueError", ["config.txt", ".json"]),
        (directory, "ValueError", [str(directory), "not a regular file"]),
        (directory / ("x" * 300 + ".json"), "OSError", ["x" * 300]),
    ]
    return [({"config_path": str(path)}, name, texts) for path, name, texts in cases]


def wrong_arguments(directory: Path) -> list[Case]:
    out = str(directory / "out")
    (directory / "file").write_text("")
    (directory / "elsewhere").mkdir()
    (directory / "link").symlink_to(directory / "elsewhere")
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"config_path": 3}, ["config_path must be a string"]),
        ({"dump_path": 3}, ["dump_path must be a string"]),
        ({"dump_path": out, "task": "none"}, ["task", "none", "one of"]),
        ({"dump_path": out, "level": "L9"}, ["level", "L9", "one of"]),
        ({"dump_path": out, "step": [-1]}, ["step", "-1"]),
        ({}, ["dump_path"]),
        ({"dump_path": str(directory / "with space")}, ["special characters"]),
        ({"dump_path": str(directory / "file")}, ["file", "not a directory"]),
        ({"dump_path": str(directory / "link")}, ["link", "symbolic link"]),
    ]
    return [(case, "ValueError", texts) for case, texts in cases]


def test_wrong_files_and_arguments(tmp_path: Path) -> None:
    cases = wrong_files(tmp_path) + wrong_arguments(tmp_path)
    found = outcomes(tmp_path, [case for case, *_ in cases])
    for (case, name, texts), (given, _, text) in zip(cases, found, strict=True):
        assert given == name, (case, given, text)
        assert all(part in text for part in texts), (case, text)
    assert not (tmp_path / "out").exists() and not list((tmp_path / "elsewhere").iterdir())


def test_output_directory_without_permission(tmp_path: Path) -> None:
    """Not a wrong setting but a failing disk: said at once and at the end, and training goes on."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:3]:
        if os.getuid() == 0 and parent != Path("/tmp"):
            parent.chmod(0o755)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    result = run("""
import os, sys
import torch
from plumbline.pytorch import PrecisionDebugger
if os.getuid() == 0:  # who may write anywhere
    os.setgid(65534); os.setuid(65534)
debugger = PrecisionDebugger(dump_path=sys.argv[1])
for _ in range(2):
    debugger.start()
    print("sum", torch.ones(3).add(1).sum().item())
    debugger.stop(); debugger.step()
""", closed / "out")
    assert result.stdout.count("sum 6.0") == 2
    lines = [line for line in (result.stdout + result.stderr).splitlines()
             if str(closed) in line and "Permission denied" in line]
    assert len(lines) == 2 and "Step 0 is not recorded" in lines[0]
    assert "2 steps were not recorded (" in lines[1]  # how long it lasted
    assert not (closed / "out").exists()


def test_unknown_keys_are_named_with_the_closest_known_one(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"dump_path": str(tmp_path / "out"), "ranks": [0], "statistics": {
        "sumary_mode": "md5"}}))
    result = run("""
import sys
from plumbline.pytorch import PrecisionDebugger
PrecisionDebugger(sys.argv[1])
""", path)
    log = result.stdout + result.stderr
    for key, meant in (("ranks", "rank"), ("statistics.sumary_mode", "summary_mode")):
        assert log.count(f'{key}: unknown key, ignored. Did you mean "{meant}"?') == 1
