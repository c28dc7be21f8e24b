"""Where a plumbline dump may differ from a dump of upstream 1.2.2, and why.

Paths read MODEL/LEVEL/MODE/stepN:ENTRY/member/index/field[dtype].

Each line has its place in docs/formats/differences.md under the same key. A line that no test run
needs fails test_every_known_difference_occurs, so that the list cannot outlive its reasons.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KnownDifference:
    """`path` says where, `accept` judges (ours, upstream's)."""

    key: str
    path: re.Pattern[str]
    accept: Any

    def covers(self, path: str, ours: Any, theirs: Any) -> bool:
        """Whether this line explains that `ours` is not `theirs` at `path`."""
        return bool(self.path.search(path)) and self.accept(ours, theirs)


# Upstream's full backward hooks put an identity node around the inputs and outputs of each module,
# and record the view_as that makes it. plumbline's hooks leave the graph alone.
UPSTREAM_ONLY = re.compile(r"^Tensor\.view_as\.\d+\.forward")

# Key inplace-output: a module whose output is then changed in place. Upstream's identity node
# stands between the two; without it the gradient of the output before the change is gone, exactly
# as in upstream's own L1 recording.
INPLACE_OUTPUT = re.compile(
    r"^(Module\.first\.Linear\.backward\.0|Functional\.linear\.0\.backward)$")
INPLACE_MODEL = re.compile(r"^mixed/(L0|mix)/")

# The same identity nodes change the order in which autograd adds up the gradients of a tensor with
# several users, so that the last bits of upstream's gradients are not those of the run without a
# tool; after the first optimizer step nothing agrees to the bit. Ours are (test_neutrality.py).
PERTURBED = re.compile(r"^llama/(L0|mix)/\w+/(step0:.*(backward|parameters_grad)|step1:)")


def _nearly(ours: Any, theirs: Any) -> bool:
    if not isinstance(ours, int | float) or not isinstance(theirs, int | float):
        return isinstance(ours, str) and isinstance(theirs, str)  # digests
    return abs(ours - theirs) <= 1e-4 * abs(theirs) + 1e-6


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
    KnownDifference(
        # Upstream adds up in the tensor's own dtype; the sum of a mask of -3.4e38 overflows.
        key="sum-overflow",
        path=re.compile(r"/(Mean|Norm)\[torch\.\w+\]$"),
        accept=lambda ours, theirs: math.isfinite(ours) and math.isinf(theirs),
    ),
    KnownDifference(
        # The call that changes the output takes the place of the module in the backward graph.
        key="inplace-output",
        path=re.compile(INPLACE_MODEL.pattern
                        + r"\w+/step\d:Functional\.relu\.0\.backward/output/"),
        accept=lambda ours, theirs: True,
    ),
    KnownDifference(
        # An output that nobody uses outside the module has no gradient behind upstream's identity
        # node; ours is the gradient of the tensor itself, which the module uses inside.
        key="unused-output",
        path=re.compile(r"/step\d:Module\.[\w.]+\.LlamaAttention\.backward\.0/input/1$"),
        accept=lambda ours, theirs: theirs is None and ours["type"] == "torch.Tensor",
    ),
    KnownDifference(
        key="gradient-order",
        path=re.compile(PERTURBED.pattern + r".*/(md5|(Max|Min|Mean|Norm)\[torch\.float32\])$"),
        accept=_nearly,
    ),
]


@dataclass(frozen=True)
class NewestDifference:
    """Cells of the csv of 26.2.0 that plumb writes otherwise, and in which pairs they occur."""

    key: str
    columns: tuple[str, ...]
    accept: Callable[[dict[str, str], dict[str, str]], bool]  # upstream's row, ours
    occurs_in: tuple[str, ...]

    def accepts(self, column: str, theirs: dict[str, str], ours: dict[str, str]) -> bool:
        return column in self.columns and self.accept(theirs, ours)


def _close(theirs: str, ours: str, tolerance: float) -> bool:
    """Whether two cells hold numbers, or percentages, that agree but for rounding."""
    if theirs.endswith("%") != ours.endswith("%"):
        return False
    try:
        numbers = float(theirs.rstrip("%")), float(ours.rstrip("%"))
    except ValueError:
        return False
    return math.isclose(*numbers, rel_tol=tolerance)


def _last_digits(column: str) -> NewestDifference:
    """With pandas 2 upstream subtracts numbers that were rounded on the way."""
    return NewestDifference(
        key="last-digits",
        columns=(column,),
        accept=lambda theirs, ours: _close(theirs[column], ours[column], 1e-11),
        occurs_in=("statistics", "argument", "odd"),
    )


NEWEST_TABLE: list[NewestDifference] = [
    NewestDifference(
        # Never a wrong pass: rows without counterpart, all-zero, empty, or NaN or infinite on both
        # sides pass upstream.
        key="no-wrong-pass",
        columns=("Result", "Err_message"),
        accept=lambda theirs, ours: (
            theirs["Result"] == "pass" and ours["Result"] in ("warning", "error")
            and (ours["Verdict"] == "not comparable" or ours["Reason"].startswith("nonfinite"))),
        occurs_in=("extra_call", "odd"),
    ),
    NewestDifference(
        # Upstream divides in the tensors' own precision, plumbline in double.
        key="relative-in-double",
        columns=("MaxRelativeErr",),
        accept=lambda theirs, ours: (
            "%" not in theirs["MaxRelativeErr"]
            and _close(theirs["MaxRelativeErr"], ours["MaxRelativeErr"], 1e-6)),
        occurs_in=("tensor",),
    ),
    NewestDifference(
        # A value that is null on both sides has no data type; pandas 2 prints None, pandas 3 N/A.
        key="null-has-no-type",
        columns=("NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape"),
        accept=lambda theirs, ours: theirs["NPU Dtype"] == "None" and ours["NPU Dtype"] == "N/A",
        occurs_in=("odd",),
    ),
    *(_last_digits(f"{name} diff") for name in ("Max", "Min", "Mean", "L2norm")),
    *(_last_digits(f"{name}RelativeErr") for name in ("Max", "Min", "Mean", "Norm")),
]
