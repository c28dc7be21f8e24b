"""plumb compare and plumb h5copy on operator dumps, files of h5py standing for PyTorch 1.5's."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from recording import PLUMB

from plumbline.pytorch import dumper

DATA_TYPES = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "float16": 10, "float64": 11}


def run(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *map(str, arguments)], capture_output=True, text=True)


def write_old_dump(path: Path, values: dict[str, np.ndarray[Any, Any]], device: int) -> Path:
    """As PyTorch 1.5 wrote it: float16 widened, bytes signed, no checksums."""
    with h5py.File(path, "a") as file:
        for name, array in values.items():
            kind = DATA_TYPES[array.dtype.name]
            stored = array.view(np.int8) if array.dtype == np.uint8 else array
            stored = stored.astype(np.float32) if stored.dtype == np.float16 else stored
            dataset = file.create_dataset(name, data=stored)
            for attribute, number in (("DeviceType", device), ("DataType", kind),
                                      ("FormatType", 0), ("Type", 0)):
                dataset.attrs.create(attribute, number, dtype=np.int32)
            strides = [stride // stored.itemsize for stride in stored.strides]
            dataset.attrs.create("Stride", strides, dtype=np.int64)
    return path


def compare(mine: Path, golden: Path, out: Path) -> tuple[str, list[dict[str, str]]]:
    done = run("compare", mine, golden, "-o", out)
    assert done.returncode == 0, done.stderr
    (result,) = out.glob("result_*.csv")
    with result.open(newline="") as file:
        return done.stdout, list(csv.DictReader(file))


def by_path(rows: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    return {row["NPUDumpPath"]: row for row in rows}


def dump(path: Path, factor: float) -> Path:
    torch.manual_seed(0)
    data = torch.randn(4, 4)
    with dumper(use_dump=True, dump_path=str(path)):
        hidden = data.mul(2.0).relu()
        hidden = hidden.matmul(data) if factor == 1 else hidden.matmul(data) * 1  # another call
        hidden.add(1)
    if factor != 1:
        with h5py.File(path, "r+") as file:
            (call,) = file["mm"].values()
            call["output/result"][0, 0] = 100 * factor
    return path


def test_equal_dumps_and_the_columns(tmp_path: Path) -> None:
    text, rows = compare(dump(tmp_path / "a.h5", 1), dump(tmp_path / "b.h5", 1), tmp_path / "out")
    assert text.startswith("no wrong call\n")
    assert list(rows[0])[:6] == [
        "Index", "NPUDump", "NPUDumpPath", "GroundTruthPath", "DataType", "Shape",
    ]
    assert list(rows[0])[6:17] == [
        "CosineSimilarity", "MaxAbsoluteError", "AccumulatedRelativeError",
        "RelativeEuclideanDistance", "KullbackLeiblerDivergence", "StandardDeviation",
        "MeanAbsoluteError", "RootMeanSquareError", "MaxRelativeError", "MeanRelativeError",
        "CompareFailReason",
    ]
    assert [row["NPUDump"] for row in rows] == [
        "mul_Tensor", "mul_Tensor", "relu", "relu", "mm", "mm", "mm", "add_Tensor", "add_Tensor",
    ]
    assert {row["Verdict"] for row in rows} == {"same"}
    assert rows[0]["CosineSimilarity"] == "1.000000" and rows[0]["Shape"] == "[4,4]"


@pytest.mark.parametrize("missing_in", [0, 1])
def test_an_argument_that_one_side_lacks_is_a_row(missing_in: int, tmp_path: Path) -> None:
    """Numbers as well as tensors: a missing one may be another one."""
    paths = [tmp_path / "mine.h5", tmp_path / "golden.h5"]
    for path in paths:
        shutil.copy(Path(__file__).resolve().parents[1] / "data" / "hdf5_dump" / "old.h5", path)
    with h5py.File(paths[missing_in], "r+") as file:
        del file["add/1/input/alpha"]
    text, rows = compare(*paths, tmp_path / "out")
    assert "not judged completely" in text.splitlines()[0]
    (row,) = (row for row in rows if row["Reason"] in ("only-target", "only-golden"))
    assert row["Reason"] == ("only-golden", "only-target")[missing_in]
    assert "add/1/input/alpha" in row["CompareFailReason"]


def test_a_damaged_value_is_no_number(tmp_path: Path) -> None:
    # What h5py changed no longer fits the checksum.
    text, rows = compare(dump(tmp_path / "a.h5", 9), dump(tmp_path / "b.h5", 1), tmp_path / "out")
    (bad,) = [row for row in rows if row["Reason"] == "unreadable"]
    assert bad["NPUDump"] == "mm" and "is damaged (expected checksum" in bad["CompareFailReason"]
    assert bad["CosineSimilarity"] == "NaN" and text.startswith("not judged completely")
    # A call of one side only.
    assert any("No data match with op:mul_Tensor" in row["CompareFailReason"] for row in rows)


def test_dumps_of_pytorch_1_5(tmp_path: Path) -> None:
    half = np.array([1.5, -2.25], np.float16)
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    mine = write_old_dump(
        tmp_path / "npu.h5",
        {
            "relu/9/input/self": half, "relu/10/input/self": half * 2,
            "NpuConvolutionBackward/12/output/result": weights,
            "index/3/input/self": np.array([200, 7], np.uint8),
            "gather/4/input/index": np.array([1, 2], np.int32),
            "lost/20/output/result": weights,
        },
        device=10,
    )
    golden = write_old_dump(
        tmp_path / "gpu.h5",
        {
            "relu/5/input/self": half.astype(np.float32), "relu/11/input/self": half * 2,
            "CudnnConvolutionBackward/2/output/result": weights * 2,
            "index/3/input/self": np.array([200, 8], np.uint8),
            "gather/4/input/index": np.array([1, 2], np.int64),
            "only/1/output/result": weights,
        },
        device=1,
    )
    text, rows = compare(mine, golden, tmp_path / "out")
    found = by_path(rows)
    assert found["/relu/9/input/self"]["GroundTruthPath"] == "/relu/5/input/self"
    assert found["/relu/10/input/self"]["GroundTruthPath"] == "/relu/11/input/self"
    assert found["/relu/9/input/self"]["Verdict"] == "same"
    assert found["/gather/4/input/index"]["Verdict"] == "same"  # int32 and int64
    assert found["/index/3/input/self"]["MaxAbsoluteError"] == "1.000000"
    convolution = found["/NpuConvolutionBackward/12/output/result"]
    assert convolution["GroundTruthPath"] == "/CudnnConvolutionBackward/2/output/result"
    assert convolution["Verdict"] == "broken"
    lost = found["/lost/20"]["CompareFailReason"]
    assert lost == "No data match with op:lost in golden dump data."
    assert rows[-1]["Index"] == "21" and rows[-1]["NPUDumpPath"] == "*"
    assert rows[-1]["CompareFailReason"] == "No data match with /only/1 in my dump data."
    assert text.startswith("first wrong call: /")


def test_float16_of_a_cpu_by_pytorch_1_5_is_no_number(tmp_path: Path) -> None:
    values = {"relu/1/input/self": np.array([1.5], np.float16)}
    mine = write_old_dump(tmp_path / "a.h5", values, device=10)
    golden = write_old_dump(tmp_path / "b.h5", values, device=0)
    text, rows = compare(mine, golden, tmp_path / "out")
    assert rows[0]["Verdict"] == "not comparable" and "PyTorch 1.5" in rows[0]["CompareFailReason"]
    assert text.startswith("not judged")


def test_tensors_without_elements_are_no_good_answer(tmp_path: Path) -> None:
    values = {"relu/1/output/result": np.ones(3, np.float32)}
    for name in ("a.h5", "b.h5"):
        with h5py.File(write_old_dump(tmp_path / name, values, device=10), "a") as file:
            empty = file.create_dataset("add/2/output/result", shape=(4,), dtype=np.float32)
            for attribute, number in (("DeviceType", 10), ("DataType", 1), ("Type", 0)):
                empty.attrs.create(attribute, number, dtype=np.int32)
    text, rows = compare(tmp_path / "a.h5", tmp_path / "b.h5", tmp_path / "out")
    assert rows[1]["Reason"] == "no-data" and rows[1]["Verdict"] == "not comparable"
    assert text.startswith("not judged completely")
    assert "without a verdict: 1" in text


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_on_both_sides_is_no_agreement(tmp_path: Path, bad: float) -> None:
    """As plumb compare has it of all dumps: it proves nothing."""
    values = {"relu/1/output/result": np.ones(3, np.float32),
              "log/2/output/result": np.array([1, bad], np.float32)}
    mine = write_old_dump(tmp_path / "a.h5", values, device=10)
    golden = write_old_dump(tmp_path / "b.h5", values, device=1)
    text, rows = compare(mine, golden, tmp_path / "out")
    assert [(row["Verdict"], row["Reason"]) for row in rows] == [
        ("same", ""), ("not comparable", "nonfinite-both")]
    assert text.startswith("not judged completely: the paired tensors show no wrong call\n")
    assert "without a verdict: 1\n" in text
    done = run("compare", mine, golden, "-o", tmp_path / "any", "--fail-on", "any")
    assert done.returncode == 1


def test_a_number_that_is_nan_on_both_sides_does_not_differ(tmp_path: Path) -> None:
    values = {"add/1/output/result": np.ones(3, np.float32)}
    for name in ("a.h5", "b.h5"):
        with h5py.File(write_old_dump(tmp_path / name, values, device=10), "a") as file:
            number = file.create_dataset("add/1/input/alpha", data=np.float64(np.nan))
            number.attrs.create("Type", 5, dtype=np.int32)
    text, rows = compare(tmp_path / "a.h5", tmp_path / "b.h5", tmp_path / "out")
    assert rows[0]["CompareFailReason"] == "The number is NaN on both sides."
    assert (rows[0]["Verdict"], rows[0]["Reason"]) == ("not comparable", "nonfinite-both")
    assert text.startswith("not judged completely")


def test_types_shapes_and_strides(tmp_path: Path) -> None:
    wide = np.arange(6, dtype=np.float32).reshape(2, 3)
    mine = write_old_dump(
        tmp_path / "a.h5",
        {"a/1/output/result": wide, "b/2/output/result": wide, "c/3/output/result": wide}, 10)
    golden = write_old_dump(
        tmp_path / "b.h5",
        {"a/1/output/result": wide.astype(np.int32), "b/2/output/result": wide[:1],
         "c/3/output/result": wide.T.reshape(2, 3).copy()}, 1)
    with h5py.File(golden, "r+") as file:  # the elements lie column after column
        file["c/3/output/result"].attrs["Stride"] = np.array([1, 2], np.int64)
    found = by_path(compare(mine, golden, tmp_path / "out")[1])
    kind, shape = found["/a/1/output/result"], found["/b/2/output/result"]
    assert kind["CompareFailReason"].startswith("The DataType on both sides are different")
    assert shape["CompareFailReason"].startswith("Due to the different shapes")
    assert kind["Verdict"] == shape["Verdict"] == "broken"
    assert found["/c/3/output/result"]["Verdict"] == "same"


@pytest.mark.parametrize("is_target_wide", [True, False])
def test_double_against_single_precision(tmp_path: Path, is_target_wide: bool) -> None:
    """The values count, up to the rounding of the narrower type, and the row says the types."""
    numbers = np.random.default_rng(0).normal(size=(8, 5))
    exact, wrong = numbers.astype(np.float32), numbers.copy()
    wrong[3, 2] *= 1.001
    names = ("equal/1/output/result", "rounded/2/output/result", "wrong/3/output/result")
    wide = dict(zip(names, (exact.astype(np.float64), numbers, wrong), strict=True))
    sides = (wide, dict.fromkeys(names, exact))
    mine, golden = (write_old_dump(tmp_path / name, values, 0) for name, values in
                    zip(("a.h5", "b.h5"), sides if is_target_wide else sides[::-1], strict=True))
    _, rows = compare(mine, golden, tmp_path / "out")
    assert [(row["Verdict"], row["Reason"]) for row in rows] == [
        ("same", ""), ("within noise", ""), ("suspicious", "exceeds-rounding")]
    types = "float64 and float32" if is_target_wide else "float32 and float64"
    for row in rows:
        assert row["CompareFailReason"] == (
            f"The DataType on both sides are different, {types}: the values are compared.")
    assert float(rows[0]["CosineSimilarity"]) == 1


def test_the_line_of_msaccucmp(tmp_path: Path) -> None:
    values = {"relu/1/output/result": np.arange(3, dtype=np.float32)}
    npu = write_old_dump(tmp_path / "npu.h5", values, device=10)
    cpu = write_old_dump(tmp_path / "cpu.h5", values, device=0)
    done = run("msaccucmp", "compare", "-m", npu, "-g", cpu, "-out", tmp_path / "out")
    assert done.returncode == 0 and done.stdout.startswith("no wrong call\n"), done.stderr
    assert len(list((tmp_path / "out").glob("result_*.csv"))) == 1
    assert run("msaccucmp", "compare", "-m", cpu, "-g", npu).returncode == 11
    for more in (("-map",), ("-p", "2"), ("-p", "x")):
        assert run("msaccucmp", "compare", "-m", npu, "-g", cpu, *more).returncode == 6


def test_bad_tensors_of_msaccucmp_as_files(tmp_path: Path) -> None:
    values = {"relu/1/output/result": np.arange(3, dtype=np.float32)}
    values["add/2/output/result"] = np.array([1, 2, -3], np.float32)
    more = write_old_dump(tmp_path / "more.h5", values, device=10)
    other = {**values, "add/2/output/result": np.array([1, -2, 3], np.float32)}
    gold = write_old_dump(tmp_path / "gold.h5", other, device=1)
    line = ("-m", more, "-g", gold, "-out", tmp_path / "p1", "-p", "1")
    assert run("msaccucmp", "compare", *line).returncode == 0
    (filtered,) = (tmp_path / "p1").glob("result_*_filtered")
    kept = list(csv.DictReader((filtered / "filtered_result.csv").read_text().splitlines()))
    assert [row["NPUDumpPath"] for row in kept] == ["/add/2/output/result"]
    assert np.load(filtered / "my_dump/add/2/output/result.npy").tolist() == [1, 2, -3]
    assert np.load(filtered / "gold_dump/add/2/output/result.npy").tolist() == [1, -2, 3]


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" + bytes(500)])
def test_files_that_are_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_bytes(content)
    golden = dump(tmp_path / "b.h5", 1)
    done = run("compare", tmp_path / "a.h5", golden, "-o", tmp_path / "out")
    assert done.returncode == 5 and "a.h5: is no readable HDF5 file" in done.stderr
    old = run("msaccucmp", "compare", "-m", tmp_path / "a.h5", "-g", golden)
    assert old.returncode == 11 and old.stderr.count("\n") == 1
    assert run("compare", golden, golden, "--json").returncode == 2


def test_h5copy_does_what_the_stock_tool_does(tmp_path: Path) -> None:
    source = dump(tmp_path / "in.h5", 1)
    with h5py.File(source) as file:
        relu, mm = (f"/{name}/{next(iter(file[name]))}" for name in ("relu", "mm"))
    for name in (relu, mm):  # the founding document's line, once for each operator
        line = ["h5copy", "-pv", "-i", source, "-o", tmp_path / "ours.h5", "-s", f"{name}/",
                "-d", f"{name}/"]
        done = run(*line)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Copying file <")
        line[line.index(tmp_path / "ours.h5")] = tmp_path / "stock.h5"
        subprocess.run(line, check=True, capture_output=True)
    subprocess.run(["h5diff", tmp_path / "ours.h5", tmp_path / "stock.h5"], check=True)
    assert compare(tmp_path / "ours.h5", tmp_path / "stock.h5", tmp_path / "out")[0].startswith(
        "no wrong call\n"
    )
    again = run("h5copy", "-i", source, "-o", tmp_path / "ours.h5", "-s", mm, "-d", mm)
    assert again.returncode == 2 and f"has {mm} already" in again.stderr
    (tmp_path / "list.txt").write_text(f"# operators\n{relu}/\n\n{mm}\n")
    assert run("h5copy", "-i", source, "-o", tmp_path / "listed.h5", "--list",
               tmp_path / "list.txt").returncode == 0
    subprocess.run(["h5diff", tmp_path / "ours.h5", tmp_path / "listed.h5"], check=True)


def test_h5copy_errors(tmp_path: Path) -> None:
    source = dump(tmp_path / "in.h5", 1)
    out = tmp_path / "out.h5"
    missing = run("h5copy", "-p", "-i", source, "-o", out, "-s", "/none/1", "-d", "/none/1")
    assert missing.returncode == 3 and "has no object /none/1" in missing.stderr
    assert not out.exists()
    parent = run("h5copy", "-i", source, "-o", out, "-s", "/relu", "-d", "/a/relu")
    assert parent.returncode == 3 and "has no group /a" in parent.stderr
    same = run("h5copy", "-i", source, "-o", source, "-s", "/relu", "-d", "/other")
    assert same.returncode == 2 and "is input and output" in same.stderr
    assert run("h5copy", "-i", source, "-o", out).returncode == 2


def test_a_replay_compares_its_outputs_by_sequence_id(tmp_path: Path) -> None:
    recorded = dump(tmp_path / "a.h5", 1)
    with dumper(use_load=True, load_file_path=str(recorded), dump_path=str(tmp_path / "b.h5")):
        torch.zeros(4, 4).relu()
    text, rows = compare(tmp_path / "b.h5", recorded, tmp_path / "out")
    assert rows[0]["Verdict"] == "same" and rows[0]["NPUDumpPath"] == rows[0]["GroundTruthPath"]
    assert text.startswith("not judged completely")  # most of the golden calls were not replayed
