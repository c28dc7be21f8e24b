"""The measures of msaccucmp next to those of upstream's own program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import run, upstream_python

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

NAMES = ["CosineSimilarity", "MaxAbsoluteError", "AccumulatedRelativeError",
         "RelativeEuclideanDistance", "KullbackLeiblerDivergence", "StandardDeviation",
         "MeanAbsoluteError", "RootMeanSquareError", "MaxRelativeError", "MeanRelativeError"]

RANDOM = np.random.default_rng(7)
Y = RANDOM.normal(size=(3, 5)).astype(np.float32)
ZERO = np.zeros_like(Y)
INTEGER = np.array([2**40 + 1, 1, 2])

# Arrays, and the measures that are repaired: upstream casts to float32 first and cannot subtract
# bools; docs/reference/msaccucmp.md says what is here.
CASES: dict[str, tuple[Any, Any, set[str]]] = {
    "equal": (Y, Y, set()),
    "twice": (2 * Y, Y, set()),
    "random": (RANDOM.normal(size=(3, 5)).astype(np.float16), Y.astype(np.float16),
               {"AccumulatedRelativeError", "MaxRelativeError", "MeanRelativeError"}),
    "golden zero": (Y, ZERO, set()),
    "mine zero": (ZERO, Y, set()),
    "both zero": (ZERO, ZERO, set()),
    "one NaN": (np.where(Y == Y.max(), np.float32(np.nan), Y), Y, set()),
    "one Inf": (np.where(Y == Y.max(), np.float32(np.inf), Y), Y, set()),
    "one element": (Y[:1, :1], Y[1:2, 1:2], set()),
    "bool": (np.array([True, False, True, True]), np.array([True] * 4),
             {"RelativeEuclideanDistance"}),
    "int64": (INTEGER + np.array([0, 1, 1]), INTEGER, {"StandardDeviation"}),
    "large int64": (INTEGER, INTEGER - np.array([1, 0, 0]), {"MaxAbsoluteError",
                                                             "StandardDeviation",
                                                             "MeanAbsoluteError",
                                                             "RootMeanSquareError"}),
}


def upstreams(mine: Path, golden: Path, out: Path) -> dict[str, str]:
    """What upstream's `compare` of two arrays prints."""
    python = upstream_python("26.2.0")
    (script,) = python.parent.parent.glob("lib/python3*/site-packages/msprobe/msaccucmp/"
                                          "msaccucmp.py")
    done = run([python, script, "compare", "-m", mine, "-g", golden, "-out", out], fresh=True)
    lines = [re.sub(r"^.* - \[INFO\] ", "", line).split()
             for line in (done.stdout + done.stderr).splitlines()]
    titles = lines.index(NAMES)
    return dict(zip(NAMES, lines[titles + 1], strict=True))


def ours(plumb: Path, mine: Path, golden: Path) -> dict[str, str]:
    """What `plumb msaccucmp compare` prints, without its verdict."""
    done = run([plumb, "msaccucmp", "compare", "-m", mine, "-g", golden])
    assert done.returncode == 0, done.stderr
    pairs = [line.split(": ", 1) for line in done.stdout.splitlines()]
    return {name: value for name, value in pairs if name in NAMES}


@pytest.mark.parametrize("case", CASES)
def test_values_are_upstreams(case: str, plumb: Path, tmp_path: Path) -> None:
    mine, golden, repaired = CASES[case]
    np.save(tmp_path / "mine.npy", mine)
    np.save(tmp_path / "golden.npy", golden)
    theirs = upstreams(tmp_path / "mine.npy", tmp_path / "golden.npy", tmp_path / "out")
    own = ours(plumb, tmp_path / "mine.npy", tmp_path / "golden.npy")
    assert {name for name in NAMES if own[name] != theirs[name]} == repaired, (own, theirs)
