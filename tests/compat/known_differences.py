"""Where a plumbline dump may differ from a dump of upstream 1.2.2, and why.

Each line has its place in docs/formats/differences.md under the same key. A line that no test run
needs fails test_every_known_difference_occurs, so that the list cannot outlive its reasons.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KnownDifference:
    """`path` is matched against ENTRY/member/index/field; `accept` judges (ours, upstream's)."""

    key: str
    path: re.Pattern[str]
    accept: Any

    def covers(self, path: str, ours: Any, theirs: Any) -> bool:
        """Whether this line explains that `ours` is not `theirs` at `path`."""
        return bool(self.path.search(path)) and self.accept(ours, theirs)


KNOWN_DIFFERENCES: list[KnownDifference] = [
    KnownDifference(
        # Upstream leaves {} for a positional torch.dtype or torch.device.
        key="positional-dtype",
        path=re.compile(r"/input_args/\d+(/\d+)*$"),
        accept=lambda ours, theirs: theirs == {} and set(ours) == {"type", "value"},
    ),
    KnownDifference(
        # Upstream converts float64 to float32 before it computes, so all four are rounded.
        key="float64-statistics",
        path=re.compile(r"/(Max|Min|Mean|Norm)\[torch\.float64\]$"),
        accept=lambda ours, theirs: abs(ours - theirs) <= 2.0**-22 * abs(theirs) + 1e-12,
    ),
    KnownDifference(
        # Upstream converts integers to float32 before it computes.
        key="integer-statistics",
        path=re.compile(r"/(Mean|Norm)\[torch\.(u?int\d+)\]$"),
        accept=lambda ours, theirs: abs(ours - theirs) <= 2.0**-22 * abs(theirs),
    ),
]
