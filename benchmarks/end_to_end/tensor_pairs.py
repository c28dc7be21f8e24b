"""Time of a whole comparison of many tensors, next to upstream, and what the verdicts add to it.

    python benchmarks/end_to_end/tensor_pairs.py [--pairs 400] [--mib 4] [--upstream]
        [--verdict-share build/release/benchmarks/compare/verdict_share]

Two recordings of task tensor are made (fixed seed): calls of one input and one output, float32,
which differ in the last digits; one output is 1.5 times the golden one. All files are read once
first, so that they are in the page cache. Before a time is printed, the answer must name that call
and the table must have one row per pair. --upstream also runs releases 1.2.2 and 26.2.0.

The second result is of files that are on disk only: plumbline's time, and that of reading the same
files one after the other. Skipped, with a line that says so, where files stay in the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import compare_speed
import numpy
import overhead
import report_speed
import tools_under_test as tut
import torch


def record_of(values: numpy.ndarray, name: str) -> dict:
    """The tensor object of a dump.json."""
    wide = values.astype(numpy.float64)
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(values.shape),
            "Max": float(values.max()), "Min": float(values.min()), "Mean": float(wide.mean()),
            "Norm": float(numpy.float32(numpy.sqrt((wide * wide).sum()))),
            "requires_grad": False, "data_name": name}


def make_side(folder: Path, pairs: int, mib: float, is_target: bool) -> None:
    """Writes one recording of `pairs` tensors of `mib` MiB."""
    tensors = folder / "dump_tensor_data"
    tensors.mkdir(parents=True)
    random = numpy.random.default_rng(7)
    base = random.standard_normal(int(mib * (1 << 18)), dtype=numpy.float32)
    wobble = random.standard_normal(base.size, dtype=numpy.float32)
    data, calls = {}, pairs // 2
    for i in range(calls):
        call = f"Functional.relu.{i}.forward"
        items = []
        for part in ("input.0", "output.0"):
            is_wrong = is_target and part == "output.0" and i == calls // 2
            factor = (1 + len(items) + i / calls) * (1.5 if is_wrong else 1)
            values = base * numpy.float32(factor)
            if is_target:
                values = values * (1 + numpy.float32(3e-8) * wobble)
            name = f"{call}.{part}.pt"
            torch.save(torch.from_numpy(values.reshape(-1, 256)), tensors / name)
            items.append(record_of(values.reshape(-1, 256), name))
        data[call] = {"input_args": items[:1], "input_kwargs": {}, "output": items[1:]}
    (folder / "dump.json").write_text(json.dumps(
        {"task": "tensor", "level": "L1", "framework": "pytorch",
         "dump_data_dir": str(tensors), "data": data}))
    (folder / "stack.json").write_text(json.dumps(
        {call: ["File model.py, line 1, in forward, \n y = f(x)"] for call in data}))


def recordings(folder: Path, pairs: int, mib: float) -> tuple[Path, Path]:
    """Target and golden, made when missing."""
    sides = tuple(folder / f"{pairs}x{mib:g}" / side for side in ("target", "golden"))
    for side in sides:
        if not (side / "dump.json").exists():
            shutil.rmtree(side, ignore_errors=True)
            make_side(side, pairs, mib, is_target=side.name == "target")
    return sides[0], sides[1]


def measure(plumb: str, sides: tuple[Path, Path], out: Path, pairs: int) -> dict:
    """Median of five runs. Checks the answer and the table."""
    runs = []
    command = [plumb, "compare", *map(str, sides), "-o", str(out), "--format", "csv"]
    for _ in range(5):
        shutil.rmtree(out, ignore_errors=True)
        runs.append(report_speed.run(command))
    answer = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    rows = compare_speed.rows_in(out)
    if rows != pairs or f"Functional.relu.{pairs // 4}.forward" not in answer.splitlines()[0]:
        raise SystemExit(f"wrong answer: {rows} rows, {answer.splitlines()[0]}")
    seconds, cpu_seconds, _ = zip(*runs, strict=True)
    return {"benchmark": "tensor_pairs", "tool": "plumbline", "pairs": pairs,
            "median_s": round(statistics.median(seconds), 4), "best_s": round(min(seconds), 4),
            "cpu_s": round(min(cpu_seconds), 4)}


def evict(sides: tuple[Path, Path]) -> None:
    """Takes the files out of the page cache."""
    for path in (path for side in sides for path in side.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure_cold(plumb: str, sides: tuple[Path, Path], out: Path, pairs: int) -> dict | None:
    """Best of three runs from disk; nothing where files cannot be taken out of the page cache."""
    command = [plumb, "compare", *map(str, sides), "-o", str(out), "--format", "csv"]
    seconds, reading = [], []
    for _ in range(3):
        evict(sides)
        began = time.perf_counter()
        for side in sides:
            compare_speed.warm_up(side)
        reading.append(time.perf_counter() - began)
        began = time.perf_counter()
        for side in sides:
            compare_speed.warm_up(side)
        if reading[-1] < 1.5 * (time.perf_counter() - began):
            print("cold files: not measured, they stay in the page cache", flush=True)
            return None
        evict(sides)
        shutil.rmtree(out, ignore_errors=True)
        seconds.append(report_speed.run(command)[0])
        if compare_speed.rows_in(out) != pairs:
            raise SystemExit(f"wrong answer: {compare_speed.rows_in(out)} rows")
    return {"benchmark": "tensor_pairs_cold", "tool": "plumbline", "pairs": pairs,
            "best_s": round(min(seconds), 3), "reading_alone_s": round(min(reading), 3)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--mib", type=float, default=4)
    parser.add_argument("--plumb", default=str(Path(sys.executable).with_name("plumb")))
    parser.add_argument("--upstream", action="store_true")
    parser.add_argument("--verdict-share", help="the program of benchmarks/compare")
    parser.add_argument("--dumps", type=Path, default=tut.ROOT / "build/bench/tensor_pairs")
    parser.add_argument("--json", type=Path, help="append JSON lines here")
    args = parser.parse_args()
    args.pairs -= args.pairs % 4
    out = args.dumps / "out"
    sides = recordings(args.dumps, args.pairs, args.mib)
    size = sum(compare_speed.warm_up(side) for side in sides)
    results = [{**measure(args.plumb, sides, out, args.pairs), "bytes": size}]
    if cold := measure_cold(args.plumb, sides, out, args.pairs):
        results.append(cold)
    for side in sides:
        compare_speed.warm_up(side)
    for tool in compare_speed.TOOLS[1:] if args.upstream else ():
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        seconds, _, _ = report_speed.run(compare_speed.command_of(tool, *sides, out))
        results.append({"benchmark": "tensor_pairs", "tool": tool, "pairs": args.pairs,
                        "median_s": round(seconds, 3), "rows": compare_speed.rows_in(out)})
    if args.verdict_share:
        done = subprocess.run([args.verdict_share, *map(str, sides), str(out), "5", "csv"],
                              text=True, capture_output=True, check=True)
        results.append(json.loads(done.stdout))
    about = overhead.machine()
    for result in results:
        print(json.dumps(result), flush=True)
        overhead.append_json(args.json, about, [result])
    return 0


if __name__ == "__main__":
    sys.exit(main())
