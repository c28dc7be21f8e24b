"""Faults on several ranks are named on their rank, rounding raises no alarm (evaluate_ranks.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from counted import alarms_of, assert_causes, faults_of, listed
from evaluate_ranks import RankAnswer, evaluate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[RankAnswer]:
    """Of every case, with tensors and with statistics."""
    return evaluate(tmp_path_factory.mktemp("ranks"), [])


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
