"""Operators that FFTS+ cut into tasks: files of parts put together, against the whole in NumPy."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_dumps import Dump, Tensor
from msaccucmp_cases import ALGORITHMS, PLUMB, Array, expected_values, normal, rows_of, run
from operator_dumps import device_tensor, dump_name, pack, write_dump

TIME = 1_612_439_563_000_000
THREADS = 3
NUMBER = "The number of files does not match the number of thread"


def bounds(parts: list[Array], axis: int) -> list[list[dict[str, int]]]:
    """Where each part lies in the whole."""
    found, start = [], 0
    for part in parts:
        box = [{"lower": 0, "higher": size} for size in part.shape]
        box[axis] = {"lower": start, "higher": start + part.shape[axis]}
        start += part.shape[axis]
        found.append(box)
    return found


def attribute(parts: list[Array], axis: int | None, automatic: bool, **other: Any) -> str:
    """The text of the first attribute."""
    cuts = [1] * parts[0].ndim
    if axis is not None:
        cuts[axis] = len(parts)
    text: dict[str, Any] = {"threadMode": automatic, "slice_instance_num": len(parts),
                            "outputCutList": [cuts]}
    if automatic:
        boxes = bounds(parts, axis or 0)
        text |= {"input_tensor_slice": [[] for _ in boxes],
                 "output_tensor_slice": [[box] for box in boxes]}
    return json.dumps(text | other)


def write_threads(directory: Path, whole: Array, layout: str, axis: int, *, name: str = "conv1",
                  leave_out: tuple[int, ...] = (), **other: Any) -> list[Path]:
    """A file of each thread; the message has the sizes of the whole."""
    tensor = device_tensor(whole, layout)
    packed = np.ascontiguousarray(pack(whole, layout))
    parts = np.array_split(packed, THREADS, axis)
    files = []
    for thread, part in enumerate(parts):
        if thread in leave_out:
            continue
        output = Tensor(part.tobytes(), tensor.code, tensor.shape, tensor.format, whole.shape)
        file = directory / f"Conv2D.{name}.3.7.{TIME + 10 - thread}.4.9.{thread}.0"
        Dump(outputs=[output], op_name=name,
             attribute=attribute(parts, axis, True, **other)).write(file)
        files.append(file)
    return files


CASES = [("ND", (7, 5), 0), ("ND", (4, 9, 3), 1), ("NC1HWC0", (2, 19, 9, 4), 2),
         ("NC1HWC0", (5, 19, 3, 4), 0), ("NC1HWC0", (2, 50, 3, 4), 1),
         ("FRACTAL_NZ", (3, 20, 70), 1), ("FRACTAL_Z", (17, 33, 3, 2), 0)]


@pytest.mark.parametrize(("layout", "shape", "axis"), CASES)
def test_threads_are_put_together(tmp_path: Path, layout: str, shape: tuple[int, ...],
                                  axis: int) -> None:
    """A cut operator compares with one that was not cut: values are NumPy's of the whole."""
    x, y = normal(shape), normal(shape, 2)
    write_threads(tmp_path / "mine", x, layout, axis)
    write_dump(tmp_path / "golden" / dump_name("Conv2D", "conv1", 1), [], [(y, layout)])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert {name: row[name] for name in ALGORITHMS} == expected_values(x, y)
    assert row["Shape"] == "[" + ",".join(map(str, shape)) + "]"
    assert row["TensorIndex"] == "conv1:output:0"
    assert row["Verdict"] == "broken"
    assert row["CompareFailReason"] == ""
    (tmp_path / "both").mkdir()
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "mine", "-out", tmp_path / "both")
    assert [row["Verdict"] for row in rows_of(tmp_path / "both")] == ["same"]


def write_slices(directory: Path, whole: Array, layout: str, host_axis: int, axis: int,
                 *, numbers: range = range(11), name: str = "g_sgt_graph_0_net_conv") -> None:
    """Slices cut by hand: each file has its own sizes and its number in the operator's name."""
    parts = np.array_split(whole, len(numbers), host_axis)
    packed = [pack(part, layout) for part in parts]
    for number, part, device in zip(numbers, parts, packed, strict=True):
        Dump(outputs=[device_tensor(part, layout)], attribute=attribute(packed, axis, False)
             ).write(directory / f"Conv2D.{name}_lxslice{number}.{number}.7.{TIME + 40 - number}"
                                 f".4.{number}.0.0")
        assert device.shape == device_tensor(part, layout).shape


@pytest.mark.parametrize(("layout", "shape", "host_axis", "axis"), [
    ("ND", (23, 4), 0, 0), ("NC1HWC0", (2, 19, 23, 3), 2, 2), ("NC1HWC0", (12, 5, 2, 3), 0, 0),
    ("NDC1HWC0", (2, 17, 12, 3, 2), 2, 1)])
def test_slices_cut_by_hand(tmp_path: Path, layout: str, shape: tuple[int, ...], host_axis: int,
                            axis: int) -> None:
    """Eleven slices in the order of numbers, not of texts; the graph's name is left out."""
    x, y = normal(shape), normal(shape, 2)
    write_slices(tmp_path / "mine", x, layout, host_axis, axis)
    write_dump(tmp_path / "golden" / dump_name("Conv2D", "net_conv", 1), [], [(y, layout)])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert {name: row[name] for name in ALGORITHMS} == expected_values(x, y)
    assert (row["NPUDump"], row["GroundTruth"]) == ("net_conv", "net_conv")
    assert row["Shape"] == "[" + ",".join(map(str, shape)) + "]"


def test_each_execution_by_itself(tmp_path: Path) -> None:
    """A thread that comes again is one of the next execution."""
    wholes = [normal((6, 4), seed) for seed in (1, 2)]
    for step, whole in enumerate(wholes):
        parts = np.array_split(whole, 2, 0)
        for thread, part in enumerate(parts):
            Dump(outputs=[Tensor(part.tobytes(), 2, (6, 4), 2)],
                 attribute=attribute(parts, 0, True)).write(
                tmp_path / "mine" / f"Add.a.3.7.{TIME + 10 * step + thread}.4.9.{thread}.0")
        write_dump(tmp_path / "golden" / dump_name("Add", "a", step), [], [(whole, "ND")])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    assert [row["Verdict"] for row in rows_of(tmp_path)] == ["same", "same"]


def test_missing_parts_never_pass(tmp_path: Path) -> None:
    """Equal rests of two operators are no equal operators."""
    x = normal((7, 5))
    for side in ("mine", "golden"):
        write_threads(tmp_path / side, x, "ND", 0, leave_out=(1,))
    done = run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "parts-missing")
    assert NUMBER in row["CompareFailReason"]
    assert "(2 vs 3)" in row["CompareFailReason"]
    assert done.stdout.startswith("not judged: no row could be compared")
    (tmp_path / "whole").mkdir()
    write_threads(tmp_path / "whole" / "golden", x, "ND", 0)
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "whole" / "golden", "-out",
        tmp_path / "whole")
    (row,) = rows_of(tmp_path / "whole")
    assert row["Reason"] == "shape-differs"
    assert NUMBER in row["CompareFailReason"]


@pytest.mark.parametrize("both", [True, False])
def test_missing_parts_one_by_one(tmp_path: Path, both: bool) -> None:
    """With -ffts too an operator that lacks a thread on both sides does not pass."""
    x = normal((7, 5))
    for side in ("mine", "golden"):
        write_threads(tmp_path / side, x, "ND", 0, leave_out=(1,) if both else ())
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path, "-ffts")
    rows = rows_of(tmp_path)
    assert [row["Reason"] for row in rows] == (["parts-missing"] * 2 if both else [""] * THREADS)
    told = "(2 vs 3). Number 1 is not there."
    assert all((told in row["CompareFailReason"]) == both for row in rows)


def test_different_missing_parts_are_no_wrong_call(tmp_path: Path) -> None:
    """Parts of equal sizes at other places are not the same elements."""
    x = normal((6, 5))
    write_threads(tmp_path / "mine", x, "ND", 0, leave_out=(1,))
    write_threads(tmp_path / "golden", x, "ND", 0, leave_out=(2,))
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "parts-missing")


def test_parts_with_a_number_too_high(tmp_path: Path) -> None:
    """As many files as there should be, but one stands at another place."""
    for side in ("mine", "golden"):
        write_slices(tmp_path / side, normal((23, 4)), "ND", 0, 0)
    (file,) = (tmp_path / "mine").glob("*_lxslice4.*")
    file.rename(file.with_name(file.name.replace("_lxslice4.", "_lxslice40.")))
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "unreadable")
    assert "numbers 0 to 40 (expected 0 to 10). Number 4 is not there" in row["CompareFailReason"]
    assert row["MaxAbsoluteError"] == "NaN"


def boxes_of(rows: list[tuple[int, int]]) -> list[list[list[dict[str, int]]]]:
    """Bounds of threads that have all five columns."""
    return [[[{"lower": low, "higher": high}, {"lower": 0, "higher": 5}]] for low, high in rows]


@pytest.mark.parametrize(("rows", "word"), [
    ([(0, 3), (1, 3), (2, 4)], "the parts 0 at (0,0) and 1 at (1,0) overlap"),
    ([(0, 3), (10, 12), (20, 22)], "do not fill the output (22,5): they have 35 elements"),
    ([(1, 4), (4, 6), (6, 8)], "do not fill the output (8,5)"),
    ([(-3, 0), (0, 2), (2, 4)], "begin outside of the output: part 0"),
    ([(0, 3), (0, 3), (0, 3)], "20 bytes of elements (expected 30")])
@pytest.mark.parametrize("both", [True, False])
def test_bounds_that_contradict_the_whole(tmp_path: Path, rows: list[tuple[int, int]], word: str,
                                          both: bool) -> None:
    """Overlaps, holes and places beyond the end are an error of the operator, without a number."""
    x = normal((7, 5))
    for side in ("mine", "golden"):
        other = {"output_tensor_slice": boxes_of(rows)} if both or side == "mine" else {}
        write_threads(tmp_path / side, x, "ND", 0, **other)
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "unreadable")
    assert word in row["CompareFailReason"]
    assert {row[name] for name in ALGORITHMS} == {"NaN"}


def test_bounds_say_where_parts_lie(tmp_path: Path) -> None:
    """Threads in another order than their numbers."""
    x, y = normal((6, 5)), normal((6, 5), 2)
    rows = [(4, 6), (0, 2), (2, 4)]
    write_threads(tmp_path / "mine", x, "ND", 0, output_tensor_slice=boxes_of(rows))
    write_dump(tmp_path / "golden" / dump_name("Conv2D", "conv1", 1), [], [(y, "ND")])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    placed = np.concatenate([x[2:4], x[4:6], x[0:2]])
    assert {name: row[name] for name in ALGORITHMS} == expected_values(placed, y)


def test_parts_that_do_not_make_the_whole_of_the_message(tmp_path: Path) -> None:
    """Two threads that say that there are two, of a tensor of which a third had the rest."""
    for side in ("mine", "golden"):
        write_threads(tmp_path / side, normal((7, 5)), "ND", 0, leave_out=(2,),
                      slice_instance_num=2)
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "unreadable")
    assert "the parts make (5,5) (expected (7,5), the sizes in part 0)" in row["CompareFailReason"]


@pytest.mark.parametrize(("key", "old", "new"), [
    ("outputCutList", "[[3, 1]]", "[[1, 3]]"), ("threadMode", "true", "0")])
def test_parts_that_are_cut_in_different_ways(tmp_path: Path, key: str, old: str,
                                              new: str) -> None:
    for side in ("mine", "golden"):
        files = write_threads(tmp_path / side, normal((7, 5)), "ND", 0)
        text = files[2].read_bytes()
        before = f'"{key}": {old}'.encode()
        assert before in text
        after = f'"{key}": {new}'.encode().ljust(len(before))
        files[2].write_bytes(text.replace(before, after))
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert row["Reason"] == "unreadable"
    assert "another threadMode or outputCutList" in row["CompareFailReason"]


def test_parts_that_count_differently_never_pass(tmp_path: Path) -> None:
    """Three files say that there are three, one says nine."""
    for side in ("mine", "golden"):
        files = write_threads(tmp_path / side, normal((7, 5)), "ND", 0)
        text = files[1].read_bytes()
        assert b'"slice_instance_num": 3' in text
        files[1].write_bytes(text.replace(b'"slice_instance_num": 3', b'"slice_instance_num": 9'))
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "parts-missing")
    assert row["CompareFailReason"].count("3 and 9 of them") == 1


def test_one_by_one(tmp_path: Path) -> None:
    """-ffts compares each thread's part with the part of the other side."""
    x, y = normal((2, 19, 9, 4)), normal((2, 19, 9, 4))
    y[:, :, 4] += np.float16(1)
    write_threads(tmp_path / "mine", x, "NC1HWC0", 2)
    write_threads(tmp_path / "golden", y, "NC1HWC0", 2)
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path, "-ffts")
    rows = rows_of(tmp_path)
    # The files come in the order of their times: the last thread first.
    assert [row["Verdict"] for row in rows] == ["same", "broken", "same"]
    parts = [np.array_split(pack(one, "NC1HWC0"), THREADS, 2)[1] for one in (x, y)]
    assert {name: rows[1][name] for name in ALGORITHMS} == expected_values(*parts)
    assert rows[1]["Shape"] == "[2,2,3,4,16]"


def test_convert_leaves_the_parts(tmp_path: Path) -> None:
    """Each file becomes an array in the sizes of its thread."""
    whole = normal((2, 19, 9, 4))
    write_threads(tmp_path / "mine", whole, "NC1HWC0", 2)
    subprocess.run([PLUMB, "convert", "-d", tmp_path / "mine", "-out", tmp_path / "npy"],
                   check=True, capture_output=True)
    paths = sorted((tmp_path / "npy").glob("*.npy"), key=lambda path: path.name.split(".")[7])
    packed = np.array_split(pack(whole, "NC1HWC0"), THREADS, 2)
    for path, part in zip(paths, packed, strict=True):
        np.testing.assert_array_equal(np.load(path), part)


def test_trees_of_cut_operators(tmp_path: Path) -> None:
    """`plumb compare` puts them together too, and names the first wrong one."""
    x, y = normal((7, 5)), normal((7, 5), 2)
    for side, array in (("mine", x), ("golden", y)):
        write_threads(tmp_path / side / "20260101000000" / "0", array, "ND", 0)
    done = subprocess.run([PLUMB, "compare", tmp_path / "mine", tmp_path / "golden", "-o",
                           tmp_path / "out"], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == "first wrong call: conv1", done.stderr


def write_uncut(directory: Path, arrays: list[Array], **other: Any) -> None:
    """A file of each thread, none of which cuts its output; the first is the newest."""
    for thread, array in enumerate(arrays):
        Dump(outputs=[Tensor(array.tobytes(), 2, array.shape, 2)],
             attribute=attribute(arrays, None, False, **other)).write(
            directory / f"Add.a.3.7.{TIME - thread}.4.9.{thread}.0")


@pytest.mark.parametrize("cuts", [[[1, 1]], [], [[]]])
def test_nothing_cut(tmp_path: Path, cuts: list[list[int]]) -> None:
    """The newest of several equal files whose outputs are not cut is the operator's."""
    x = normal((3, 4))
    write_uncut(tmp_path / "mine", [x, x], outputCutList=cuts)
    write_dump(tmp_path / "golden" / dump_name("Add", "a", 1), [], [(x, "ND")])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert row["Verdict"] == "same"
    assert "of 2 files the newest" in row["CompareFailReason"]


@pytest.mark.parametrize("cuts", [[[1, 1]], []])
def test_threads_that_disagree_never_pass(tmp_path: Path, cuts: list[list[int]]) -> None:
    """The newest file counts, as upstream has it, but nothing tells that it is the right one."""
    x, y = normal((3, 4)), normal((3, 4), 2)
    write_uncut(tmp_path / "mine", [x, y, x], outputCutList=cuts)
    write_dump(tmp_path / "golden" / dump_name("Add", "a", 1), [], [(x, "ND")])
    done = run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert {name: row[name] for name in ALGORITHMS} == expected_values(x, x)
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "parts-differ")
    assert "part 1 has another one than part 0, which was taken" in row["CompareFailReason"]
    assert done.stdout.startswith("not judged: no row could be compared")
    both = tmp_path / "both"
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "mine", "-out", both)
    assert [row["Reason"] for row in rows_of(both)] == ["parts-differ"]


def test_sizes_of_an_output_that_is_not_cut(tmp_path: Path) -> None:
    """Threads that have parts of it, which nothing says: the newest counts and does not pass."""
    x = normal((7, 5))
    for side in ("mine", "golden"):
        write_threads(tmp_path / side, x, "ND", 0, outputCutList=[])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert {name: row[name] for name in ALGORITHMS} == expected_values(x[:3], x[:3])
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "parts-differ")
    assert "part 1, 2 has another one than part 0, which was taken" in row["CompareFailReason"]
    assert "output 0: the parts make (3,5) (expected (7,5)" in row["CompareFailReason"]


def test_an_output_that_is_not_cut_beside_one_that_is(tmp_path: Path) -> None:
    """Only the output in which the threads differ does not pass."""
    x, y = normal((4, 6)), normal((2, 3), 3)
    parts = [np.ascontiguousarray(part) for part in np.array_split(x, 2, 0)]
    boxes = [[box, [{"lower": 0, "higher": 2}, {"lower": 0, "higher": 3}]]
             for box in bounds(parts, 0)]
    for side in ("mine", "golden"):
        for thread in range(2):
            outputs = [Tensor(parts[thread].tobytes(), 2, x.shape, 2),
                       Tensor((y + np.float16(thread)).tobytes(), 2, y.shape, 2)]
            Dump([], outputs, attribute=attribute(
                parts, 0, True, outputCutList=[[2, 1], [1, 1]], output_tensor_slice=boxes)
                 ).write(tmp_path / side / f"Add.a.3.7.{TIME + thread}.4.9.{thread}.0")
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    assert [(row["Verdict"], row["Reason"]) for row in rows_of(tmp_path)] == [
        ("same", ""), ("not comparable", "parts-differ")]


def damaged(directory: Path, how: str) -> None:
    """Three threads of which the second is wrong."""
    files = write_threads(directory, normal((7, 5)), "ND", 0)
    second = files[1].read_bytes()
    if how == "cut":
        files[1].write_bytes(second[:-3])
    elif how == "empty":
        files[1].write_bytes(b"")
    elif how == "text":
        files[1].write_bytes(second.replace(b'"threadMode": true', b'"threadMode": t ue'))
    elif how == "type":
        whole = normal((7, 5)).astype(np.float32)
        write_threads(directory / "other", whole, "ND", 0)[1].rename(files[1])
    else:
        cuts = {"axis": [1, 3], "axes": [3, 2], "dimension": [1, 1, 3]}[how]
        other = {"output_tensor_slice": []} if how == "axes" else {}  # nothing says where
        write_threads(directory, normal((7, 5)), "ND", 0, outputCutList=[cuts], **other)


def write_grid(directory: Path, whole: Array, lower: dict[int, tuple[int, int]] | None = None,
               leave_out: int | None = None) -> None:
    """Four threads: the whole is cut in two in both of its dimensions."""
    rows, columns = 4, 3
    boxes = [((a, rows if a == 0 else whole.shape[0]), (b, columns if b == 0 else whole.shape[1]))
             for a in (0, rows) for b in (0, columns)]
    slices = [[[{"lower": low, "higher": high} for low, high in box]] for box in boxes]
    for thread, place in (lower or {}).items():
        slices[thread][0][0] = {"lower": place[0], "higher": place[1]}
    text = json.dumps({"threadMode": True, "slice_instance_num": 4, "outputCutList": [[2, 2]],
                       "input_tensor_slice": [], "output_tensor_slice": slices})
    for thread, ((top, bottom), (left, right)) in enumerate(boxes):
        part = np.ascontiguousarray(whole[top:bottom, left:right])
        if thread != leave_out:
            Dump(outputs=[Tensor(part.tobytes(), 2, whole.shape, 2)], attribute=text).write(
                directory / f"Add.a.3.7.{TIME + thread}.4.9.{thread}.0")


def test_threads_of_two_dimensions(tmp_path: Path) -> None:
    """Parts of a grid lie where their bounds say."""
    x, y = normal((7, 8)), normal((7, 8), 2)
    write_grid(tmp_path / "mine", x)
    write_dump(tmp_path / "golden" / dump_name("Add", "a", 1), [], [(y, "ND")])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert {name: row[name] for name in ALGORITHMS} == expected_values(x, y)


@pytest.mark.parametrize(("lower", "leave_out", "word"), [
    ({}, 3, "do not fill"), ({1: (1, 5)}, None, "do not fill"), ({0: (-1, 3)}, None, "outside of"),
    ({0: (1 << 60, (1 << 60) + 4)}, None, "outside of"), ({3: (3, 6)}, None, "do not fill")])
def test_grids_that_do_not_fit(tmp_path: Path, lower: dict[int, tuple[int, int]],
                               leave_out: int | None, word: str) -> None:
    """Holes, overlaps and places beyond the whole are no operator."""
    write_grid(tmp_path / "mine", normal((7, 8)), lower, leave_out)
    write_dump(tmp_path / "golden" / dump_name("Add", "a", 1), [], [(normal((7, 8)), "ND")])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert row["Reason"] == "unreadable"
    assert word in row["CompareFailReason"]


@pytest.mark.parametrize(("how", "word"), [
    ("cut", "the file is cut"), ("empty", "empty"), ("text", "attribute 0"), ("type", "types"),
    ("axis", "part 1 is"), ("dimension", "dimension 2"),
    ("axes", "output_tensor_slice in attribute 0 has no bounds of part 0, 1, 2")])
def test_damaged_parts(tmp_path: Path, how: str, word: str) -> None:
    """One bad part makes its operator unreadable, says why, and harms no other operator."""
    damaged(tmp_path / "mine", how)
    write_dump(tmp_path / "golden" / dump_name("Conv2D", "conv1", 1), [],
               [(normal((7, 5)), "ND")])
    for side in ("mine", "golden"):
        write_dump(tmp_path / side / dump_name("Relu", "other", 2), [], [(normal((2, 3)), "ND")])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    cut, other = sorted(rows_of(tmp_path), key=lambda row: row["NPUDump"])
    assert (cut["Verdict"], cut["Reason"]) == ("not comparable", "unreadable")
    assert word in cut["CompareFailReason"]
    assert other["Verdict"] == "same"


def test_parts_without_elements(tmp_path: Path) -> None:
    """Any number of rows of nothing takes no time."""
    part = Tensor(b"", 2, (1 << 40, 0), 2)
    text = json.dumps({"threadMode": False, "slice_instance_num": 2, "outputCutList": [[1, 2]]})
    for side in ("mine", "golden"):
        for i in range(2):
            Dump(outputs=[part], attribute=text).write(
                tmp_path / side / f"Add.a_lxslice{i}.{i}.7.{TIME + i}.4.1.0.0")
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "empty")


def test_with_a_rule_file(tmp_path: Path) -> None:
    """Operators of a rule file find the parts of theirs; parts in the file are one operator."""
    x, y = normal((12, 4)), normal((12, 4), 2)
    write_slices(tmp_path / "mine", x, "ND", 0, 0, numbers=range(4))
    np.save(tmp_path / f"conv.0.{TIME}.npy", y)
    (tmp_path / "golden").mkdir()
    (tmp_path / f"conv.0.{TIME}.npy").rename(tmp_path / "golden" / f"conv.0.{TIME}.npy")
    names = [f"g_sgt_graph_0/net/conv_lxslice{i}" for i in range(4)]
    operators = [{"name": name, "type": "Conv2D", "id": i + 1, "input": [], "attr": [
        {"key": "_datadump_original_op_names", "value": {"list": {"s": ["conv"]}}}],
        "output_desc": [{"dtype": "DT_FLOAT16", "attr": []}]} for i, name in enumerate(names)]
    (tmp_path / "rule.json").write_text(json.dumps({"graph": [{"name": "g", "op": operators}]}))
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-f",
        tmp_path / "rule.json", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert {name: row[name] for name in ALGORITHMS} == expected_values(x, y)
    assert row["GroundTruth"] == "conv"
