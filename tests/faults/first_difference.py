"""Which call of a recorded case is the first with other bytes: what to expect of a new case.

    python first_difference.py WORK CASE

WORK is the directory of evaluate.py. The bytes know nothing of rounding and of what a call means:
in a case with noise, or where a call is missing or extra, look at the calls around it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluate import record

BEFORE, AFTER = 2, 3  # calls that are listed around the first


def files_of(value: Any) -> Iterator[str]:
    """The names of the tensor files below a value of dump.json."""
    if isinstance(value, dict):
        if "data_name" in value:
            yield value["data_name"]
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from files_of(part)


def sides(rank: Path) -> dict[str, tuple[list[bytes], list[bytes]]]:
    """Of every call, in order: what it took and what it gave."""
    def contents(value: Any) -> list[bytes]:
        return [(rank / "dump_tensor_data" / name).read_bytes() for name in files_of(value)]

    data = json.loads((rank / "dump.json").read_text())["data"]
    return {name: (contents([call.get("input_args") or call.get("input"),
                             call.get("input_kwargs")]), contents(call.get("output")))
            for name, call in data.items()}


def main() -> int:
    work, case = Path(sys.argv[1]).resolve(), sys.argv[2]
    [pair] = record(work, [case])
    golden, target = sides(pair.golden), sides(pair.target)
    told = []
    for name in dict.fromkeys([*golden, *target]):
        if name not in golden or name not in target:
            told.append((name, "only in " + ("golden" if name in golden else "the case")))
            continue
        words = [f"{word} differ" for word, one, other in
                 zip(("inputs", "results"), golden[name], target[name], strict=True)
                 if one != other]
        told.append((name, ", ".join(words) or "equal"))
    first = next((at for at, (_, word) in enumerate(told) if word != "equal"), None)
    if first is None:
        print(f"{case}: every call is equal, byte for byte")
        return 1
    for name, word in told[max(first - BEFORE, 0):first + AFTER]:
        print(f"{name:50} {word}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
