"""Two training steps of a small MLP against the files that release 1.2.2 wrote of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from recording import run_script

pytest.importorskip("torch")
DATA = Path(__file__).parents[1] / "data"
GOLDEN = DATA / "upstream_1.2.2" / "golden_run"
# Tensors have one to twenty elements. Upstream adds them up in float32, each sum rounded to the
# size of its largest terms; plumbline in double.
ULPS = {"Mean": 4, "Norm": 1}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("golden")
    script = DATA / "make_golden_run.py"
    run_script(script, out, "plumbline")
    return out


def same(path: str, ours: Any, theirs: Any, scale: float = 0.0) -> None:
    """Fails unless both are equal; of keys the order counts too."""
    assert type(ours) is type(theirs), path
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), path
        if theirs.get("Norm") is not None:
            scale = max(abs(theirs["Max"]), abs(theirs["Min"]))
        for key, value in theirs.items():
            same(f"{path}/{key}", ours[key], value, scale)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), path
        for position, value in enumerate(theirs):
            same(f"{path}/{position}", ours[position], value, scale)
    elif path.endswith(("Mean", "Norm")) and isinstance(theirs, float):
        key = path.rsplit("/", 1)[1]
        limit = ULPS[key] * 2.0**-23 * max(scale, abs(theirs))
        assert math.isclose(ours, theirs, rel_tol=0, abs_tol=limit), path
    else:
        assert ours == theirs, path


@pytest.mark.parametrize("step", [0, 1])
def test_entries_keys_statistics_and_checksums_are_upstreams(recorded: Path, step: int) -> None:
    ours, theirs = (json.loads((path / f"step{step}.json").read_text())
                    for path in (recorded, GOLDEN))
    forward = ["Functional.linear.0", "Functional.relu.0", "Functional.linear.1", "Tensor.sum.0"]
    assert [name for name in theirs["data"] if name.endswith(".forward")][:4] == [
        f"{name}.forward" for name in forward]
    backward = [name for name in theirs["data"] if name.endswith(".backward")]
    assert backward == [f"{name}.backward" for name in forward[::-1]
                        if f"{name}.backward" in theirs["data"]] and len(backward) >= 3
    for run in (ours, theirs):
        del run["dump_data_dir"]
    same("", ours, theirs)


def test_the_steps_differ(recorded: Path) -> None:
    """So that a recorder that repeats its first step fails above."""
    first, second = (json.loads((recorded / f"step{step}.json").read_text()) for step in (0, 1))
    assert list(first["data"]) == list(second["data"]) and first["data"] != second["data"]
