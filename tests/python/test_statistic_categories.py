"""Every item of statistic_category that `plumb dump-config finish` writes, against NumPy in double
precision and hashlib.
"""

from __future__ import annotations

import csv
import hashlib
import math
import pathlib
import subprocess

import numpy as np
import pytest
from recording import PLUMB

ITEMS = ["max", "min", "avg", "count", "negative zero count", "positive zero count", "nan count",
         "negative inf count", "positive inf count", "zero count", "l2norm", "hash:sha1",
         "hash:md5"]
COUNTS = {"Count": lambda x: x.size, "Negative Zero Count": lambda x: np.sum(x < 0),
          "Positive Zero Count": lambda x: np.sum(x > 0), "NaN Count": lambda x: np.isnan(x).sum(),
          "Negative Inf Count": lambda x: np.isneginf(x).sum(),
          "Positive Inf Count": lambda x: np.isposinf(x).sum(),
          "Zero Count": lambda x: np.sum(x == 0)}
REALS = {"Max Value": np.max, "Min Value": np.min, "Avg Value": np.mean,
         "L2Norm Value": lambda x: np.sqrt(np.sum(x * x))}
SLICE = 20480  # elements


def tensors() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    large = (random.standard_normal((3, SLICE)) * 10).astype(np.float32)
    large[random.random(large.shape) < 0.1] = -0.0
    odd = random.standard_normal(1000).astype(np.float32)
    odd[[3, 500, 501, 999]] = np.nan, np.inf, -np.inf, 0
    return {
        "Float32": large, "Float64": random.standard_normal(77) * 1e-310,
        "Float16": random.standard_normal((5, 7)).astype(np.float16) * np.float16(1e-6),
        "Int8": random.integers(-128, 128, 999).astype(np.int8),
        "Int64": random.integers(-2**62, 2**62, (4, 4)),
        "UInt16": random.integers(0, 2**16, 50).astype(np.uint16),
        "Bool": random.integers(0, 2, 33).astype(bool), "odd": odd,
        "infinite": np.array([[1, -np.inf]], np.float32), "scalar": np.float32(-2.5).reshape(()),
    }


def sha1(values: np.ndarray) -> str:
    """Of the bytes, or of the digests of their slices."""
    flat = values.ravel()
    parts = [hashlib.sha1(flat[at:at + SLICE].tobytes()).hexdigest()
             for at in range(0, flat.size, SLICE)]
    return parts[0] if len(parts) == 1 else hashlib.sha1("".join(parts).encode()).hexdigest()


@pytest.mark.parametrize("digits", [6, 17])
def test_every_category_is_what_numpy_computes(tmp_path: pathlib.Path, digits: int) -> None:
    directory = tmp_path / "rank_0/Net/0/0"
    directory.mkdir(parents=True)
    values = tensors()
    for number, (name, array) in enumerate(values.items()):
        np.save(directory / f"Mul.{name}.0.0.{1700000000 + number}.output.0.DefaultFormat.npy",
                array)
    done = subprocess.run([PLUMB, "dump-config", "finish", tmp_path, "--digits", str(digits),
                           "--statistic-category", *ITEMS],
                          text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    with (directory / "statistic.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    rows = {line[1]: dict(zip(header, line, strict=False)) for line in lines}
    assert list(rows) == list(values)
    for name, array in values.items():
        row = rows[name]
        wide = array.astype(np.float64)
        for column, count in COUNTS.items():
            assert int(row[column]) == count(array), (name, column)
        with np.errstate(invalid="ignore"):
            expected = {column: float(of(wide)) for column, of in REALS.items()}
        for column, value in expected.items():
            if digits == 17 and name == "Int64" and column in ("Max Value", "Min Value"):
                assert int(row[column]) == (array.max() if column == "Max Value" else array.min())
                continue
            got = float(row[column])
            near = math.isclose(got, value, rel_tol=5e-6 if digits == 6 else 1e-13)
            assert near or (math.isnan(value) and math.isnan(got)), (name, column, got, value)
        assert row["SHA1"] == sha1(array), name
        assert row["MD5"] == hashlib.md5(array.tobytes()).hexdigest(), name
