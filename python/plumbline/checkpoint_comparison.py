"""What `plumbline.compare()` returns for two arrays or checkpoints."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline import _compare, arguments
from plumbline.comparison_result import ComparisonResult, written_beside


@dataclass(frozen=True, repr=False)
class CheckpointResult(ComparisonResult):
    """What a comparison of two arrays or checkpoints found. These have no calls.

    The attributes are those of `ComparisonResult`. `first_wrong_call`, `details` are None, `mode`
    is "checkpoint", `counts` are those of `plumb compare --json`. `exit_code` is 0 where every
    parameter is the same or within noise and no plain value differs.
    """

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per parameter: name, verdict, reason, shape, numel, and l2, cos, max_abs."""
        return [{"name": name, **row} for name, row in self._facts["parameters"].items()]

    @cached_property
    def differing_values(self) -> dict[str, list[Any]]:
        """Plain values that differ, by name: the target's and the golden side's."""
        values: dict[str, list[Any]] = self._facts["differing values"]
        return values

    @property
    def columns(self) -> _compare.RowTable:
        """Raises ValueError: the table has a row for each value of a call."""
        raise ValueError("columns: not of checkpoints (expected two recordings). Use rows.")

    @property
    def next_config(self) -> str:
        """Nothing more can be recorded."""
        return ""

    @cached_property
    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self._report.result_json())
        return facts

    @property
    def _report(self) -> _compare.CheckpointReport:
        native: Any = self._native
        report: _compare.CheckpointReport = native
        return report

    def _write(self, name: str, path: str | os.PathLike[str]) -> None:
        """Only the machine form: there is no table of calls."""
        if name != "json":
            raise ValueError(f"to_{name}: not of checkpoints (expected two recordings). "
                             "Use to_json.")
        with written_beside(arguments.path("path", path)) as folder:
            text = self._report.result_json() + "\n"
            Path(folder, "result.json").write_bytes(os.fsencode(text))


def compare_checkpoints(sides: tuple[str, str], options: _compare.CompareOptions,
                        conditions: list[str], writes: bool) -> CheckpointResult:
    """The two paths, as `plumb compare` takes them; files only with `writes`."""
    if not writes:
        options.output_dir = ""
    report = _compare.compare_checkpoints(*sides, options)
    facts = json.loads(report.result_json())
    summary = report.summary_text()
    counts: dict[str, int] = facts["counts"]
    native: Any = report
    return CheckpointResult(
        first_wrong_call=None,
        answer=summary.partition("\n")[0],
        summary=summary,
        details=None,
        counts=counts,
        complete=counts["not comparable"] == counts["zeros or empty on both sides"],
        certainty={"level": "high", "text": "every element was compared"},
        mode="checkpoint",
        warnings=facts["warnings"],
        files=report.files(),
        exit_code=int(report.fails_on(conditions)),
        _native=native,
    )
