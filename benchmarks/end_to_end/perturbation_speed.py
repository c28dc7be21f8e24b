"""Step time of the reference model with the perturbation check, divided by that without.

    python benchmarks/end_to_end/perturbation_speed.py [--case NAME ...] [--steps N] [--layers N]

Plumbline, release 1.2.2 of upstream, where it is installed, and a bare run each have a process of
their own and take turns step by step. Before a ratio is printed, plumbline's run must have compared
enough calls and have left the loss as it is without, bit for bit. Times are of the processor: other
programs disturb them less. The first step, which explains most, is left out.
The last lines are JSON, one per case.
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
from typing import Any

import tools_under_test as tut

CASES: dict[str, dict[str, Any]] = {
    "add_noise": {"pert_mode": "add_noise"},
    "bit_noise": {"pert_mode": "bit_noise"},
    "no_change": {"pert_mode": "no_change"},
    "backward bit_noise": {"pert_mode": "bit_noise", "fuzz_stage": "backward"},
}
LEAST_CALLS = 100  # per step, of 436
TOOLS = ("none", "plumbline", "upstream-1.2.2")


def worker(tool: str, section: dict[str, Any], work: Path, layers: int) -> None:
    """Steps once per line on standard input: "on" or "off"; answers with seconds and loss."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.environ["OMP_WAIT_POLICY"] = "passive"  # three processes share the machine
    import reference_model  # imports transformers, which must precede the recorder

    config = work / "config.json"
    config.write_text(json.dumps({"task": "free_benchmark", "dump_path": str(work / "out"),
                                  "rank": [], "step": [], "level": "L1",
                                  "free_benchmark": {"scope": [], "list": [],
                                                     "fuzz_device": "npu",
                                                     "handler_type": "check", "fuzz_level": "L1",
                                                     "if_preheat": False, **section}}))
    debugger = None
    if tool == "plumbline":
        from plumbline.pytorch import PrecisionDebugger
        debugger = PrecisionDebugger(str(config))
    elif tool != "none":
        from msprobe.pytorch import PrecisionDebugger as Upstream
        debugger = Upstream(str(config))
    training = reference_model.build(layers=layers)
    print("ready", file=answers, flush=True)
    for count, line in enumerate(sys.stdin):
        active = debugger if line.strip() == "on" else None
        began = time.process_time()
        if active is not None:
            active.start()
        loss = training.forward_backward(count)
        if active is not None:
            active.stop()
        training.update()
        if active is not None:
            active.step()
        print(json.dumps({"s": time.process_time() - began, "loss": loss.hex()}), file=answers,
              flush=True)


class Worker(tut.WorkerProcess):
    """One worker process."""

    def __init__(self, tool: str, section: dict[str, Any], work: Path, layers: int) -> None:
        self.work = work
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        super().__init__([tut.python_of(tool), "-W", "ignore", __file__, "--worker", tool,
                          "--section", json.dumps(section), "--work", str(work), "--layers",
                          str(layers)], tool)

    def step(self, word: str) -> Any:
        return json.loads(self.ask(word))


def calls_of(work: Path) -> int:
    """Calls that plumbline compared."""
    [path] = work.glob("out/rank*/free_benchmark_summary.csv")
    with path.open(newline="") as table:
        return sum(int(row["calls"]) for row in csv.DictReader(table))


def measure(name: str, steps: int, layers: int, root: Path) -> dict[str, Any]:
    """The ratios of one case."""
    section = CASES[name]
    names = TOOLS if (tut.ROOT / "build/upstream/1.2.2").exists() else TOOLS[:2]
    workers = {tool: Worker(tool, section, root / tool, layers) for tool in names}
    seconds: dict[str, list[float]] = {tool: [] for tool in names}
    for index in range(steps + 1):
        bare = workers["none"].step("off")
        own = workers["plumbline"].step("on")
        if bare["loss"] != own["loss"]:
            raise RuntimeError(f"{name}: step {index}: the loss is {own['loss']} with the check "
                               f"and {bare['loss']} without")
        times = {"none": bare, "plumbline": own}
        if "upstream-1.2.2" in workers:
            times["upstream-1.2.2"] = workers["upstream-1.2.2"].step("on")
        if index > 0:
            for tool, answer in times.items():
                seconds[tool].append(answer["s"])
    for one in workers.values():
        one.close()
    calls = calls_of(workers["plumbline"].work)
    if calls < LEAST_CALLS * (steps + 1) * layers // 4:
        raise RuntimeError(f"{name}: {calls} calls compared in {steps + 1} steps")
    result: dict[str, Any] = {"benchmark": "perturbation", "case": name, "steps": steps,
                              "layers": layers, "calls": calls // (steps + 1)}
    for tool in names[1:]:
        ratios = [own / bare for own, bare in zip(seconds[tool], seconds["none"], strict=True)]
        result[tool] = round(statistics.median(ratios), 3)
        result[f"{tool} mad"] = round(statistics.median(
            abs(ratio - result[tool]) for ratio in ratios), 3)
    result["base_ms"] = round(1e3 * statistics.median(seconds["none"]), 1)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=tuple(CASES))
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--work", type=Path, default=tut.ROOT / "build/bench/perturbation")
    parser.add_argument("--worker", choices=TOOLS, help=argparse.SUPPRESS)
    parser.add_argument("--section", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, json.loads(args.section), args.work, args.layers)
        return 0
    results = [measure(name, args.steps, args.layers, args.work) for name in args.case or CASES]
    print(f"{'':22}{'plumbline':>12}{'1.2.2':>12}{'calls':>8}{'base ms':>10}")
    for result in results:
        print(f"{result['case']:22}{result['plumbline']:>12.2f}"
              f"{result.get('upstream-1.2.2', float('nan')):>12.2f}{result['calls']:>8}"
              f"{result['base_ms']:>10.0f}")
    for result in results:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
