"""Slices of tensors and rows of one request, against upstream 26.2.0, which has both."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import run, upstream_python

PROGRAM = """
import sys
import torch
from {package}.pytorch import PrecisionDebugger

torch.manual_seed(0)
debugger = PrecisionDebugger(config_path=sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
# The schedules of five steps; of some nothing is known.
for schedule in (dict(a=3, b=4), dict(a=3, c=1), dict(b=2), None, dict(c=1, b=1, a=7)):
    tokens = sum((schedule or dict(b=9)).values())
    hidden = torch.randn(tokens, 6, requires_grad=True)
    debugger.start(model=model, scheduled_tokens=schedule)
    out = model(hidden)
    mixed = torch.stack([hidden.t()[0], hidden.sum(1)], 1) * torch.arange(tokens)[:, None]
    torch.relu(mixed[:0])
    torch.nn.functional.conv1d(hidden.t()[None], torch.ones(2, 6, 1))
    (out.sum() + mixed.sum()).backward()
    debugger.stop()
    debugger.step()
"""
SLICES: list[tuple[list[dict[str, int]], str | None]] = [
    ([], "b"),
    ([{"begin": 1, "end": -1}], None),
    ([{"dim": 1, "begin": -2}, {"dim": 2, "end": 1}, {}, {"size": 9, "end": 2}], None),
    ([{"dim": 1, "end": 4}, {"begin": 5, "end": 1}], "b"),
    ([{"end": 2}, {"size": 5, "begin": 3, "end": 50}, {"dim": 7, "end": 0}], None),
]


def tensors(value: Any, path: str = "") -> dict[str, dict[str, Any]]:
    """Every tensor of an entry by its place."""
    if isinstance(value, dict) and "shape" in value:
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {place: found for key, one in items if isinstance(one, dict | list)
            for place, found in tensors(one, f"{path}.{key}").items()}


def recorded(root: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for path in sorted(root.glob("step*/*/dump.json")):
        data = json.loads(path.read_text())["data"]
        found |= {f"{path.parts[-3]} {name}{place}": tensor for name, entry in data.items()
                  for place, tensor in tensors(entry).items()}
    return found


@pytest.mark.parametrize("at", range(len(SLICES)))
def test_the_same_parts_as_upstream(tmp_path: Path, at: int) -> None:
    slices, request = SLICES[at]
    sides = {}
    for package, python in (("msprobe", upstream_python("26.2.0")), ("plumbline", sys.executable)):
        directory = tmp_path / package
        directory.mkdir()
        settings = directory / "config.json"
        part = {"slice": slices} | ({"request_id": request} if request else {})
        settings.write_text(json.dumps({
            "task": "statistics", "level": "mix", "risk_level": "ALL",
            "dump_path": str(directory / "out"), "statistics": part}))
        done = run([python, "-c", PROGRAM.format(package=package), settings])
        assert done.returncode == 0, done.stdout + done.stderr
        sides[package] = recorded(directory / "out")
    theirs, ours = sides["msprobe"], sides["plumbline"]
    shared = [name for name in theirs if name in ours]
    assert len(shared) > (120 if request is None else 90)
    for name in shared:
        assert ours[name]["shape"] == theirs[name]["shape"], name
        for key in ("Max", "Min", "Mean", "Norm"):
            value, expected = ours[name][key], theirs[name][key]
            if expected is None:  # nothing is left, or an integer's mean, which only we have
                assert value is None or theirs[name]["dtype"] == "torch.int64", (name, key)
                continue
            assert value == pytest.approx(expected, rel=1e-5, abs=1e-6), (name, key)
