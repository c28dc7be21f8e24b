"""Wall time of a whole `plumb compare` and of upstream's compare on the same dumps.

    python benchmarks/end_to_end/compare_speed.py [--dumps DIR] [--tool T ...] [--json FILE]

DIR holds <mode>/{a,b} as make_dumps.py writes them; missing ones are made with upstream 1.2.2. All
files are read once first, so that every tool finds them in the page cache. Before a time is
printed, the tool's result table must have the expected number of rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import overhead
import tools_under_test as tut

MODES = ("mix_stat", "mix_md5", "L1_tensor")
TOOLS = ("plumbline", "upstream-1.2.2", "upstream-26.2.0")
# Both workbooks hold one row per compared value; upstream's count is the reference.
REPEATS = {"plumbline": 7, "upstream-1.2.2": 3, "upstream-26.2.0": 3}


def rank_of(dumps: Path, mode: str, side: str) -> Path:
    """The rank directory of one recording."""
    [path] = (dumps / mode / side).glob("step0/*/dump.json")
    return path.parent


def warm_up(folder: Path) -> int:
    """Reads every file below `folder` and returns the bytes."""
    return sum(len(path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def command_of(tool: str, target: Path, golden: Path, out: Path) -> list[str]:
    """The command line that compares two dumps with `tool`."""
    python = Path(tut.python_of(tool))
    if tool == "plumbline":
        return [str(python.with_name("plumb")), "compare", str(target), str(golden), "-o", str(out)]
    if tool == "upstream-26.2.0":
        return [str(python.with_name("msprobe")), "compare", "-tp", str(target / "dump.json"),
                "-gp", str(golden / "dump.json"), "-o", str(out)]
    request = out / "compare.json"
    request.write_text(json.dumps({
        "npu_path": str(target / "dump.json"), "bench_path": str(golden / "dump.json"),
        "stack_path": str(target / "stack.json"), "is_print_compare_log": False}))
    request.chmod(0o640)
    return [str(python.with_name("msprobe")), "-f", "pytorch", "compare", "-i", str(request),
            "-o", str(out), "-s"]


def rows_in(out: Path) -> int:
    """Rows of the result table that a tool left in `out`, without the header."""
    for path in sorted(out.glob("compare_result*.csv")):
        with path.open(newline="") as stream:
            return sum(1 for _ in csv.reader(stream)) - 1
    for path in sorted(out.glob("compare_result*.xlsx")):
        import openpyxl

        book = openpyxl.load_workbook(path, read_only=True)
        return sum(1 for _ in book.active.rows) - 1
    return 0


def measure(tool: str, mode: str, dumps: Path, out: Path) -> dict:
    """Times one tool on one mode; raises RuntimeError if it leaves no result."""
    target, golden = rank_of(dumps, mode, "b"), rank_of(dumps, mode, "a")
    size = warm_up(target) + warm_up(golden)
    times = []
    for _ in range(REPEATS[tool]):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        command = command_of(tool, target, golden, out)
        began = time.perf_counter()
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        times.append(time.perf_counter() - began)
        if done.returncode != 0:
            raise RuntimeError(f"{tool} {mode}: status {done.returncode}: {done.stderr[-500:]}")
    median = statistics.median(times)
    answer = done.stdout.splitlines()[0] if tool == "plumbline" and done.stdout else ""
    return {"benchmark": "compare_speed", "tool": tool, "mode": mode, "unit": "s",
            "median": round(median, 4), "rows": rows_in(out), "bytes": size, "answer": answer,
            "mad": round(statistics.median(abs(value - median) for value in times), 4)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", action="append", choices=TOOLS)
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--dumps", type=Path, default=tut.ROOT / "build/bench/dumps")
    parser.add_argument("--out", type=Path, default=tut.ROOT / "build/bench/compare")
    parser.add_argument("--json", type=Path, help="append JSON lines here")
    args = parser.parse_args()
    missing = [mode for mode in args.mode or MODES if not (args.dumps / mode / "b").is_dir()]
    if missing:
        maker = Path(__file__).with_name("make_dumps.py")
        wanted = [word for mode in missing for word in ("--mode", mode)]
        subprocess.run([tut.python_of("upstream-1.2.2"), maker, "--tool", "upstream",
                        "--out", args.dumps, *wanted], check=True)
    failures, about = 0, overhead.machine()
    for mode in args.mode or MODES:
        rows = set()
        for tool in args.tool or TOOLS:
            try:
                result = measure(tool, mode, args.dumps.resolve(), args.out.resolve() / tool)
            except RuntimeError as error:
                print(f"error: {error}", file=sys.stderr)
                failures += 1
                continue
            rows.add(result["rows"])
            print(f"{mode:10} {tool:16} {result['median']:8.3f} +- {result['mad']:.3f} s"
                  f"  {result['rows']} rows  {result['answer']}", flush=True)
            overhead.append_json(args.json, about, [result])
        if len(rows) > 1 or 0 in rows:
            print(f"error: {mode}: tables of {sorted(rows)} rows", file=sys.stderr)
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
