"""Complex tensors of operators: a wrong phase is a wrong number in every measure."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from device_dumps import Dump, plain
from msaccucmp_cases import Array, normal, rows_of, run
from operator_dumps import dump_name

NAMES = ["CosineSimilarity", "MaxAbsoluteError", "AccumulatedRelativeError",
         "RelativeEuclideanDistance", "MeanAbsoluteError", "RootMeanSquareError",
         "MaxRelativeError", "MeanRelativeError"]


def numbers() -> Array:
    return (normal((40,)) + 1j * normal((40,), 2)).astype(np.complex64)


def expected(x: Array, y: Array) -> dict[str, str]:
    x, y = x.astype(np.complex128), y.astype(np.complex128)
    distance, relative = np.abs(x - y), np.abs(x / y - 1)
    values = [np.vdot(y, x).real / np.linalg.norm(x) / np.linalg.norm(y), distance.max(),
              relative.sum(), np.linalg.norm(x - y) / np.linalg.norm(y), distance.mean(),
              np.sqrt((distance ** 2).mean()), relative.max(), relative.mean()]
    return {name: f"{value:.6f}" for name, value in zip(NAMES, values, strict=True)}


@pytest.mark.parametrize("degrees", [1, 90, 180])
def test_a_wrong_phase_is_seen_in_every_measure(tmp_path: Path, degrees: int) -> None:
    golden = numbers()
    mine = (golden * np.exp(1j * np.deg2rad(degrees))).astype(np.complex64)
    for side, array in (("mine", mine), ("golden", golden)):
        Dump(outputs=[plain(array)]).write(tmp_path / side / dump_name("FFT", "fft", 1))
    done = run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path,
               "-advisor")
    assert done.stdout.startswith("first wrong call: fft")
    (row,) = rows_of(tmp_path)
    assert row["Verdict"] == "broken"
    assert {name: row[name] for name in NAMES} == expected(mine, golden)
    assert "meet the requirement" not in (tmp_path / "advisor_summary.txt").read_text()


def test_files_and_a_real_side(tmp_path: Path) -> None:
    golden = numbers()
    for name, array in (("golden", golden), ("mine", golden.conj()), ("real", golden.real)):
        np.save(tmp_path / f"{name}.npy", array)
    for name in ("mine", "real"):
        done = run("file_compare", "-m", tmp_path / f"{name}.npy", "-g", tmp_path / "golden.npy",
                   "-out", tmp_path / name)
        values = dict(line.split(": ") for line in done.stdout.splitlines()[:-1])
        assert values["Verdict"].startswith("broken")
        mine = np.load(tmp_path / f"{name}.npy")
        assert {one: values[one] for one in NAMES} == expected(mine, golden)


def test_elements_in_detail_have_both_parts(tmp_path: Path) -> None:
    golden = np.array([1 + 2j, 3 - 4j, 5j], np.complex64)
    mine = np.array([1 + 2j, 3 + 4j, 5j], np.complex64)
    for side, array in (("mine", mine), ("golden", golden)):
        Dump(outputs=[plain(array)]).write(tmp_path / side / dump_name("FFT", "fft", 1))
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path, "-op",
        "fft")
    with (tmp_path / "fft_output_0_absolute_error_topn.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 4
    assert rows[1][0] == "1"
    assert [cell.strip() for cell in rows[1][2:]] == ["3.000000+4.000000j", "3.000000-4.000000j",
                                                      "8.000000", "1.600000"]
    summary = (tmp_path / "fft_output_0_summary.txt").read_text()
    assert "TotalCount:3\n" in summary and "MaxAbsoluteError:8.000000\n" in summary
