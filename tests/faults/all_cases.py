"""Every case, by model."""

from __future__ import annotations

import cases_conv
import cases_held_out
import cases_library
import cases_plain
from fault_cases import Case

CASES: list[Case] = [*cases_plain.CASES, *cases_library.CASES, *cases_conv.CASES,
                     *cases_held_out.CASES]


def cases_of(model: str) -> list[Case]:
    """The cases of one model, in the order of their steps."""
    return [case for case in CASES if case.model == model]
