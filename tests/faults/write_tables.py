"""Writes docs/reference/fault-suite.md: the answers of plumbline and of upstream's releases.

    python write_tables.py WORK RANKS ANSWERS OUTPUT

WORK and RANKS are the recordings of evaluate.py and evaluate_ranks.py, ANSWERS a directory with
1.2.2.jsonl and 26.2.0.jsonl, which upstream_answers.py wrote about the pairs of both.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import evaluate
import evaluate_ranks


@dataclass
class Tool:
    """One column of the tables."""

    name: str
    single: Sequence[evaluate.Answer]
    ranks: Sequence[evaluate_ranks.RankAnswer]


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

The rules of plumbline were made with the pairs called "in view" before their eyes. The other groups
(held out, unseen, second, third) were written after the rules stood, and some rules were mended
after their first sight: what plumbline said at that first sight is in [the
verdict](../design/verdict.md#seeded-faults). Upstream's rules knew none of them. Another suite
would show other numbers.
"""


def counts(tools: list[Tool], task: str, ranks: bool) -> list[str]:
    """The table of totals of one task: every group of cases apart, then all."""
    columns = [[answer for answer in (tool.ranks if ranks else tool.single)
                if answer.task == task] for tool in tools]
    groups = list(dict.fromkeys(answer.group for answer in columns[0]))
    lines = ["| Pairs | | " + " | ".join(tool.name for tool in tools) + " |",
             "|---" * (len(tools) + 2) + "|"]
    for group in [*groups, ""]:
        own = [[answer for answer in column if group in ("", answer.group)] for column in columns]
        faults = sum(answer.is_fault for answer in own[0])
        rows = ((f"of {faults} faults: exact", lambda a: a.exact),
                ("within one", lambda a: a.near),
                (f"alarms on {len(own[0]) - faults} noise pairs",
                 lambda a: not a.is_fault and bool(a.named)))
        lines += [f"| {(group or 'all') if at == 0 else ''} | {title} | " + " | ".join(
            str(sum(map(counted, column))) for column in own) + " |"
            for at, (title, counted) in enumerate(rows)]
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


def cases(tools: list[Tool], task: str, ranks: bool) -> list[str]:
    """One line per case."""
    columns = [{answer.case: answer for answer in (tool.ranks if ranks else tool.single)
                if answer.task == task} for tool in tools]
    lines = ["| Pair | " + " | ".join(tool.name for tool in tools) + " |",
             "|---" * (len(tools) + 1) + "|"]
    for name, first in columns[0].items():
        kind = "" if first.is_fault else " (noise)"
        group = f", {first.group}" if first.group != "in view" else ""
        answers = [column.get(name) for column in columns]
        lines.append(f"| {name}{kind}{group} | " + " | ".join(
            cell(answer) if answer else "not asked" for answer in answers) + " |")
    return lines


def main() -> int:
    work, ranks, answers, output = (Path(text).resolve() for text in sys.argv[1:5])
    tools = [Tool("plumbline", evaluate.evaluate(work, []), evaluate_ranks.evaluate(ranks, []))]
    for release, mark, name in (("1.2.2", "plain", "1.2.2"), ("1.2.2", "strict", "1.2.2 red"),
                                ("26.2.0", "plain", "26.2.0"),
                                ("26.2.0", "strict", "26.2.0 errors")):
        path = answers / f"{release}.jsonl"
        tools.append(Tool(name, evaluate.upstream_answers(work, path, mark),
                          evaluate_ranks.upstream_answers(ranks, path, mark)))
    titles = {"tensor": "with tensors", "statistics": "with statistics only"}
    lines = [HEAD, "## Summary"]
    for of_ranks, where in ((False, "One process"), (True, "Several ranks")):
        for task, title in titles.items():
            lines += [f"### {where}, {title}", *counts(tools, task, of_ranks), ""]
    lines += ["## Every pair",
              "`exact`: the first wrong call. Else what is named, `next:` where it is one call "
              "away; `<` in the backward pass; `-`: rightly nothing.", ""]
    for of_ranks, where in ((False, "One process"), (True, "Several ranks")):
        for task, title in titles.items():
            lines += [f"### Pairs: {where.lower()}, {title}", *cases(tools, task, of_ranks), ""]
    output.write_text("\n".join(lines).rstrip() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
