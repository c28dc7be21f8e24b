"""Step time of the reference model with task grad_probe, divided by the step time without it.

    python benchmarks/end_to_end/grad_probe_overhead.py [--tool T ...] [--level L ...] [--blocks N]

A process that records and one that does not take turns, a block of steps each. A block ends when
its files are written, so that what is written in the background counts. The ratio is the median
over pairs of blocks. Before it is printed, the files of the last step are read back: every
parameter has a row, and its signs are those of the gradient.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import tools_under_test as tut

TOOLS = ("plumbline", "plumbline-packed", "upstream-1.2.2")
LEVELS = ("L2", "L1", "L0")
STEPS = 4  # of a block


def make_debugger(tool: str, level: str, work: Path) -> object:
    """The debugger of a tool, with task grad_probe."""
    section = {"grad_level": level, "param_list": [], "bounds": [-1, 0, 1]}
    if tool == "plumbline-packed":
        section["packed"] = True
    config = work / "config.json"
    config.write_text(json.dumps({"task": "grad_probe", "dump_path": str(work / "dump"),
                                  "rank": [], "step": [], "grad_probe": section}))
    config.chmod(0o640)
    if tool.startswith("upstream"):
        from msprobe.pytorch import PrecisionDebugger
    else:
        from plumbline.pytorch import PrecisionDebugger
    return PrecisionDebugger(str(config))


def worker(tool: str, level: str, work: Path) -> None:
    """Runs a block of steps per line on standard input; answers with the seconds of a step."""
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2) if not os.environ.get("BENCH_SHOW_ERRORS") else None
    import reference_model

    training = reference_model.build()
    debugger = None
    if tool != "none":
        debugger = make_debugger(tool, level, work)
        debugger.monitor(training.model)
    print("ready", file=answers, flush=True)
    count = 0
    for _ in sys.stdin:
        began = time.perf_counter()
        for _ in range(STEPS):
            training.forward_backward(count)
            if debugger is not None and count % STEPS == STEPS - 1:
                kept = {name: parameter.grad.numpy().copy()
                        for name, parameter in training.model.named_parameters()}
            training.update()
            count += 1
        if tool.startswith("plumbline"):
            debugger.stop()  # waits for the files
        seconds = (time.perf_counter() - began) / STEPS
        if debugger is not None:
            check(level, tool, work / "dump" / "rank0", count - 1, kept)
            shutil.rmtree(work / "dump" / "rank0" / f"step{count - 1}", ignore_errors=True)
        print(json.dumps({"s": seconds}), file=answers, flush=True)


def check(level: str, tool: str, rank: Path, step: int, gradients: dict[str, np.ndarray]) -> None:
    """Raises AssertionError if a step's files do not say what its gradients are."""
    with (rank / f"grad_summary_{step}.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["param_name"]: row for row in csv.DictReader(file)}
    assert list(rows) == list(gradients), f"{len(rows)} rows"
    for name, gradient in gradients.items():
        assert float(rows[name]["max"]) == gradient.max(), name
        if level == "L2":
            assert float(rows[name]["(0, 1]"]) == ((gradient > 0) & (gradient <= 1)).mean(), name
        if level != "L0" and tool != "plumbline-packed":
            signs = np.load(rank / f"step{step}" / f"{name}.npy")
            assert (signs == (gradient > 0)).all(), name


class Worker(tut.WorkerProcess):
    """A worker process."""

    def __init__(self, tool: str, level: str, work: Path) -> None:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        super().__init__([tut.python_of(tool), "-W", "ignore", __file__, "--worker", tool,
                          "--level", level, "--work", str(work)], f"{tool} {level}")

    def block(self) -> float:
        """Seconds of a step, over a block of them."""
        time.sleep(0.02)  # lets the other process's idle threads fall asleep
        return json.loads(self.ask("go"))["s"]


def measure(tool: str, level: str, blocks: int, work: Path) -> dict:
    """One tool at one level against no tool."""
    variant, base = Worker(tool, level, work / "tool"), Worker("none", level, work / "none")
    pairs = []
    try:
        variant.block(), base.block()
        for _ in range(blocks):
            pairs.append((base.block(), variant.block()))
    finally:
        variant.close()
        base.close()
        shutil.rmtree(work, ignore_errors=True)
    ratios = [with_tool / without for without, with_tool in pairs]
    ratio = statistics.median(ratios)
    spread = statistics.median(abs(value - ratio) for value in ratios)
    return {"benchmark": "grad_probe_overhead", "tool": tool, "level": level,
            "ratio": round(ratio, 4), "mad": round(spread, 4), "noisy": spread > 0.03 * ratio,
            "base_ms": round(1e3 * statistics.median(pair[0] for pair in pairs), 1),
            "tool_ms": round(1e3 * statistics.median(pair[1] for pair in pairs), 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", action="append", choices=TOOLS)
    parser.add_argument("--level", action="append", choices=LEVELS)
    parser.add_argument("--blocks", type=int, default=10, help="pairs of blocks (upstream: half)")
    parser.add_argument("--work", type=Path, default=tut.ROOT / "build/bench/grad_probe")
    parser.add_argument("--json", type=Path, help="append JSON lines here")
    parser.add_argument("--worker", choices=(*TOOLS, "none"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, args.level[0], args.work)
        return 0
    for level in args.level or LEVELS:
        for tool in args.tool or TOOLS:
            if tool == "plumbline-packed" and level == "L0":
                continue
            blocks = max(2, args.blocks // 2) if tool.startswith("upstream") else args.blocks
            result = measure(tool, level, blocks, args.work)
            print(f"{level} {tool:18} {result['ratio']:.3f} x {result['base_ms']} ms"
                  f"{' (noisy)' if result['noisy'] else ''}", flush=True)
            if args.json:
                with args.json.open("a") as file:
                    file.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
