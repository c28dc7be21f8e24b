"""Scripts beside upstream's program: compare_vector and dump_data_conversion."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from device_dumps import Dump, plain
from msaccucmp_cases import ALGORITHMS, chain, expected_values, normal, run

TIME = 1_612_439_563_000_000
ARRAYS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([True, False]),
          np.asfortranarray(normal((3, 4))), np.zeros((0, 2), np.int64), np.array(7, np.int8),
          np.array([1 + 2j], np.complex64)]


def test_compare_vector(tmp_path: Path) -> None:
    """The older command line: a csv file, or cells between blanks, at the path that is named."""
    chain(tmp_path / "golden")
    chain(tmp_path / "mine", wrong_from=2)
    words = ["compare_vector", "-l", tmp_path / "mine", "-r", tmp_path / "golden"]
    done = run(*words, "-o", tmp_path / "out.csv", "-csv")
    assert done.stdout.splitlines()[0] == "first wrong call: op2"
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    x, y = normal((2, 3, 4, 5), 112), normal((2, 3, 4, 5), 12)
    assert {name: rows[5][name] for name in ALGORITHMS} == expected_values(x, y)
    run(*words, "-o", tmp_path / "out.txt")
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert lines[0].startswith("Index OpType NPUDump DataType Address GroundTruth")
    assert [line.split()[2] for line in lines[1:]] == [row["NPUDump"] for row in rows]
    run(*words, "-o", tmp_path / "detail", "-d", "op1", "-t", "input", "-i", "0")
    assert (tmp_path / "detail" / "op1_input_0_summary.txt").exists()
    run(*words, "-o", tmp_path / "detail", "-d", "op1", "-t", "both", code=6)
    run("compare_vector", "-l", tmp_path / "mine", code=2)
    run("compare_vector", "-l", tmp_path / "no", "-r", tmp_path / "mine", "-o", "x", code=3)


@pytest.mark.parametrize(("kind", "suffix"), [("tf", ".pb"), ("caffe", ".pb"), ("quant", ".quant")])
def test_arrays_of_frameworks_there_and_back(tmp_path: Path, kind: str, suffix: str) -> None:
    """Every array is the same when it comes back, and its dump has what the array says."""
    for i, array in enumerate(ARRAYS):
        (tmp_path / "npy").mkdir(exist_ok=True)
        np.save(tmp_path / "npy" / f"net.conv{i}.0.{TIME}.npy", array)
    (tmp_path / "npy" / "other.npy").write_bytes(b"")
    words = ["dump_data_conversion", "-type", kind]
    done = run(*words, "-target", "dump", "-i", tmp_path / "npy", "-o", tmp_path / "dump")
    assert "other.npy: left out" in done.stderr
    dumps = sorted((tmp_path / "dump").iterdir())
    assert [path.name for path in dumps] == [f"net.conv{i}.0.{TIME}{suffix}"
                                             for i in range(len(ARRAYS))]
    assert dumps[0].read_bytes().endswith(ARRAYS[0].tobytes())
    run(*words, "-target", "numpy", "-i", tmp_path / "dump", "-o", tmp_path / "back")
    for i, array in enumerate(ARRAYS):
        back = np.load(tmp_path / "back" / f"net.conv{i}.0.{TIME}.npy")
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)


def test_arrays_of_a_device_there_and_back(tmp_path: Path) -> None:
    """All arrays of an operator are one dump, byte for byte as one written by its description."""
    x, y = normal((2, 3)), normal((4,), 2)
    dump = Dump(inputs=[plain(x), plain(y)], outputs=[plain(y)])
    name = f"Add.net_add.3.7.{TIME}"
    dump.write(tmp_path / "first" / name)
    words = ["dump_data_conversion", "-type", "offline"]
    run(*words, "-target", "numpy", "-i", tmp_path / "first", "-o", tmp_path / "npy")
    assert sorted(path.name for path in (tmp_path / "npy").glob("*.npy")) == [
        f"{name}.input.0.npy", f"{name}.input.1.npy", f"{name}.output.0.npy"]
    run(*words, "-target", "dump", "-i", tmp_path / "npy", "-o", tmp_path / "dump")
    (path,) = (tmp_path / "dump").iterdir()
    assert path.name == name
    assert path.read_bytes().endswith(x.tobytes() + y.tobytes() + y.tobytes())
    run("compare", "-m", tmp_path / "dump", "-g", tmp_path / "first", "-out", tmp_path)
    (result,) = tmp_path.glob("result_*.csv")
    with result.open(newline="") as file:
        assert [row["Verdict"] for row in csv.DictReader(file)] == ["same"] * 3
    # Upstream's form of names: an output without a word for it; and shapes of `convert -f`.
    np.save(tmp_path / f"{name}.0.npy", x)
    run(*words, "-target", "dump", "-i", tmp_path / f"{name}.0.npy", "-o", tmp_path / "one")
    assert (tmp_path / "one" / name).read_bytes().endswith(x.tobytes())
    np.save(tmp_path / f"{name}.output.0.2x3.npy", x)
    run(*words, "-target", "dump", "-i", tmp_path / f"{name}.output.0.2x3.npy", "-o",
        tmp_path / "two")
    assert (tmp_path / "two" / name).exists()


def test_conversion_of_bad_files(tmp_path: Path) -> None:
    """Each bad file is one line; the others are converted; wrong words have upstream's numbers."""
    (tmp_path / "npy").mkdir()
    np.save(tmp_path / "npy" / f"good.0.{TIME}.npy", np.arange(3))
    (tmp_path / "npy" / f"cut.0.{TIME}.npy").write_bytes(b"\x93NUMPY\x01\x00")
    np.save(tmp_path / "npy" / f"text.0.{TIME}.npy", np.array(["a"]))
    words = ["dump_data_conversion", "-i", tmp_path / "npy", "-o", tmp_path / "out"]
    done = run(*words, "-target", "dump", "-type", "tf", code=11)
    assert len([line for line in done.stderr.splitlines() if "cut.0" in line]) == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"good.0.{TIME}.pb"]
    (tmp_path / "out" / f"cut.0.{TIME}.pb").write_bytes(
        (tmp_path / "out" / f"good.0.{TIME}.pb").read_bytes()[:-3])
    back = ["dump_data_conversion", "-i", tmp_path / "out", "-o", tmp_path / "back", "-target",
            "numpy", "-type", "tf"]
    assert "cut" in run(*back, code=11).stderr
    assert [path.name for path in (tmp_path / "back").iterdir()] == [f"good.0.{TIME}.npy"]
    run(*words, "-target", "dump", "-type", "mine", code=24)
    run(*words, "-target", "text", "-type", "tf", code=25)
    run(*words, "-target", "dump", "-type", "offline", code=18)
    run(*words, "-target", "dump", code=2)
    run("dump_data_conversion", "-i", tmp_path / "no", "-o", tmp_path, "-target", "dump", "-type",
        "tf", code=3)
    hole = tmp_path / "hole"
    hole.mkdir()
    np.save(hole / f"Add.a.1.2.{TIME}.output.1.npy", np.arange(2))
    done = run("dump_data_conversion", "-i", hole, "-o", tmp_path / "holes", "-target", "dump",
               "-type", "offline", code=18)
    assert "output 0 is missing" in done.stderr
    assert not list((tmp_path / "holes").iterdir())
