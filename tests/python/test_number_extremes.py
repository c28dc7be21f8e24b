"""Numbers at the ends of their types, checksums that prove little: what differs is never `same`,
and what is nothing but the end of a type is no alarm.
"""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from compare_cases import Dump
from recording import PLUMB

DENORMAL = 5e-324
WIDE = torch.float64


def compare(target: Dump, golden: Dump, directory: Path) -> tuple[str, list[dict[str, Any]], int]:
    """What is printed, the rows of the result, and the exit status under --fail-on any."""
    sides = [side.write(directory / name).parent
             for name, side in (("target", target), ("golden", golden))]
    command = [PLUMB, "compare", *sides, "-o", directory / "out", "--fail-on", "any"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    [written] = (directory / "out").glob("compare_result_*.json")
    rows = json.loads(written.read_text())["rows"]
    return result.stdout + result.stderr, rows, result.returncode


def pair(target: torch.Tensor, golden: torch.Tensor, task: str = "tensor") -> tuple[Dump, Dump]:
    """A call that makes these from equal inputs."""
    sides = Dump(task=task), Dump(task=task)
    for side, made in zip(sides, (target, golden), strict=True):
        read = torch.arange(1.0, made.numel() + 1, dtype=WIDE)
        side.forward("Torch.exp.0.forward", [read], [made])
    return sides


WRONG = [
    ([1e200, 1e200], [1e200, 1.5e200]),
    ([1e-170, 0], [-9e-170, 0]),
    ([8e307, 1], [-8e307, 1]),
    ([3e-300, 1e-300], [1e-300, 1e-300]),
    ([1e-170 + 2e-170j], [1e-170 - 2e-170j]),
    ([1e300 + 1e300j], [1e300 - 1e300j]),
    ([1.7e308 + 1.7e308j, 1], [1.7e308 + 0.3e308j, 1]),
]


@pytest.mark.parametrize(("target", "golden"), WRONG)
def test_squares_that_are_no_numbers(target: list[Any], golden: list[Any], tmp_path: Path) -> None:
    dtype = torch.complex128 if isinstance(target[0], complex) else WIDE
    sides = pair(torch.tensor(target, dtype=dtype), torch.tensor(golden, dtype=dtype))
    text, rows, status = compare(*sides, tmp_path)
    assert "first wrong call: Torch.exp.0.forward" in text
    assert status == 1
    row = rows[1]
    assert row["verdict"] == "broken"
    for error in (row["error"], row["metrics"]["max_abs_error"], row["metrics"]["relative_l2"],
                  row["metrics"]["max_relative_error"]):
        assert isinstance(error, (int, float)), row
        assert error > 0, row  # false for NaN


def test_rounding_of_large_numbers_is_noise(tmp_path: Path) -> None:
    golden = torch.linspace(1e199, 1e200, 64, dtype=WIDE)
    target = golden * (1 + 2.0**-52)
    text, rows, status = compare(*pair(target, golden), tmp_path)
    assert text.startswith("no wrong call"), text
    assert status == 0
    assert rows[1]["verdict"] == "within noise"
    assert 0 < rows[1]["error"] < 1e-15


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_same_means_equal_bits(dtype: torch.dtype, tmp_path: Path) -> None:
    golden = torch.tensor([0.0, 1, 2], dtype=dtype)
    target = torch.tensor([-0.0, 1, 2], dtype=dtype)
    text, rows, _ = compare(*pair(target, golden), tmp_path / "signs")
    assert text.startswith("no wrong call")
    assert rows[1]["verdict"] == "within noise"
    assert rows[1]["metrics"]["mismatch_count"] == 1
    _, rows, _ = compare(*pair(golden, golden), tmp_path / "equal")
    assert rows[1]["verdict"] == "same"


SMALL = [
    ([0.0, 0, 0], [3e-39, 1e-40, 0], torch.float32),
    ([1e-45, 2e-40, 0], [3e-45, 2e-40, 0], torch.float32),
    ([0.0, 0, 0], [1e-310, DENORMAL, 0], WIDE),
    ([2 * DENORMAL, 0], [DENORMAL, 0], WIDE),
    ([0.0, 0], [5e-39, 0], torch.bfloat16),
    ([2.0**-23, 0], [2.0**-24, 0], torch.float16),
]


@pytest.mark.parametrize("task", ["tensor", "statistics"])
@pytest.mark.parametrize(("target", "golden", "dtype"), SMALL)
def test_below_the_smallest_normal_number(
    target: list[float], golden: list[float], dtype: torch.dtype, task: str, tmp_path: Path
) -> None:
    sides = pair(torch.tensor(target, dtype=dtype), torch.tensor(golden, dtype=dtype), task)
    text, rows, status = compare(*sides, tmp_path)
    assert text.startswith("no wrong call"), text
    assert status == 0
    assert (rows[1]["verdict"], rows[1]["reason"]) == ("within noise", "subnormal")
    assert rows[1]["error"] > 0


LARGER = [
    ([0.0, 0], [3e-38, 0], torch.float32),
    ([0.0, 0], [5e-308, 0], WIDE),
    ([0.0, 0], [2.0**-20, 0], torch.float16),  # far from the end of the type
]


@pytest.mark.parametrize(("target", "golden", "dtype"), LARGER)
def test_above_the_smallest_normal_number(
    target: list[float], golden: list[float], dtype: torch.dtype, tmp_path: Path
) -> None:
    sides = pair(torch.tensor(target, dtype=dtype), torch.tensor(golden, dtype=dtype))
    text, _, status = compare(*sides, tmp_path)
    assert "first wrong call: Torch.exp.0.forward" in text
    assert status == 1


def of_xor(slope: float) -> Dump:
    """A call of which nothing but an XOR is known: two equal words are none."""
    leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4],
            "md5": "0x0000000000000000", "requires_grad": False}
    dump = Dump()
    dump.forward("Functional.leaky_relu.0.forward", [leaf, slope], [leaf])
    return dump


def test_equal_xors_prove_little(tmp_path: Path) -> None:
    text, _, _ = compare(of_xor(0.5), of_xor(0.5), tmp_path)
    assert text.startswith("no wrong call")
    [line] = [line for line in text.splitlines() if "certainty" in line]
    assert line.startswith("  certainty: low: only XORs")
    assert "sure" not in line


def test_equal_xors_excuse_no_argument(tmp_path: Path) -> None:
    text, rows, status = compare(of_xor(0.25), of_xor(0.5), tmp_path)
    assert "first wrong call: Functional.leaky_relu.0.forward" in text
    assert rows[1]["reason"] == "argument-differs"
    assert math.isfinite(rows[1]["error"])
    assert status == 1
