"""Time and peak memory of a whole comparison of many statistics rows, per result format.

    python benchmarks/end_to_end/report_speed.py [--rows N ...] [--formats F ...] [--upstream]

The two dumps are generated (fixed seed): forward calls of two inputs and one output, each a tensor
with four statistics, with noise in the last digits and one wrong call. Before a figure is printed,
the tables that were written must have one row per compared value. --upstream also runs releases
1.2.2 and 26.2.0 on the dumps of at most 40,000 rows. Below 100 rows plumbline's time is that until
the first line of its answer.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path

import compare_speed
import overhead
import tools_under_test as tut

ROWS_OF_CALL = 3
MOST_FOR_UPSTREAM = 40_000


def tensor(rng: random.Random, noise: float, factor: float) -> str:
    """One recorded tensor; `noise` perturbs the statistics relatively."""
    values = [rng.uniform(1, 4), rng.uniform(-4, -1), rng.uniform(-1, 1), rng.uniform(10, 99)]
    wobble = random.Random(rng.random())
    texts = [repr(v * factor * (1 + noise * wobble.uniform(-1, 1))) for v in values]
    return ('{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 128, 256], '
            f'"Max": {texts[0]}, "Min": {texts[1]}, "Mean": {texts[2]}, "Norm": {texts[3]}, '
            '"requires_grad": true}')


def make_dump(folder: Path, rows: int, noise: float) -> None:
    """Writes dump.json and stack.json of `rows` values."""
    folder.mkdir(parents=True)
    rng, calls = random.Random(5), rows // ROWS_OF_CALL
    frame = "File /home/user/model.py, line {}, in forward, \n y = linear(x, w)"
    with (folder / "dump.json").open("w") as out, (folder / "stack.json").open("w") as stacks:
        out.write('{"task": "statistics", "level": "L1", "framework": "pytorch", '
                  f'"dump_data_dir": "{folder}", "data": {{')
        stacks.write("{")
        for i in range(calls):
            name = f"Functional.linear.{i}.forward"
            wrong = 1.5 if noise and i == calls // 2 else 1
            values = [tensor(rng, noise, factor) for factor in (1, 1, wrong)]
            out.write(f'{"," if i else ""}\n"{name}": {{"input_args": [{values[0]}, {values[1]}], '
                      f'"input_kwargs": {{}}, "output": [{values[2]}]}}')
            stack = [frame.format(line + i % 50) for line in (10, 20, 30)]
            stacks.write(f'{"," if i else ""}\n"{name}": {json.dumps(stack)}')
        out.write("}}")
        stacks.write("}")


def dumps(folder: Path, rows: int) -> tuple[Path, Path]:
    """Target and golden of `rows` rows, made when missing."""
    pair = folder / str(rows) / "target", folder / str(rows) / "golden"
    for side, noise in zip(pair, (1e-8, 0.0), strict=True):
        if not (side / "dump.json").exists():
            make_dump(side, rows, noise)
    return pair


def rows_of(path: Path) -> int:
    """Rows of one result file, counted by an independent reader."""
    if path.suffix == ".csv":
        with path.open(newline="") as stream:
            return sum(1 for _ in csv.reader(stream)) - 1
    if path.suffix == ".db":
        with sqlite3.connect(path) as database:
            return database.execute("SELECT count(*) FROM rows").fetchone()[0]
    if path.suffix == ".xlsx":
        import openpyxl

        book = openpyxl.load_workbook(path, read_only=True)
        return sum(1 for sheet in book for _ in sheet.rows) - len(book.sheetnames)
    if path.suffix == ".jsonl":
        with path.open() as stream:
            return sum(1 for _ in stream) - 1
    if path.suffix == ".json":
        return len(json.loads(path.read_text())["rows"])
    return 0  # a page or a log does not hold every row


def run(command: list[str], first_line: bool = False) -> tuple[float, float, float]:
    """Seconds, until the first line of output on request, CPU seconds, and MiB at the peak."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
    assert child.stdout is not None
    child.stdout.readline()
    seconds = time.perf_counter() - began
    child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)  # of this child alone
    if status != 0:
        raise SystemExit(f"{command}: status {status}")
    if not first_line:
        seconds = time.perf_counter() - began
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure(plumb: str, pair: tuple[Path, Path], formats: str, out: Path, rows: int) -> dict:
    """Median of three runs (seven of small ones). Checks what was written."""
    times: list[float] = []
    cpu: list[float] = []
    peak = 0.0
    for _ in range(3 if rows > 100_000 else 7):
        shutil.rmtree(out, ignore_errors=True)
        command = [plumb, "compare", *map(str, pair), "-o", str(out), "--format", formats]
        seconds, cpu_seconds, peak = run(command, first_line=rows < 100)
        times.append(seconds)
        cpu.append(cpu_seconds)
    rows -= rows % ROWS_OF_CALL  # the recordings hold whole calls
    for path in out.iterdir():
        if rows_of(path) not in (0, rows):
            raise SystemExit(f"{path}: {rows_of(path)} rows (expected {rows})")
    return {"benchmark": "report_speed", "tool": "plumbline", "rows": rows, "formats": formats,
            "median_s": round(statistics.median(times), 4), "best_s": round(min(times), 4),
            "cpu_s": round(min(cpu), 4), "peak_mib": round(peak)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[30, 39_999, 999_999])
    parser.add_argument("--formats", nargs="+",
                        default=["xlsx", "csv", "sqlite", "csv,sqlite", "xlsx,csv,json,html"])
    parser.add_argument("--plumb", default=str(Path(sys.executable).with_name("plumb")))
    parser.add_argument("--upstream", action="store_true")
    parser.add_argument("--dumps", type=Path, default=tut.ROOT / "build/bench/many_rows")
    parser.add_argument("--json", type=Path, help="append JSON lines here")
    args = parser.parse_args()
    about, out = overhead.machine(), args.dumps / "out"
    results = []
    for rows in args.rows:
        pair = dumps(args.dumps, rows)
        for formats in args.formats:
            results.append(measure(args.plumb, pair, formats, out, rows))
            print(json.dumps(results[-1]), flush=True)
        if not args.upstream or rows > MOST_FOR_UPSTREAM:
            continue
        for tool in compare_speed.TOOLS[1:]:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            seconds, _, _ = run(compare_speed.command_of(tool, *pair, out))
            results.append({"benchmark": "report_speed", "tool": tool, "rows": rows,
                            "formats": "its own", "median_s": round(seconds, 3),
                            "rows_written": compare_speed.rows_in(out)})
            print(json.dumps(results[-1]), flush=True)
    overhead.append_json(args.json, about, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
