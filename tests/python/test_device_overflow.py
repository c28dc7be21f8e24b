"""plumb overflow on the records (OpDebug) that a device leaves."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import device_dumps as dumps
import numpy as np
import pytest
from recording import PLUMB

KERNEL = "MatMul.network_fc1_MatMul.7.10.1636595794731099"
RECORD = "Opdebug.Node_OpDebug.7.10.1636595794731103"

EXPECTED = """\
=================================================[1]==================================================
[MatMul] network/fc1/MatMul
 [AI Core][TaskId:7][StreamId:10][Status:16]
 [timestamp:1636595794731103]
 MatMul.network_fc1_MatMul.7.10.1636595794731099.input.0.npy
 -[Format: FRACTAL_NZ] [Shape: (4, 2, 16, 16)] [Dtype: float16] [Max: 65504.0] [Min: -3.5] \
[Mean: 31.982666015625]
 MatMul.network_fc1_MatMul.7.10.1636595794731099.output.0.npy
 -[Format: ND] [Shape: (3,)] [Dtype: float32] [Max: inf] [Min: 1.0] [Mean: inf]
 MatMul.network_fc1_MatMul.7.10.1636595794731099.output.1.npy
 -[Format: ND] [Shape: (2,)] [Dtype: int64] [Max: 9007199254740993] [Min: 1] \
[Mean: 4503599627370496.0]
"""


def overflow(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(PLUMB), "overflow", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def kernel(directory: pathlib.Path, name: str = KERNEL) -> None:
    matrix = np.zeros((32, 64), np.float16)
    matrix[0, 0], matrix[5, 40] = 65504, -3.5
    dumps.Dump([dumps.fractal_nz(matrix)],
               [dumps.plain(np.array([1, np.inf, 2], np.float32)),
                dumps.plain(np.array([1, 2**53 + 1]))],
               op_name="network/fc1/MatMul").write(directory / name)


def summary(directory: pathlib.Path) -> str:
    [path] = directory.glob("overflow_summary_*.txt")
    return path.read_text()


def test_summary_byte_for_byte(tmp_path: pathlib.Path) -> None:
    kernel(tmp_path / "in" / "0")
    kernel(tmp_path / "in" / "0", KERNEL.replace(".7.10.", ".8.10."))
    dumps.record_file(dumps.old_record()).write(tmp_path / "in" / "0" / RECORD)
    done = overflow("-d", tmp_path / "in", "-out", tmp_path / "out", "-n", 1)
    assert done.returncode == 0, done.stderr
    assert summary(tmp_path / "out") == EXPECTED
    assert done.stdout.startswith("first overflow: [MatMul] network/fc1/MatMul "
                                  "(AI Core, status 16)\n")
    assert (tmp_path / "out" / f"{RECORD}.output.0.json").exists()
    assert np.load(tmp_path / "out" / f"{KERNEL}.output.0.npy")[1] == np.inf
    assert overflow("-d", tmp_path / "in", "-out", tmp_path / "b",
                    "--fail-on-anomaly").returncode == 3


def test_records_in_order_and_of_both_forms(tmp_path: pathlib.Path) -> None:
    kernel(tmp_path / "in", f"{KERNEL}.4.5.6.0")
    kernel(tmp_path / "in", f"{KERNEL}.4.5.7.0")
    late = RECORD.replace("731103", "731200")
    dumps.record_file(dumps.old_record((1, 2, 0), task=9)).write(tmp_path / "in" / late)
    dumps.record_file(dumps.new_record(context=5, thread=7)).write(tmp_path / "in" / RECORD)
    done = overflow(tmp_path / "in", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    first, second = summary(tmp_path / "out").split("[2]")
    assert " [AIV][TaskId:7][StreamId:10][Status:16]\n" in first
    assert f" {KERNEL}.4.5.7.0.input.0.npy\n" in first and ".4.5.6.0" not in first
    assert "\n [DHA Atomic Add][TaskId:9][StreamId:10][Status:1]\n" in second
    assert "\n [L2 Atomic Add][TaskId:9][StreamId:10][Status:2]\n" in second
    assert "AI Core" not in second and second.endswith(" [timestamp:1636595794731200]\n")
    assert "task 9, stream 10" in done.stderr
    again = RECORD.replace("731103", "731300")
    dumps.record_file(dumps.new_record(context=5, thread=7)).write(tmp_path / "in" / again)
    done = overflow("-d", tmp_path / "in", "-out", tmp_path / "three", "-n", 3)
    assert done.returncode == 0, done.stderr  # two records of one operator
    assert summary(tmp_path / "three").count(f" {KERNEL}.4.5.7.0.input.0.npy\n") == 2
    one = overflow("-d", tmp_path / "in", "-out", tmp_path / "one")
    assert one.returncode == 0 and "[2]" not in summary(tmp_path / "one")


def test_bad_records_stop_no_other(tmp_path: pathlib.Path) -> None:
    kernel(tmp_path / "in")
    for i, content in enumerate((bytes(2047), dumps.old_record((0, 0, 0)),
                                 dumps.new_record(status=0), dumps.new_record(kind=9))):
        dumps.record_file(content).write(
            tmp_path / "in" / f"Opdebug.Node_OpDebug.7.10.163659579473100{i}")
    dumps.record_file(dumps.old_record()).write(tmp_path / "in" / RECORD)
    done = overflow("-d", tmp_path / "in", "-out", tmp_path / "out", "-n", 5)
    assert done.returncode == 11
    assert [f"(error {code})" in done.stderr for code in (11, 35, 36)] == [True] * 3
    assert summary(tmp_path / "out") == EXPECTED


@pytest.mark.parametrize(("time", "count"), [
    (1636595794731000, 1), (1636595794731000, 5), (1636595794739999, 1), (1636595794739999, None)])
@pytest.mark.parametrize("content", [b"", b"x", b"cut", b"kind"])
def test_a_damaged_record_hides_no_sound_one(tmp_path: pathlib.Path, time: int,
                                             count: int | None, content: bytes) -> None:
    """In front of it or behind it, wanted or not: it is told with its place, and takes no place."""
    kernel(tmp_path / "in")
    dumps.record_file(dumps.old_record()).write(tmp_path / "in" / RECORD)
    damaged = tmp_path / "in" / f"Opdebug.Node_OpDebug.9.10.{time}"
    if content == b"cut":
        content = dumps.record_file(dumps.old_record()).bytes()[:-1]
    elif content == b"kind":
        content = dumps.record_file(dumps.new_record(kind=9)).bytes()
    damaged.write_bytes(content)
    options = () if count is None else ("-n", count)
    done = overflow("-d", tmp_path / "in", "-out", tmp_path / "out", *options)
    assert done.returncode in (11, 35, 39), done.stderr
    assert f"plumb overflow: {damaged}: " in done.stderr
    assert f"{damaged}: {damaged}" not in done.stderr
    assert summary(tmp_path / "out") == EXPECTED
    assert "\n  records: 2\n  damaged: 1\n" in done.stdout
    first = "first overflow" + (" that can be read" if time < 1636595794731103 else "")
    assert done.stdout.startswith(f"{first}: [MatMul] network/fc1/MatMul ")
    assert [path.name for path in (tmp_path / "out").glob("*.json")] == [f"{RECORD}.output.0.json"]


def test_sound_records_beside_damaged_ones_in_a_file(tmp_path: pathlib.Path) -> None:
    kernel(tmp_path / "in")
    for time in (1636595794731103, 1636595794731104):
        dumps.record_file(dumps.new_record(kind=9), dumps.old_record(), bytes(20)).write(
            tmp_path / "in" / f"Opdebug.Node_OpDebug.7.10.{time}")
    done = overflow("-d", tmp_path / "in", "-out", tmp_path / "out")
    assert done.returncode == 35
    assert summary(tmp_path / "out") == EXPECTED
    for time in ("103", "104"):
        assert f"{time}: output:0: " in done.stderr and f"{time}: output:2: " in done.stderr


def test_nothing_to_summarise(tmp_path: pathlib.Path) -> None:
    kernel(tmp_path / "in")
    done = overflow("-d", tmp_path / "in", "-out", tmp_path / "out")
    assert done.returncode == 0 and "[Overflow] Find [0] overflow node!" in done.stderr
    assert not (tmp_path / "out").exists()
    assert overflow("-d", tmp_path / "missing", "-out", tmp_path / "out").returncode == 3
    assert overflow("-d", tmp_path / "in", "-n", 6).returncode == 2


def test_a_record_file_without_records_is_no_silence(tmp_path: pathlib.Path) -> None:
    kernel(tmp_path / "dump")
    dumps.Dump(outputs=[]).write(tmp_path / "dump" / RECORD)
    done = overflow("-d", tmp_path / "dump", "-out", tmp_path / "out")
    assert done.returncode == 11 and "no overflow record" in done.stderr


def overflow_as_nobody(tmp_path: pathlib.Path, locked: pathlib.Path,
                       *arguments: object) -> subprocess.CompletedProcess[str]:
    """With a directory that cannot be listed; root could list it."""
    locked.mkdir(parents=True)
    locked.chmod(0o000)
    options: dict[str, Any] = {}
    if os.geteuid() == 0:
        options = {"user": 65534, "group": 65534, "extra_groups": []}
        for parent in [tmp_path, *tmp_path.parents[:-2]]:
            parent.chmod(0o755)
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out").chmod(0o777)
    command = [str(PLUMB), "overflow", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("option", [["-d"], []])
def test_a_directory_that_cannot_be_listed_is_told(tmp_path: pathlib.Path,
                                                   option: list[str]) -> None:
    kernel(tmp_path / "in" / "0")
    dumps.record_file(dumps.old_record()).write(tmp_path / "in" / "0" / RECORD)
    locked = tmp_path / "in" / "1"
    done = overflow_as_nobody(tmp_path, locked, *option, tmp_path / "in", "-o", tmp_path / "out")
    assert done.returncode == 3, done.stderr  # upstream's invalid path
    assert f"{locked}: " in done.stderr and "(error 3)" in done.stderr
    assert summary(tmp_path / "out") == EXPECTED  # the rest is made


def test_a_directory_that_may_hold_records_is_told(tmp_path: pathlib.Path) -> None:
    step = tmp_path / "step0"
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": 1.0,
              "Min": 1.0, "Mean": 1.0, "Norm": 2.0, "requires_grad": False}
    (step / "rank0").mkdir(parents=True)
    (step / "rank0" / "dump.json").write_text(json.dumps(
        {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
         "data": {"Torch.a.0.forward": {"input_args": [tensor], "input_kwargs": {},
                                        "output": [tensor]}}}))
    for name in ("stack.json", "construct.json"):
        (step / "rank0" / name).write_text("{}")
    assert overflow(step, "-o", tmp_path / "out").returncode == 0
    locked = step / "device"
    done = overflow_as_nobody(tmp_path, locked, step, "-o", tmp_path / "out")
    assert done.returncode == 4, done.stderr
    assert f"not judged: {locked}: " in done.stderr
    assert done.stdout.startswith("no NaN/Inf found, but not everything could be judged: ")
