"""Faults on several ranks are named on their rank, rounding raises no alarm (evaluate_ranks.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from counted import alarms_of, assert_causes, faults_of, listed
from evaluate import PLUMB
from evaluate_ranks import RankAnswer, evaluate, pairs_of
from served_first import first_in_files, first_of, viewer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def answers(work: Path) -> list[RankAnswer]:
    """Of every case, with tensors and with statistics."""
    return evaluate(work / "ranks", [])


@pytest.mark.parametrize("task", ["tensor", "statistics"])
def test_rank_and_call_are_named(answers: list[RankAnswer], task: str) -> None:
    missed = [answer for answer in faults_of(answers, task) if not answer.exact]
    assert not missed, listed(missed)


def test_cause_is_right_with_tensors(answers: list[RankAnswer]) -> None:
    assert_causes(answers)


@pytest.mark.parametrize("task", ["tensor", "statistics"])
def test_rounding_raises_no_alarm(answers: list[RankAnswer], task: str) -> None:
    alarms = alarms_of(answers, task)
    assert not alarms, listed(alarms)


@pytest.mark.parametrize("task", ["tensor", "statistics"])
def test_the_viewer_names_the_same(answers: list[RankAnswer], work: Path, task: str,
                                   tmp_path: Path) -> None:
    pairs = pairs_of(work / "ranks", task)
    asked = [answer for answer in answers if answer.task == task]
    pages = [tmp_path / f"{answer.case}.html" for answer in asked]
    for answer, page in zip(asked, pages, strict=True):
        subprocess.run([PLUMB, "view", *pairs[answer.case], "--html", page], check=True,
                       capture_output=True)
    with viewer(tmp_path, *next(iter(pairs.values())), "--root", work) as running:
        served = [first_of(running, *pairs[answer.case]) for answer in asked]
    for found in (served, first_in_files(pages)):
        different = [(answer, row and row["name"], meta["first"])
                     for answer, (row, meta) in zip(asked, found, strict=True)
                     if shown(row, meta) != (answer.named, answer.rank, answer.cause)]
        assert not different


def shown(row: Any, meta: Any) -> tuple[str, int | None, str]:
    """Call, rank and cause of what a page has on top."""
    first = meta["first"]
    if first is None or row is None or (row["kind"], row["id"]) != ("first", first["id"]):
        return ("" if first is None else f"{first['name']} is not on top"), None, ""
    return row["name"], meta["places"][first["place"]]["rank"], first["cause"]
