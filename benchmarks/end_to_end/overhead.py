"""Step time of the reference model with a recorder, divided by the step time without one.

    python benchmarks/end_to_end/overhead.py [--tool T ...] [--mode M ...] [--steps N]

Steps with and without recorder take turns, so that a drift of the machine hits both; the ratio is
the median over the pairs. Timed is the whole step: start, forward, backward, stop, optimizer,
step(). A recorder that leaves nothing behind outside its window is paired with steps of the same
process, which cancels that processes differ by some percent in their luck with memory; upstream
patches at construction and is paired with a second process. --pairing overrides this.

Before a ratio is printed, the last recorded step must hold the number of entries that
EXPECTED_ENTRIES gives. Writes a table to standard output and JSON lines to --json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import tools_under_test as tut

# Entries of one step of the reference model. plumbline must record what release 1.2.2 records, but
# for the 110 Tensor.view_as at mix that upstream's own hooks make (docs/formats/differences.md);
# release 26.2.0 leaves out calls that it ranks as harmless.
EXPECTED_ENTRIES = {
    "upstream-1.2.2": {"L0": 151, "L1": 436, "mix": 697},
    "upstream-26.2.0": {"L0": 152, "L1": 311, "mix": 463},
}
EXPECTED_ENTRIES["plumbline"] = {"L0": 151, "L1": 436, "mix": 151 + 436}

ALL_MODES = ("closed", *tut.MODES)
MODES_OF = {"none": ("none",), "debugmode": ("plain", "hashes")}
WARM_UP_STEPS = 2
PAUSE_S = 0.02  # lets the other process's idle threads fall asleep


def worker(tool: str, mode: str, work: Path) -> None:
    """Steps once per line on standard input and answers with the seconds the step took.

    The line "off" asks for a step without any call of the recorder.
    """
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2) if not os.environ.get("BENCH_SHOW_ERRORS") else None
    import reference_model  # imports transformers, which must precede the recorder

    recorder = tut.make_recorder(tool, mode, work)
    training = reference_model.build()
    print("ready", file=answers, flush=True)
    bare, recorded = tut.NoRecorder(), 0
    for count, line in enumerate(sys.stdin):
        active = bare if line.strip() == "off" else recorder
        began = time.perf_counter()
        active.start(training.model)
        training.forward_backward(count)
        active.stop()
        training.update()
        active.step()
        seconds = time.perf_counter() - began
        if active is recorder:
            # Only the newest step is kept: tensor steps take 660 MB each. With async_dump the last
            # ones may still be written.
            old = recorded - (6 if mode.endswith("_async") else 1)
            shutil.rmtree(work / "dump" / f"step{old}", ignore_errors=True)
            recorded += 1
        print(json.dumps({"s": seconds, "records": getattr(recorder, "records", 0)}),
              file=answers, flush=True)


class Worker(tut.WorkerProcess):
    """A worker process; `step` runs one step in it and returns the answer."""

    def __init__(self, tool: str, mode: str, python: str, work: Path):
        super().__init__([python, "-W", "ignore", __file__, "--worker", tool, "--mode", mode,
                          "--work", str(work)], f"{tool} {mode}")

    def step(self, recording: bool = True) -> dict:
        time.sleep(PAUSE_S)
        return json.loads(self.ask("on" if recording else "off"))


def check_result(tool: str, mode: str, work: Path, last_step: int, records: int) -> dict:
    """What the last step left behind; raises RuntimeError if it is not what it should be."""
    if tool == "none":
        return {}
    if tool == "debugmode":
        if records < 100:
            raise RuntimeError(f"debugmode {mode}: {records} records (expected some hundred)")
        return {"entries": records}
    step_dir = work / "dump" / f"step{last_step}"
    entries = tut.entries_of(step_dir)
    level = tut.MODES[mode][0] if mode in tut.MODES else None
    expected = EXPECTED_ENTRIES[tool][level] if level else 0
    if mode == "L1_overflow":  # lists every call and records those with NaN or Inf: none here
        stacks = next(step_dir.glob("*/stack.json"))
        expected, entries = 238, len(json.loads(stacks.read_text())) if not entries else -1
    if entries != expected:
        raise RuntimeError(f"{tool} {mode}: {entries} entries in {step_dir} (expected {expected})")
    files, size = tut.files_and_bytes(step_dir) if step_dir.exists() else (0, 0)
    return {"entries": entries, "files_per_step": files, "bytes_per_step": size}


def measure(tool: str, mode: str, steps: int, work: Path, pairing: str) -> dict:
    """Runs one variant against its baseline."""
    python = tut.python_of(tool)
    variant = Worker(tool, mode, python, work)
    base = variant
    if pairing == "separate":
        base = Worker("none", "none", python, work.with_name(f"{work.name}-base"))
    pairs: list[tuple[float, float]] = []
    answer: dict = {}
    try:
        # Strictly in turns: two steps of one process in a row would find warm caches.
        before = base.step(recording=False)["s"]
        for index in range(WARM_UP_STEPS + steps):
            answer = variant.step()
            after = base.step(recording=False)["s"]
            if index >= WARM_UP_STEPS:
                pairs.append(((before + after) / 2, answer["s"]))
            before = after
    finally:
        variant.close()
        if base is not variant:
            base.close()
    facts = check_result(tool, mode, work, WARM_UP_STEPS + steps - 1, answer["records"])
    ratios = [with_tool / without for without, with_tool in pairs]
    ratio = statistics.median(ratios)
    spread = statistics.median(abs(value - ratio) for value in ratios)
    shutil.rmtree(work, ignore_errors=True)
    return {
        "benchmark": "overhead", "tool": tool, "mode": mode, "ratio": round(ratio, 4),
        "mad": round(spread, 4), "noisy": spread > 0.03 * ratio, "steps": steps, "pairing": pairing,
        "base_ms": round(1e3 * statistics.median(pair[0] for pair in pairs), 1),
        "tool_ms": round(1e3 * statistics.median(pair[1] for pair in pairs), 1), **facts,
    }


def machine() -> dict:
    """What a reader needs to judge a figure."""
    import torch

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=tut.ROOT, text=True,
                            capture_output=True, check=False).stdout.strip()
    cpu = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return {"commit": commit, "cpu": cpu, "cores": os.cpu_count(), "threads": 2,
            "torch": torch.__version__, "python": platform.python_version()}


def append_json(path: Path | None, about: dict, results: list[dict]) -> None:
    """Appends each result with what is told about its machine, a line each; None: nowhere."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        for result in results:
            print(json.dumps({**about, **result}), file=stream)


def print_table(results: list[dict]) -> None:
    """One row per tool, one column per mode."""
    modes = list(dict.fromkeys(result["mode"] for result in results))
    print("\n" + "".join(f"{text:>12}" for text in ["", *modes]))
    for tool in dict.fromkeys(result["tool"] for result in results):
        cells = {r["mode"]: f"{r['ratio']:.3f}" for r in results if r["tool"] == tool}
        print(f"{tool:16}" + "".join(f"{cells.get(mode, '-'):>12}" for mode in modes))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", action="append", choices=tut.TOOLS)
    parser.add_argument("--mode", action="append",
                        choices=(*ALL_MODES, *MODES_OF["none"], *MODES_OF["debugmode"]))
    parser.add_argument("--steps", type=int, help="pairs per variant (default 20; upstream 6)")
    parser.add_argument("--pairing", choices=("same", "separate"), help="baseline's process")
    parser.add_argument("--work", type=Path, default=tut.ROOT / "build/bench/overhead")
    parser.add_argument("--json", type=Path, help="append JSON lines here")
    parser.add_argument("--worker", choices=tut.TOOLS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, args.mode[0], args.work)
        return 0
    about, results, failures = machine(), [], 0
    for tool in args.tool or tut.TOOLS:
        for mode in MODES_OF.get(tool, ALL_MODES):
            if args.mode and mode not in args.mode:
                continue
            upstream = tool.startswith("upstream")
            pairing = args.pairing or ("separate" if upstream else "same")
            steps = args.steps or (6 if upstream else 20)
            try:
                result = measure(tool, mode, steps, args.work / f"{tool}-{mode}", pairing)
            except RuntimeError as error:
                print(f"error: {error}", file=sys.stderr, flush=True)
                failures += 1
                continue
            results.append(result)
            extra = f"  {result['bytes_per_step'] / 1e6:.1f} MB, {result['files_per_step']} files" \
                if "bytes_per_step" in result else ""
            print(f"{tool:16} {mode:10} {result['ratio']:7.3f} +- {result['mad']:.3f}"
                  f"  ({result['base_ms']:.0f} -> {result['tool_ms']:.0f} ms){extra}", flush=True)
            append_json(args.json, about, [result])
    if results:
        print_table(results)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
