"""Every case, by model."""

from __future__ import annotations

import cases_conv
import cases_held_out
import cases_library
import cases_plain
import cases_second
import cases_unseen_other
import cases_unseen_steps
import cases_unseen_text
from fault_cases import Case

CASES: list[Case] = [*cases_plain.CASES, *cases_library.CASES, *cases_conv.CASES,
                     *cases_held_out.CASES, *cases_unseen_text.CASES,
                     *cases_unseen_other.CASES, *cases_unseen_steps.CASES, *cases_second.CASES]


def cases_of(model: str) -> list[Case]:
    """The cases of one model, in the order of their steps."""
    return [case for case in CASES if case.model == model]
