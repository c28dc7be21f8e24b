"""What the tests of msaccucmp share: the command, its rows, recordings and NumPy's values."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from operator_dumps import dump_name, write_dump
from recording import PLUMB

ALGORITHMS = ["CosineSimilarity", "MaxAbsoluteError", "AccumulatedRelativeError",
              "RelativeEuclideanDistance", "KullbackLeiblerDivergence", "StandardDeviation",
              "MeanAbsoluteError", "RootMeanSquareError", "MaxRelativeError", "MeanRelativeError"]

Array = np.ndarray[Any, Any]


def run(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs plumb msaccucmp and checks the exit status."""
    done = subprocess.run([PLUMB, "msaccucmp", *map(str, words)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == code, done.stderr
    return done


def rows_of(directory: Path, pattern: str = "result_*.csv") -> list[dict[str, str]]:
    """The rows of the only result; each has as many cells as the header."""
    (path,) = directory.glob(pattern)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {len(rows[0])}
    names = [f"{name}.2" if name in rows[0][:i] else name for i, name in enumerate(rows[0])]
    return [dict(zip(names, row, strict=True)) for row in rows[1:]]


def normal(shape: tuple[int, ...], seed: int = 1) -> Array:
    """Halves that differ from each other."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float16)


def expected_values(x: Array, y: Array) -> dict[str, str]:
    """The measures by NumPy, in double."""
    x, y = x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(np.abs(y) > 2.220446e-16, np.abs(x / y - 1), 0)
    p, q = ((v - v.min()) / (v.max() - v.min()) for v in (x, y))
    p, q = (np.maximum(v, np.finfo(np.float32).eps) for v in (p, q))
    p, q = p / p.sum(), q / q.sum()
    numbers = [x @ y / np.linalg.norm(x) / np.linalg.norm(y), np.abs(x - y).max(), relative.sum(),
               np.sqrt(((x - y) ** 2).sum() / (y ** 2).sum()), (p * np.log(p / q)).sum(), None,
               np.abs(x - y).mean(), np.sqrt(((x - y) ** 2).mean()), relative.max(),
               relative.mean()]
    texts = [f"({x.mean():.3f};{x.std():.3f}),({y.mean():.3f};{y.std():.3f})" if number is None
             else f"{number:.6f}" for number in numbers]
    return dict(zip(ALGORITHMS, texts, strict=True))


def chain(directory: Path, wrong_from: int | None = None, missing: int | None = None,
          nan: int | None = None) -> None:
    """Five operators, each fed by the one before; from `wrong_from` on, numbers are others."""
    directory.mkdir()
    for i in range(5):
        is_wrong = wrong_from is not None and i >= wrong_from
        fed_wrongly = wrong_from is not None and i > wrong_from
        value = normal((2, 3, 4, 5), 10 + i + (100 if is_wrong else 0))
        given = normal((2, 3, 4, 5), 9 + i + (100 if fed_wrongly else 0))
        if i == nan:
            value.flat[3] = np.nan
        if i != missing:
            write_dump(directory / dump_name("Relu", f"op{i}", i), [(given, "NC1HWC0")],
                       [(value, "NC1HWC0")])
