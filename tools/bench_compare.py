"""Compares two benchmark result files, JSON lines each.

    python tools/bench_compare.py OLD NEW

A case is slower if its figure grew by more than 5 % and by more than twice the larger spread. The
figure is `median` or `ratio`, less is better; `per_second` figures are better the larger they are.
Exit 1 if any case is slower. Cases in one file only are listed.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

TOLERANCE = 0.05
IDENTITY = ("benchmark", "case", "tool", "mode", "dtype", "size", "target", "threads")


@dataclass(frozen=True)
class Figure:
    """One measured value; `cost` grows when things get worse."""

    cost: float
    relative_spread: float


def read(path: Path) -> dict[str, Figure]:
    """Cases of one file by name; the last line of a case counts."""
    found = {}
    for line in path.read_text().splitlines():
        if not line.strip():
            continue
        result = json.loads(line)
        name = " ".join(str(result[key]) for key in IDENTITY if key in result)
        value = next(result[key] for key in ("median", "ratio", "per_second") if key in result)
        cost = 1 / value if "per_second" in result else value
        found[name] = Figure(cost, result.get("mad", 0.0) / value if value else 0.0)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    args = parser.parse_args()
    old, new = read(args.old), read(args.new)
    slower = 0
    for name in sorted(old.keys() & new.keys()):
        change = new[name].cost / old[name].cost
        spread = max(old[name].relative_spread, new[name].relative_spread)
        is_slower = change > 1 + TOLERANCE and change > 1 + 2 * spread
        slower += is_slower
        print(f"{change:7.3f}  {'SLOWER' if is_slower else '      '}  {name}")
    for name in sorted(old.keys() ^ new.keys()):
        print(f"      -  only in {'OLD' if name in old else 'NEW'}  {name}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
