"""Comparing all ranks and steps of two dumps from Python: `plumbline.compare_ranks()`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from plumbline import _compare, arguments, notebook
from plumbline.comparison_result import conditions_of, native_options
from plumbline.training_comparison import training_rules


@dataclass(frozen=True, repr=False)
class RanksResult:
    """What a comparison of several ranks found. It has no truth value: ask for what you mean.

    Its attributes have the meaning that they have in ComparisonResult, but for
    `first_wrong_call`, which holds what `details` holds.

    Attributes:
        answer: the first line of `summary`: the earliest wrong call over all ranks and steps, or
            why there is none.
        first_wrong_call: its facts: step, rank, name, what, item, stack_line, ...; None does not
            mean that all is well, see `answer` and `complete`.
        origins: wrong calls that nothing explains, at most one per rank, earliest first.
        ranks: one dict per pair: step, rank, state ("compared", "taken over", "failed", "missing"),
            answer or error, counts, files.
        counts: rows per verdict and calls, of all ranks together.
        complete: every rank of both sides was compared, and completely.
        certainty: how far the answer can be trusted, `level`, `text` and `limit`.
        collectives: with `check_collectives`: a dict per side, what was found there.
        summary: all lines that `plumb compare` prints.
        files: the summary file and, if asked for, diff_analyze_<ns>.json.
        exit_code: 1 if a condition of `fail_on` is met, else 0.
    """

    answer: str
    first_wrong_call: dict[str, Any] | None
    origins: list[dict[str, Any]]
    ranks: list[dict[str, Any]]
    counts: dict[str, int]
    complete: bool
    certainty: dict[str, str]
    collectives: list[dict[str, Any]]
    summary: str
    files: list[str]
    exit_code: int

    @property
    def details(self) -> dict[str, Any] | None:
        """`first_wrong_call` under the name that ComparisonResult has for these facts."""
        return self.first_wrong_call

    @property
    def ok(self) -> bool:
        """Whether no condition of `fail_on` is met: `exit_code` is 0."""
        return self.exit_code == 0

    def __repr__(self) -> str:
        """One line: the answer and how many ranks and steps it is over."""
        return f"<RanksResult: {self.answer} ({len(self.ranks)} ranks and steps)>"

    def _repr_html_(self) -> str:
        """The answer as notebooks show it: the summary, the counts, a line per rank and step."""
        head = ["step", "rank", "state", "answer"]
        lines = [["" if rank.get(name) is None else str(rank[name]) for name in head[:3]]
                 + [str(rank.get("answer") or rank.get("error") or "")] for rank in self.ranks]
        return notebook.page(self.summary, self.counts, [head, *lines])

    def __bool__(self) -> bool:
        """Raises TypeError: "it differs" and "it was judged" are two questions."""
        raise TypeError("RanksResult: has no truth value. Test exit_code or first_wrong_call.")


def compare_ranks(
    target: str | os.PathLike[str],
    golden: str | os.PathLike[str],
    output_dir: str | os.PathLike[str],
    *,
    ranks: Iterable[int] = (),
    steps: Iterable[int] = (),
    formats: str | Iterable[str] = ("xlsx", "csv", "json"),
    fail_on: str | Iterable[str] = ("any",),
    fuzzy_match: bool = False,
    salvage: bool = False,
    write_advice: bool = False,
    diff_analyze: bool = False,
    check_collectives: bool = False,
    resume: bool = True,
    threads: int = 0,
    backend: str | None = None,
    module_map: str | os.PathLike[str] | None = None,
) -> RanksResult:
    """Compares two step directories or two dump directories rank by rank.

    Args:
        target: the run under test: a directory with rank0, rank1, ... or step0, step1, ...
        golden: the reference run.
        output_dir: where the result files go, made when missing. Every rank has its own.
        ranks, steps: only these; empty: all.
        formats: which result files of each rank; a text may name several with commas.
        fail_on: as for plumbline.compare(); missing and failed ranks are "unjudged".
        fuzzy_match, salvage, write_advice: as for plumbline.compare(), of each rank.
        diff_analyze: also write upstream's files of the first difference over ranks.
        check_collectives: also check by the statistics of each side that all_reduce gave all ranks
            of a group the same, that messages arrived as sent, and so on.
        resume: take over results of an earlier run that are up to date.
        threads: of all ranks together; 0: one per core.
        backend, module_map: as for plumbline.compare_training(): `target` is a training and
            `golden` an inference.

    Raises:
        ValueError, FileNotFoundError, OSError: as plumbline.compare(), where it concerns all
            ranks. One rank that cannot be compared is a state in `ranks`.
    """
    options = native_options(arguments.words("formats", formats), threads)
    options.fuzzy_match = arguments.flag("fuzzy_match", fuzzy_match)
    options.salvage = arguments.flag("salvage", salvage)
    options.write_advice = arguments.flag("write_advice", write_advice)
    options.output_dir = arguments.path("output_dir", output_dir)
    chosen = _compare.RankOptions()
    chosen.ranks = arguments.numbers("ranks", ranks)
    chosen.steps = arguments.numbers("steps", steps)
    chosen.resume = arguments.flag("resume", resume)
    chosen.diff_analyze = arguments.flag("diff_analyze", diff_analyze)
    chosen.check_collectives = arguments.flag("check_collectives", check_collectives)
    chosen.fail_on = conditions_of(fail_on)
    if backend is not None:
        chosen.pair_training(training_rules(backend, module_map))
    elif module_map is not None:
        raise ValueError("module_map: belongs to backend (expected fsdp or megatron)")
    sides = arguments.path("target", target), arguments.path("golden", golden)
    return _compared_ranks(sides, options, chosen)


def compare_whole_runs(sides: tuple[str, str], options: _compare.CompareOptions,
                       conditions: list[str], writes: bool) -> RanksResult:
    """All ranks and steps with the options of plumbline.compare(); files only with `writes`."""
    for name, value in (("suffix", options.suffix), ("stack_path", options.stack_path)):
        if value:
            raise ValueError(f"{name}: is for one rank, and {sides[0]} or {sides[1]} holds several "
                             "ranks or steps (expected two dump.json, or a directory of a rank "
                             "each). Leave it out")
    if not writes:
        options.output_dir = ""
    chosen = _compare.RankOptions()
    chosen.fail_on = conditions
    return _compared_ranks(sides, options, chosen)


def _compared_ranks(sides: tuple[str, str], options: _compare.CompareOptions,
                    chosen: _compare.RankOptions) -> RanksResult:
    machine, summary, fails = _compare.compare_ranks(*sides, options, chosen)
    facts = json.loads(machine)
    told = ("answer", "first_wrong_call", "origins", "ranks", "counts", "complete", "certainty",
            "files")
    return RanksResult(summary=summary, exit_code=int(fails),
                       collectives=facts.get("collectives", []),
                       **{name: facts[name] for name in told})
