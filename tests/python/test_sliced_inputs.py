"""Inputs of operators that FFTS+ cut into tasks: those of every part count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_dumps import Dump, Tensor
from msaccucmp_cases import ALGORITHMS, Array, expected_values, normal, rows_of, run
from test_msaccucmp_compare import rule_operator
from test_sliced_operators import TIME, attribute, bounds

PARTS = 4


def plain(array: Array) -> Tensor:
    return Tensor(array.tobytes(), 2, array.shape, 2)


def write(directory: Path, inputs: list[Array], *, numbers: tuple[int, ...] = tuple(range(PARTS)),
          **other: Any) -> None:
    """Four threads of an operator: the rows of the output, and an input of each thread."""
    parts = np.array_split(normal((8, 5), 9), PARTS, 0)
    for number in numbers:
        Dump(inputs=[plain(inputs[number])], outputs=[plain(parts[number])],
             attribute=attribute(parts, 0, True, **other)).write(
            directory / f"Add.net_add.3.7.{TIME + number}.4.9.{number}.0")


def compare(directory: Path, *more: str | Path) -> tuple[str, dict[str, str]]:
    """The first line, and the row of the input."""
    done = run("compare", "-m", directory / "mine", "-g", directory / "golden", "-out",
               directory / "out", *more)
    (row,) = [row for row in rows_of(directory / "out") if ":input:" in row["TensorIndex"]]
    return done.stdout.splitlines()[0], row


def cut(seed: int = 1) -> list[Array]:
    return np.array_split(normal((8, 5), seed), PARTS, 0)


@pytest.mark.parametrize("wrong", range(PARTS))
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_wrong_input_of_any_part_is_seen(tmp_path: Path, wrong: int, is_cut: bool) -> None:
    """Also where all other parts have the same input, as weights."""
    inputs = cut() if is_cut else [normal((6, 5))] * PARTS
    write(tmp_path / "golden", inputs)
    inputs = [array * (2 if number == wrong else 1) for number, array in enumerate(inputs)]
    write(tmp_path / "mine", inputs)
    answer, row = compare(tmp_path)
    assert answer == "first wrong call: net_add"
    assert row["Verdict"] == "broken"
    assert row["TensorIndex"] == "net_add:input:0"
    assert row["RelativeError"] == "1"
    assert row["CompareFailReason"] == f"Of the inputs of 4 parts that of part {wrong} is shown."


@pytest.mark.parametrize("is_cut", [True, False])
def test_equal_inputs_of_all_parts(tmp_path: Path, is_cut: bool) -> None:
    inputs = cut() if is_cut else [normal((6, 5))] * PARTS
    for side in ("mine", "golden"):
        write(tmp_path / side, inputs)
    answer, row = compare(tmp_path)
    assert answer == "no wrong call"
    assert row["Verdict"] == "same"
    assert row["CompareFailReason"] == (
        "Of the inputs of 4 parts that of part 0 is shown." if is_cut else "")


def test_zeros_in_one_part_hide_no_agreement_and_nan_does_not_pass(tmp_path: Path) -> None:
    inputs = cut()
    inputs[1] = np.zeros_like(inputs[1])
    for side in ("mine", "golden"):
        write(tmp_path / side, inputs)
    assert compare(tmp_path)[1]["Verdict"] == "same"
    inputs[3] = np.full_like(inputs[3], np.nan)
    for side in ("mine", "golden"):
        write(tmp_path / "nan" / side, inputs)
    answer, row = compare(tmp_path / "nan")
    assert answer.startswith("not judged completely")
    assert row["Reason"] == "nonfinite-both"


def test_missing_parts_of_a_cut_input_never_pass(tmp_path: Path) -> None:
    for side in ("mine", "golden"):
        write(tmp_path / side, cut(), numbers=(0, 2, 3))
    answer, row = compare(tmp_path)
    assert answer.startswith("not judged")
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "parts-missing")
    assert "Some parts of the input have no counterpart." in row["CompareFailReason"]
    for side, numbers in (("mine", (0, 1)), ("golden", (2, 3))):
        write(tmp_path / "apart" / side, cut(), numbers=numbers)
    answer, row = compare(tmp_path / "apart")
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "parts-missing")


def test_against_an_operator_that_was_not_cut(tmp_path: Path) -> None:
    """An input that all parts share meets the one; cut ones have other sizes."""
    whole, weights = normal((8, 5), 9), normal((6, 5))
    golden = Dump(inputs=[plain(weights)], outputs=[plain(whole)])
    for name, inputs in (("same", [weights] * PARTS), ("cut", cut())):
        directory = tmp_path / name
        golden.write(directory / "golden" / f"Add.net_add.3.7.{TIME}")
        write(directory / "mine", inputs)
    assert compare(tmp_path / "same")[1]["Verdict"] == "same"
    assert compare(tmp_path / "cut")[1]["Reason"] == "shape-differs"


def test_inputs_are_those_of_all_threads(tmp_path: Path) -> None:
    """With -ffts in the sizes of a thread's part, which the message has only of the whole."""
    given, whole = normal((4, 6), 3), normal((4, 6))
    for side in ("mine", "golden"):
        parts = [np.ascontiguousarray(part) for part in np.array_split(given, 2, 1)]
        results = [np.ascontiguousarray(part) for part in np.array_split(whole, 2, 1)]
        boxes = [[box] for box in bounds(parts, 1)]
        for thread in range(2):
            inputs = [Tensor(parts[thread].tobytes(), 2, (4, 6), 2)]
            outputs = [Tensor(results[thread].tobytes(), 2, (4, 6), 2)]
            if side == "golden" and thread == 0:
                inputs = [Tensor((parts[0] * 2).tobytes(), 2, (4, 6), 2)]
            Dump(inputs, outputs, attribute=attribute(results, 1, True, input_tensor_slice=boxes)
                 ).write(tmp_path / side / f"Add.a.3.7.{TIME + thread}.4.9.{thread}.0")
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    first, result = rows_of(tmp_path)
    assert first["TensorIndex"] == "a:input:0" and first["Shape"] == "[4,6]"
    part, other = np.array_split(given, 2, 1)
    assert {name: first[name] for name in ALGORITHMS} == expected_values(
        given, np.concatenate([part * 2, other], 1))
    assert (result["Shape"], result["Verdict"]) == ("[4,6]", "same")
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path / "apart",
        "-ffts")
    first, _, second, _ = rows_of(tmp_path / "apart")
    assert first["Shape"] == second["Shape"] == "[4,3]"
    assert {name: first[name] for name in ALGORITHMS} == expected_values(part, part * 2)
    assert second["Verdict"] == "same"


def with_bounds(directory: Path, whole: Array, edges: list[tuple[int, int]], *,
                wrong: Array | None = None, **other: Any) -> None:
    """A thread for each pair of rows that its input begins and ends with; the sizes in the message
    are those of the whole."""
    rows = np.array_split(normal((8, 5), 9), len(edges), 0)
    boxes = [[[{"lower": first, "higher": last}, {"lower": 0, "higher": whole.shape[1]}]]
             for first, last in edges]
    text = attribute(rows, 0, True, **({"input_tensor_slice": boxes} | other))
    for number, (first, last) in enumerate(edges):
        given = (whole if wrong is None or number else wrong)[first:last]
        Dump(inputs=[Tensor(given.tobytes(), 2, whole.shape, 2)], outputs=[plain(rows[number])],
             attribute=text).write(directory / f"Add.net_add.3.7.{TIME + number}.4.9.{number}.0")


EDGES = {"two": [(0, 6), (6, 12)], "three": [(0, 3), (3, 7), (7, 12)],
         "borders": [(0, 5), (3, 9), (8, 12)]}


@pytest.mark.parametrize("cut_as", EDGES)
def test_inputs_are_put_together_by_their_bounds(tmp_path: Path, cut_as: str) -> None:
    """Against an operator that was not cut, and against one that was cut otherwise."""
    whole = normal((12, 5))
    wrong = whole.copy()
    wrong[1] *= 2
    Dump(inputs=[plain(whole)], outputs=[plain(normal((8, 5), 9))]).write(
        tmp_path / "uncut" / "golden" / f"Add.net_add.3.7.{TIME}")
    with_bounds(tmp_path / "cut" / "golden", whole, EDGES["two"])
    for directory in (tmp_path / "uncut", tmp_path / "cut"):
        with_bounds(directory / "mine", whole, EDGES[cut_as])
        row = compare(directory)[1]
        assert (row["Verdict"], row["Shape"], row["CompareFailReason"]) == ("same", "[12,5]", "")
        (directory / "right").mkdir()
        (directory / "mine").rename(directory / "right" / "mine")
        for old in (directory / "out").iterdir():
            old.unlink()
        with_bounds(directory / "mine", wrong, EDGES[cut_as])
        answer, row = compare(directory)
        assert answer == "first wrong call: net_add"
        assert row["Verdict"] == "broken"
        error = np.linalg.norm((wrong - whole).astype(float)) / np.linalg.norm(whole.astype(float))
        assert float(row["RelativeError"]) == pytest.approx(error, rel=1e-3)


def test_bounds_that_make_no_whole_leave_the_parts(tmp_path: Path) -> None:
    """Holes, borders that differ, sizes other than the message's: part by part, nothing passes."""
    whole = normal((12, 5))
    wrong = whole.copy()
    wrong[4] += 1
    for name, edges, first in (("hole", [(0, 5), (7, 12)], None),
                               ("borders", [(0, 5), (3, 12)], wrong),
                               ("short", [(0, 5), (5, 11)], None)):
        directory = tmp_path / name
        Dump(inputs=[plain(whole)], outputs=[plain(normal((8, 5), 9))]).write(
            directory / "golden" / f"Add.net_add.3.7.{TIME}")
        with_bounds(directory / "mine", whole, edges, wrong=first)
        assert compare(directory)[1]["Reason"] == "shape-differs"
        with_bounds(tmp_path / "both" / name / "mine", whole, edges, wrong=first)
        with_bounds(tmp_path / "both" / name / "golden", whole, edges)
        row = compare(tmp_path / "both" / name)[1]
        assert "that of part" in row["CompareFailReason"]
        assert (row["Verdict"] == "same") == (first is None)


def compare_with_rule(directory: Path, given: Array, whole: Array) -> tuple[str, dict[str, str]]:
    """`compare` with the framework's arrays of net_add (8x5) and of what it reads as golden."""
    (directory / "golden").mkdir()
    for name, array in (("data", given), ("net_add", whole)):
        np.save(directory / "golden" / f"{name}.0.{TIME}.npy", array.astype(np.float32))
    rule = directory / "rule.json"
    rule.write_text(json.dumps({"graph": [{"name": "g", "op": [
        rule_operator("Data data", []),
        rule_operator("Add net_add", ["data:0"], ["net_add"], ("net_add", 0, (8, 5)))]}]}))
    return compare(directory, "-f", rule)


def test_the_whole_input_with_a_rule_file(tmp_path: Path) -> None:
    given, whole = normal((12, 5)), normal((8, 5), 9)
    with_bounds(tmp_path / "mine", given, EDGES["borders"])
    answer, row = compare_with_rule(tmp_path, given, whole)
    assert answer == "no wrong call"
    assert (row["Verdict"], row["Shape"]) == ("same", "[12,5]")


def test_with_a_rule_file(tmp_path: Path) -> None:
    """The framework's array is compared with the input of each part."""
    given, whole = normal((6, 5)), normal((8, 5), 9)
    write(tmp_path / "mine", [given, given, given * 3, given])
    answer, row = compare_with_rule(tmp_path, given, whole)
    assert answer == "first wrong call: net_add"
    assert row["Verdict"] == "broken"
    assert "that of part 2 is shown" in row["CompareFailReason"]


def test_the_part_that_is_shown_in_detail(tmp_path: Path) -> None:
    inputs = cut()
    write(tmp_path / "golden", inputs)
    wrong = inputs[1] * 3
    write(tmp_path / "mine", [inputs[0], wrong, *inputs[2:]])
    done = run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path,
               "-op", "net_add", "-i", "0")
    assert done.stdout.startswith("net_add:input:0: broken")
    assert np.array_equal(np.load(tmp_path / "net_add_input_0.npy"), wrong)
