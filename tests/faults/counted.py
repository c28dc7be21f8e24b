"""What the tests of both suites ask of the answers."""

from __future__ import annotations

from collections.abc import Sequence

from evaluate import Answer

LEAST_FAULTS, LEAST_NOISE = 20, 10
CAUSE_RIGHT_WITH_TENSORS = 0.8


def faults_of(answers: Sequence[Answer], task: str) -> list[Answer]:
    """The pairs of one task of which a call must be named."""
    found = [answer for answer in answers if answer.task == task and answer.is_fault]
    assert len(found) >= LEAST_FAULTS
    return found


def alarms_of(answers: Sequence[Answer], task: str) -> list[Answer]:
    """The pairs of one task that differ in rounding only, and of which a call is named."""
    noise = [answer for answer in answers if answer.task == task and not answer.is_fault]
    assert len(noise) >= LEAST_NOISE
    return [answer for answer in noise if answer.named]


def assert_share(missed: Sequence[Answer], of: Sequence[Answer], share: float) -> None:
    """At most what `share` leaves is missed."""
    assert of and len(missed) <= (1 - share) * len(of), listed(missed)


def assert_causes(answers: Sequence[Answer]) -> None:
    """With tensors the cause is right, where the tool has a class for it."""
    known = [answer for answer in faults_of(answers, "tensor") if answer.true_cause]
    wrong = [answer for answer in known if answer.cause not in answer.true_cause.split()]
    assert_share(wrong, known, CAUSE_RIGHT_WITH_TENSORS)


def listed(answers: Sequence[Answer]) -> str:
    """One line per answer."""
    return "\n".join(f"{answer.case}: named {answer.place}, {answer.cause or 'no cause'}: "
                     f"{answer.detail}" for answer in answers)
