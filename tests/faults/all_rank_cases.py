"""Every case of several ranks."""

from __future__ import annotations

import rank_cases
import rank_cases_held_out

CASES: list[rank_cases.RankCase] = [*rank_cases.CASES, *rank_cases_held_out.CASES]
