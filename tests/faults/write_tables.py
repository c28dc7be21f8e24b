"""Writes docs/reference/fault-suite.md: the answers of plumbline and of upstream's releases.

    python write_tables.py WORK RANKS ANSWERS OUTPUT

WORK and RANKS are the recordings of evaluate.py and evaluate_ranks.py, ANSWERS a directory with
1.2.2.jsonl and 26.2.0.jsonl, which upstream_answers.py wrote about the pairs of both. Pairs that
they do not hold keep the cells of these releases that OUTPUT has already.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import evaluate
import evaluate_ranks

Table = tuple[bool, str]  # whether of several ranks; the task
Answer = evaluate.Answer | evaluate_ranks.RankAnswer
PLACES = {False: "One process", True: "Several ranks"}
TITLES = {"tensor": "with tensors", "statistics": "with statistics only"}
TABLES = [(ranks, task) for ranks in PLACES for task in TITLES]


@dataclass
class Tool:
    """One column of the tables: its cell for each pair."""

    name: str
    cells: dict[Table, dict[str, str]]


HEAD = """# The fault suite: answers of three tools

The pairs of runs of `tests/faults`: a right run and the same with one fault put in, or with nothing
but other rounding. Every pair is recorded once by plumbline, in the format that all three tools
read, and compared by each. What the faults and the noise are: [the
verdict](../design/verdict.md#seeded-faults).

```
python tests/faults/evaluate.py WORK --pairs pairs.json
python tests/faults/evaluate_ranks.py RANKS --pairs rank_pairs.json
UPSTREAM_PYTHON tests/faults/upstream_answers.py pairs.json 1.2.2 ANSWERS/1.2.2.jsonl
UPSTREAM_PYTHON tests/faults/upstream_answers.py rank_pairs.json 1.2.2 ANSWERS/1.2.2.jsonl
python tests/faults/write_tables.py WORK RANKS ANSWERS docs/reference/fault-suite.md
```
<!-- no-run: needs upstream's releases, takes an hour -->

## What counts as an answer
plumbline names a call or says that none is wrong. Upstream marks rows of its table; its answer is
the call of the first row, in the order of the table, with a mark:

| Column | Mark |
|---|---|
| 1.2.2 | `No` in `Accuracy Reached or Not` (tensors), `Warning` in `Result` (statistics) |
| 1.2.2 red | the row is filled red |
| 26.2.0 | `error` or `warning` in `Result` |
| 26.2.0 errors | `error` in `Result` |

*Exact*: the first wrong call. *Within one*: that call or the one recorded before or after it.
*Alarm*: a call is named in a pair that differs in rounding only. On several ranks plumbline
compares all ranks together and must name the rank too; upstream's tables are one per rank, and its
answer is that of the lowest rank that has a mark. The thresholds of all tools are their defaults.

The rules of plumbline were made with the pairs called "in view", *rounding* and *parts* before
their eyes. The other groups (held out, unseen, second to sixth) were written after the rules stood,
and some rules were mended after their first sight: what plumbline said at that first sight is in
[the verdict](../design/verdict.md#seeded-faults). Upstream's rules knew none of them. Another suite
would show other numbers.
"""


def counts(tools: list[Tool], pairs: Sequence[Answer], table: Table) -> list[str]:
    """The table of totals of one task: every group of pairs apart, then all."""
    lines = ["| Pairs | | " + " | ".join(tool.name for tool in tools) + " |",
             "|---" * (len(tools) + 2) + "|"]
    for group in [*dict.fromkeys(pair.group for pair in pairs), ""]:
        own = [pair for pair in pairs if group in ("", pair.group)]
        faults = sum(pair.is_fault for pair in own)
        said = [[tool.cells[table].get(pair.case, "") for pair in own] for tool in tools]
        rows = ((f"of {faults} faults: exact", ("exact",)),
                ("within one", ("exact", "next:")),
                (f"alarms on {len(own) - faults} noise pairs", ("alarm:",)))
        lines += [f"| {(group or 'all') if at == 0 else ''} | {title} | " + " | ".join(
            str(sum(text.startswith(starts) for text in column)) for column in said) + " |"
            for at, (title, starts) in enumerate(rows)]
    return lines


def cell(answer: evaluate.Answer) -> str:
    """One answer in few words."""
    if not answer.named:
        return "nothing" if answer.is_fault else "-"
    if not answer.is_fault:
        return f"alarm: {short(answer)}"
    if answer.exact:
        return "exact"
    return f"next: {short(answer)}" if answer.near else short(answer)


def short(answer: evaluate.Answer) -> str:
    """What is named, without what every name has; `<`: in the backward pass."""
    name = answer.named.removesuffix(".forward")
    if name.endswith(".backward"):
        name = name.removesuffix(".backward") + "<"
    parts = name.split(".", 1)
    name = parts[-1] if parts[0] in ("Functional", "Torch", "Tensor", "Distributed") else name
    rank = getattr(answer, "rank", None)
    return (f"rank {rank} " if rank is not None else "") + f"`{name}`"


def cases(tools: list[Tool], pairs: Sequence[Answer], table: Table) -> list[str]:
    """One line per pair."""
    lines = ["| Pair | " + " | ".join(tool.name for tool in tools) + " |",
             "|---" * (len(tools) + 1) + "|"]
    for pair in pairs:
        kind = "" if pair.is_fault else " (noise)"
        group = f", {pair.group}" if pair.group != "in view" else ""
        lines.append(f"| {pair.case}{kind}{group} | " + " | ".join(
            tool.cells[table].get(pair.case, "not asked") for tool in tools) + " |")
    return lines


def heading(table: Table) -> str:
    """What stands above the pairs of a table."""
    ranks, task = table
    return f"### Pairs: {PLACES[ranks].lower()}, {TITLES[task]}"


def cells_of(single: Sequence[Answer], ranks: Sequence[Answer]) -> dict[Table, dict[str, str]]:
    """Answers as cells."""
    cells: dict[Table, dict[str, str]] = {table: {} for table in TABLES}
    for of_ranks, answers in ((False, single), (True, ranks)):
        for answer in answers:
            cells[of_ranks, answer.task][answer.case] = cell(answer)
    return cells


def written_cells(text: str, name: str) -> dict[Table, dict[str, str]]:
    """The column `name` of a page that this program wrote: releases answer a pair once."""
    cells: dict[Table, dict[str, str]] = {table: {} for table in TABLES}
    by_heading = {heading(table): table for table in TABLES}
    table, column = None, 0
    for line in text.splitlines():
        if line.startswith("#"):
            table = by_heading.get(line)
        parts = [part.strip() for part in line.strip("|").split("|")]
        if table is None or not line.startswith("| "):
            continue
        if parts[0] == "Pair":
            column = parts.index(name)
        elif parts[column] != "not asked":
            cells[table][parts[0].split(",")[0].removesuffix(" (noise)")] = parts[column]
    return cells


def main() -> int:
    work, ranks, answers, output = (Path(text).resolve() for text in sys.argv[1:5])
    own = {False: evaluate.evaluate(work, []), True: evaluate_ranks.evaluate(ranks, [])}
    tools = [Tool("plumbline", cells_of(own[False], own[True]))]
    page = output.read_text() if output.exists() else ""
    for release, mark, name in (("1.2.2", "plain", "1.2.2"), ("1.2.2", "strict", "1.2.2 red"),
                                ("26.2.0", "plain", "26.2.0"),
                                ("26.2.0", "strict", "26.2.0 errors")):
        path = answers / f"{release}.jsonl"
        tool = Tool(name, written_cells(page, name))
        new = cells_of(evaluate.upstream_answers(work, path, mark),
                       evaluate_ranks.upstream_answers(ranks, path, mark))
        for table, cells in new.items():
            tool.cells[table].update(cells)
        tools.append(tool)
    pairs = {(of_ranks, task): [answer for answer in own[of_ranks] if answer.task == task]
             for of_ranks, task in TABLES}
    lines = [HEAD, "## Summary"]
    for table in TABLES:
        lines += [f"### {PLACES[table[0]]}, {TITLES[table[1]]}",
                  *counts(tools, pairs[table], table), ""]
    lines += ["## Every pair",
              "`exact`: the first wrong call. Else what is named, `next:` where it is one call "
              "away; `<` in the backward pass; `-`: rightly nothing.", ""]
    for table in TABLES:
        lines += [heading(table), *cases(tools, pairs[table], table), ""]
    output.write_text("\n".join(lines).rstrip() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
