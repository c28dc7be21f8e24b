"""Every case, by model."""

from __future__ import annotations

import cases_conv
import cases_fifth_pictures
import cases_fifth_steps
import cases_fifth_text
import cases_fourth
import cases_held_out
import cases_library
import cases_parts
import cases_plain
import cases_rounding
import cases_second
import cases_sixth
import cases_sixth_steps
import cases_third
import cases_third_steps
import cases_unseen_other
import cases_unseen_steps
import cases_unseen_text
from fault_cases import Case

CASES: list[Case] = [*cases_plain.CASES, *cases_library.CASES, *cases_conv.CASES,
                     *cases_held_out.CASES, *cases_unseen_text.CASES,
                     *cases_unseen_other.CASES, *cases_unseen_steps.CASES, *cases_second.CASES,
                     *cases_third.CASES, *cases_third_steps.CASES,
                     *cases_fourth.CASES, *cases_fifth_text.CASES,
                     *cases_fifth_pictures.CASES, *cases_fifth_steps.CASES,
                     *cases_sixth.CASES, *cases_sixth_steps.CASES,
                     *cases_rounding.CASES, *cases_parts.CASES]


def cases_of(model: str) -> list[Case]:
    """The cases of one model, in the order of their steps."""
    return [case for case in CASES if case.model == model]
