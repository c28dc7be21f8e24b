"""Microseconds per recorded call at L1 with call stacks, for tensors of four elements.

    python benchmarks/end_to_end/tiny_loop.py [--tool T ...] [--mode M] [--calls N] [--json FILE]

Here the numbers cost nothing, so that what remains is the recorder's own work per call. The same
loop is timed without recorder and subtracted. Timed is everything from start to the written step.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import overhead
import tools_under_test as tut

TOOLS = ("plumbline", "upstream-1.2.2", "upstream-26.2.0")
REPEATS = 5


def loop(calls: int, one: Any, other: Any) -> None:
    """`calls` recorded calls of four kinds."""
    import torch

    for _ in range(calls // 4):
        torch.mul(one, other)
        torch.relu(one)
        torch.add(one, other, alpha=0.5)
        torch.sum(one)


def worker(tool: str, mode: str, calls: int, work: Path) -> dict:
    """Times the loop with and without recorder in this process."""
    import os

    import torch
    from transformers import LlamaForCausalLM  # noqa: F401  what a real script has imported

    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    torch.set_num_threads(1)
    one, other = torch.ones(4), torch.full((4,), 2.0)
    bare = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        loop(calls, one, other)
        bare.append(time.perf_counter() - began)
    recorder = tut.make_recorder(tool, mode, work)
    recorded = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        recorder.start(None)
        loop(calls, one, other)
        recorder.stop()
        recorder.step()
        recorded.append(time.perf_counter() - began)
    costs = [1e6 * (seconds - statistics.median(bare)) / calls for seconds in recorded[1:]]
    median = statistics.median(costs)
    os.dup2(answers, 1)
    return {"benchmark": "tiny_loop", "tool": tool, "mode": mode, "calls": calls,
            "unit": "us per call", "median": round(median, 3),
            "mad": round(statistics.median(abs(cost - median) for cost in costs), 3)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", action="append", choices=TOOLS)
    parser.add_argument("--mode", default="L1", choices=("L1", "L1_md5", "L1_overflow", "L1_nan"))
    parser.add_argument("--calls", type=int, help="default 20000; upstream 1000")
    parser.add_argument("--work", type=Path, default=tut.ROOT / "build/bench/tiny")
    parser.add_argument("--json", type=Path, help="append JSON lines here")
    parser.add_argument("--worker", choices=TOOLS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(worker(args.worker, args.mode, args.calls, args.work)))
        return 0
    failures = 0
    for tool in args.tool or TOOLS:
        calls = args.calls or (20000 if tool == "plumbline" else 1000)
        work = args.work / tool
        command = [tut.python_of(tool), "-W", "ignore", __file__, "--worker", tool,
                   "--mode", args.mode, "--calls", str(calls), "--work", str(work)]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        if done.returncode != 0:
            print(f"error: {tool}: {done.stderr.strip()[-500:]}", file=sys.stderr)
            failures += 1
            continue
        result = json.loads(done.stdout.splitlines()[-1])
        entries = tut.entries_of(work / "dump" / f"step{REPEATS - 1}")
        expected = 0 if args.mode == "L1_overflow" else calls  # nothing to find
        if tool != "upstream-26.2.0" and entries != expected:
            print(f"error: {tool}: {entries} entries (expected {expected})", file=sys.stderr)
            failures += 1
            continue
        print(f"{tool:16} {args.mode:12} {result['median']:9.2f} +- {result['mad']:.2f} us "
              f"per recorded call  ({entries} entries)", flush=True)
        overhead.append_json(args.json, overhead.machine(), [result])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
