"""What an upstream release says about the pairs that evaluate.py recorded.

    python evaluate.py WORK --pairs PAIRS.json
    UPSTREAM_PYTHON upstream_answers.py PAIRS.json RELEASE ANSWERS.jsonl

Run by the interpreter that holds the release ("1.2.2" or "26.2.0"), which imports it once and forks
for every pair. A release names the call of the first row of its table that it marks. Marks are of
two kinds, answered apart:

| Release | plain | strict |
|---|---|---|
| 1.2.2 | "No" in `Accuracy Reached or Not`, or "Warning" in `Result` | red row |
| 26.2.0 | "error" or "warning" in `Result` | "error" in `Result` |

Answers are appended to ANSWERS.jsonl one by one, so that a run that was stopped goes on.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PAIR_LIMIT_S = 120
RED = "FFFF0000"
NAME_COLUMNS = ("NPU Name", "Bench Name", "Target Name", "Name")
VERDICT_COLUMNS = ("Accuracy Reached or Not", "Result")
Row = dict[str, Any]


def load(release: str) -> Callable[[Path, Path, Path], None]:
    """Imports the release; returns its own comparison of (target, golden, output directory)."""
    if release == "1.2.2":
        from msprobe.pytorch import compare as compare_dumps

        def old(target: Path, golden: Path, out: Path) -> None:
            compare_dumps({"npu_json_path": f"{target}/dump.json",
                           "bench_json_path": f"{golden}/dump.json",
                           "is_print_compare_log": False},
                          output_path=str(out), stack_mode=False, auto_analyze=False)
        return old
    import msprobe.pytorch.compare.pt_compare  # noqa: F401  what the command imports when it runs
    from msprobe.msprobe import main as command

    def newest(target: Path, golden: Path, out: Path) -> None:
        sys.argv = ["msprobe", "compare", "-tp", f"{target}/dump.json", "-gp",
                    f"{golden}/dump.json", "-o", str(out)]
        command()
    return newest


def rows_of(out: Path) -> Iterator[tuple[Row, bool]]:
    """The rows of the one table that was written, in its order, and whether each is red."""
    tables = [*out.rglob("*.xlsx"), *out.rglob("*.csv")]
    if not tables:
        return
    if tables[0].suffix == ".csv":
        with tables[0].open(newline="", encoding="utf-8-sig") as stream:
            yield from ((row, False) for row in csv.DictReader(stream))
        return
    import openpyxl

    header: list[Any] = []
    for cells in openpyxl.load_workbook(tables[0], read_only=True).worksheets[0].iter_rows():
        values = [cell.value for cell in cells]
        if header:
            yield dict(zip(header, values, strict=False)), cells[0].fill.fgColor.rgb == RED
        else:
            header = values


def call_of(row: Row) -> str:
    """The call that a row belongs to."""
    item = next((str(row[key]) for key in NAME_COLUMNS if row.get(key) not in (None, "N/A")), "")
    for part in (".input", ".output", ".parameters", ".kwargs"):
        item = item.split(part)[0]
    return item


def marks_of(row: Row, red: bool) -> set[str]:
    """Which kinds of mark a row bears."""
    verdicts = {str(row.get(column)).strip() for column in VERDICT_COLUMNS}
    marks = {"plain"} if verdicts & {"No", "Warning", "error", "warning"} else set()
    return marks | ({"strict"} if red or "error" in verdicts else set())


def first_marks(out: Path) -> dict[str, str]:
    """The call of the first row with each kind of mark; empty if there is none."""
    first = {"plain": "", "strict": ""}
    for row, red in rows_of(out):
        for mark in marks_of(row, red):
            first[mark] = first[mark] or call_of(row)
    return first


def answer(compare: Callable[[Path, Path, Path], None], pair: dict[str, str], out: Path) -> Row:
    """What the release says about a pair; its failure is its answer."""
    failure = ""
    start = time.monotonic()
    try:
        with contextlib.suppress(SystemExit):
            compare(Path(pair["target"]), Path(pair["golden"]), out)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"[:200]
    seconds = time.monotonic() - start
    marks = first_marks(out) if out.exists() else {"plain": "", "strict": ""}
    if not failure and not any(out.rglob("*")):
        failure = "no table"
    return {"case": pair["case"], "task": pair["task"], "failure": failure,
            "seconds": round(seconds, 2), **marks}


def in_child(work: Callable[[], None]) -> bool:
    """Runs in a forked process group; false when it does not end in time or well."""
    child = os.fork()
    if child == 0:
        os.setsid()
        try:
            work()
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    deadline = time.monotonic() + PAIR_LIMIT_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def main() -> int:
    pairs, release, answers = json.loads(Path(sys.argv[1]).read_text()), sys.argv[2], Path(
        sys.argv[3])
    lines = answers.read_text().splitlines() if answers.exists() else []
    done = {(said["case"], said["task"]) for said in map(json.loads, lines)}
    compare = load(release)
    out = answers.parent / f"tables-{release}"

    def one(pair: dict[str, str]) -> None:
        text = json.dumps(answer(compare, pair, out))
        with answers.open("a") as stream:
            stream.write(text + "\n")

    for pair in pairs:
        if (pair["case"], pair["task"]) in done:
            continue
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        if not in_child(lambda pair=pair: one(pair)):
            with answers.open("a") as stream:
                stream.write(json.dumps({"case": pair["case"], "task": pair["task"],
                                         "failure": "did not end", "seconds": PAIR_LIMIT_S,
                                         "plain": "", "strict": ""}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
