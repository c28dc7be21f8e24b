"""One element that is off among many that are right, and the noise of products, which is not."""

from __future__ import annotations

import csv
import re
import subprocess
from pathlib import Path
from typing import Any

import device_dumps as dumps
import numpy as np
import pytest
from recording import PLUMB

Array = np.ndarray[Any, Any]
NAME = "MatMul.net_fc.3.7.1612439563338020"


def verdict_of(directory: Path, way: str, mine: Array, golden: Array) -> str:
    """"verdict, reason" that one of the three commands gives of two arrays."""
    directory.mkdir()
    if way == "dumps":
        for side, array in (("mine", mine), ("golden", golden)):
            dumps.Dump(outputs=[dumps.plain(array)]).write(directory / side / NAME)
        subprocess.run([PLUMB, "compare", directory / "mine", directory / "golden", "-o",
                        directory], check=True, capture_output=True)
        (result,) = directory.glob("result_*.csv")
        (row,) = csv.DictReader(result.open(newline=""))
        return ", ".join(filter(None, (row["Verdict"], row["Reason"])))
    for side, array in (("mine", mine), ("golden", golden)):
        np.save(directory / f"{side}.npy", array)
    files = [directory / "mine.npy", directory / "golden.npy"]
    if way == "arrays":
        done = subprocess.run([PLUMB, "compare", *files, "--json"], capture_output=True, text=True)
        found = {key: re.search(rf'"{key}":\s*"([^"]*)"', done.stdout)
                 for key in ("verdict", "reason")}
        return ", ".join(match[1] for match in found.values() if match and match[1])
    done = subprocess.run([PLUMB, "msaccucmp", "file_compare", "-m", files[0], "-g", files[1],
                           "-out", directory], capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Verdict: ")]
    return line.removeprefix("Verdict: ")


@pytest.mark.parametrize("way", ["arrays", "file_compare", "dumps"])
@pytest.mark.parametrize("value", [1.5, 0.1])
def test_one_wrong_element_among_many(tmp_path: Path, way: str, value: float) -> None:
    golden = np.random.default_rng(1).normal(size=(100, 100)).astype(np.float16)
    golden[40, 7] = value
    mine = golden.copy()
    mine[40, 7] *= 1.06
    assert verdict_of(tmp_path / "six", way, mine, golden) == "suspicious, outlier"
    mine[40, 7] = 4
    assert verdict_of(tmp_path / "much", way, mine, golden) == "broken, outlier"
    mine = np.nextafter(golden, np.float16(np.inf))
    mine[40, 7] = np.float16(value * 1.06)
    assert verdict_of(tmp_path / "both", way, mine, golden) == "suspicious, outlier"
    mine[40, 7] = value
    assert verdict_of(tmp_path / "rounded", way, mine, golden) == "within noise"


@pytest.mark.parametrize("way", ["arrays", "dumps"])
@pytest.mark.parametrize("terms", [16, 1024])
def test_products_in_half_precision(tmp_path: Path, way: str, terms: int) -> None:
    """Sums in single precision that are rounded once, and factors that were rounded before: both
    against doubles, with columns of all sizes."""
    random = np.random.default_rng(terms)
    a, b = random.normal(size=(200, terms)), random.normal(size=(terms, 150))
    b *= 10.0 ** random.uniform(-1, 1, 150)
    half_a, half_b = a.astype(np.float16), b.astype(np.float16)
    rounded = (half_a.astype(np.float32) @ half_b.astype(np.float32)).astype(np.float16)
    exact = half_a.astype(np.float64) @ half_b.astype(np.float64)
    assert verdict_of(tmp_path / "once", way, rounded, exact) == "within noise"
    assert verdict_of(tmp_path / "before", way, rounded, a @ b) == "within noise"
    rounded[17, 60] += np.float16(np.abs(exact).max() / 50)
    assert verdict_of(tmp_path / "wrong", way, rounded, exact) == "suspicious, outlier"
