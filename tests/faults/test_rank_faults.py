"""Faults on several ranks are named on their rank, rounding raises no alarm (evaluate_ranks.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from counted import alarms_of, assert_causes, faults_of, listed
from evaluate_ranks import RankAnswer, evaluate, pairs_of
from served_first import first_of, viewer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where everything is recorded."""
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def answers(work: Path) -> list[RankAnswer]:
    """Of every case, with tensors and with statistics."""
    return evaluate(work, [])


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
    different = []
    pairs = pairs_of(work, task)
    with viewer(tmp_path, *next(iter(pairs.values())), "--root", work) as running:
        for answer in (answer for answer in answers if answer.task == task):
            row, meta = first_of(running, *pairs[answer.case])
            first = meta["first"]
            rank = meta["places"][first["place"]]["rank"] if first else None
            shown = (row["name"], rank, first["cause"]) if first else ("", None, "")
            is_named = row is not None and row["kind"] == "first"
            if shown != (answer.named, answer.rank, answer.cause) or is_named != bool(first):
                different.append((answer.case, answer.named, answer.rank, answer.cause, shown))
    assert not different
