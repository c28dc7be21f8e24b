"""Step time of the reference model under a training monitor, divided by the step time without one.

    python benchmarks/end_to_end/watch_overhead.py [--tool T ...] [--mode M ...] [--steps N]

Every step is collected, with the statistics norm, min, max, mean, nans and zeros. Steps with and
without monitor take turns, so that a drift of the machine hits both; the ratio is the median over
the pairs. Timed is the whole step: forward, backward, optimizer; of plumbline also the wait until
the step's files are written, which a training does not wait for. plumbline leaves nothing behind
and is paired with steps of the same process; upstream's hooks stay: it is paired with a second one.

Mode `black_box`: plumbline's black box, every step, with the rules it runs in the background.

Mode `idle`: 1,000 parameters of one number each and step_interval 100; timed is what the two hooks
of the optimizer's step cost at a step that is not collected, as a share of a step of 20 ms.

BENCH_THREADS=1 in the environment: with one thread, where others use the cores too.

Before a ratio is printed, the last step's files must hold the expected rows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import tools_under_test as tut

GRADIENTS = {"wg_distribution": True, "param_distribution": True}
ACTIVATIONS = {"xy_distribution": True}
MODES = {
    "weights": GRADIENTS,
    "activations": ACTIVATIONS,
    "all": {**GRADIENTS, **ACTIVATIONS, "mv_distribution": True},
    "black_box": {},
}
# Parameters of the reference model, and its modules that are called.
PARAMETERS, MODULES = 39, 58
EXPECTED_ROWS = {"weights": {"grad_reduced": PARAMETERS, "param": PARAMETERS},
                 "activations": {"actv": 2 * MODULES}}
EXPECTED_ROWS["all"] = {**EXPECTED_ROWS["weights"], **EXPECTED_ROWS["activations"],
                        "exp_avg": PARAMETERS}
OPS = ["norm", "min", "max", "mean", "nans", "zeros"]
WARM_UP_STEPS = 2
PAUSE_S = 0.02  # lets the other process's idle threads fall asleep
IDLE_STEP_S = 0.02


def monitor_of(tool: str, mode: str, work: Path) -> Any:
    """A TrainerMon that writes under `work`."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    os.environ["MONITOR_OUTPUT_DIR"] = str(work / "out")
    config = work / "config.json"
    config.write_text(json.dumps({"targets": {}, "ops": OPS, **MODES.get(mode, GRADIENTS),
                                  "step_interval": 100 if mode == "idle" else 1}))
    if tool == "plumbline":
        from plumbline.pytorch import TrainerMon
    else:
        from msprobe.pytorch import TrainerMon
    return TrainerMon(str(config), params_have_main_grad=False)


class Switch:
    """Hooks of plumbline there or not, between two steps; of upstream always there."""

    def __init__(self, monitor: Any) -> None:
        self._sessions = getattr(monitor, "_sessions", None) or []

    def set(self, is_on: bool) -> None:
        """The next step is collected, or not."""
        for session in self._sessions:
            session._is_on, session._idle_until = is_on, 0
            session._arm()

    def flush(self) -> None:
        """Waits for the files."""
        for session in self._sessions:
            if session._live is not None:
                session._live.flush()


class BoxSwitch:
    """The same of a black box."""

    def __init__(self, training: Any, work: Path) -> None:
        from plumbline.pytorch import black_box

        shutil.rmtree(work, ignore_errors=True)
        self._box = black_box(training.model, training.optimizer, work / "out", budget=None)

    def set(self, is_on: bool) -> None:
        """The next step is looked at, or not."""
        self._box._every = 1 if is_on else 0
        self._box._arm()

    def flush(self) -> None:
        """Waits for the files."""
        self._box._live.flush()


def worker(tool: str, mode: str, work: Path) -> None:
    """A step per line on standard input, "on" or "off"; answers with its seconds."""
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    if not os.environ.get("BENCH_SHOW_ERRORS"):
        os.dup2(quiet, 2)
    import reference_model  # imports transformers, which must precede the monitor

    reference_model.THREADS = int(os.environ.get("BENCH_THREADS", reference_model.THREADS))
    training = reference_model.build()
    monitor = None
    if mode == "black_box" and tool != "none":
        switch: Any = BoxSwitch(training, work)
    elif tool != "none":
        monitor = monitor_of(tool, mode, work)
        monitor.set_monitor(training.model, grad_acc_steps=1, optimizer=training.optimizer)
    if mode != "black_box":
        switch = Switch(monitor)
    print("ready", file=answers, flush=True)
    for count, line in enumerate(sys.stdin):
        switch.set(line.strip() == "on")
        began = time.perf_counter()
        training.forward_backward(count)
        training.update()
        switch.flush()
        print(time.perf_counter() - began, file=answers, flush=True)


class Worker(tut.WorkerProcess):
    """A worker process."""

    def __init__(self, tool: str, mode: str, work: Path) -> None:
        super().__init__([tut.python_of(tool), "-W", "ignore", __file__, "--worker", tool, "--mode",
                          mode, "--work", str(work)], f"{tool} {mode}")

    def step(self, word: str) -> float:
        """Seconds of one step."""
        time.sleep(PAUSE_S)
        return float(self.ask(word))


def check_rows(mode: str, work: Path) -> None:
    """RuntimeError unless the newest files hold the rows of one step."""
    [directory] = (work / "out").glob("*-rank0-*")
    if mode == "black_box":
        text = "".join(path.read_text() for path in directory.glob("grad_reduced_*.csv"))
        if text.count("\n0,") < PARAMETERS:
            raise RuntimeError(f"{directory}: no whole step of gradients")
        return
    for kind, rows in EXPECTED_ROWS[mode].items():
        newest = max(directory.glob(f"{kind}_[0-9]*.csv"), key=lambda path: path.stat().st_mtime_ns)
        found = len(newest.read_text().splitlines()) - 1
        if found != rows:
            raise RuntimeError(f"{newest}: {found} rows (expected {rows})")


def measure(tool: str, mode: str, steps: int, work: Path) -> dict[str, Any]:
    """One tool and mode against its baseline."""
    variant = Worker(tool, mode, work)
    base = variant if tool == "plumbline" else Worker("none", mode, work.with_name("none"))
    pairs = []
    try:
        before = base.step("off")
        for index in range(WARM_UP_STEPS + steps):
            seconds = variant.step("on")
            after = base.step("off")
            if index >= WARM_UP_STEPS:
                pairs.append(((before + after) / 2, seconds))
            before = after
    finally:
        variant.close()
        if base is not variant:
            base.close()
    check_rows(mode, work)
    shutil.rmtree(work, ignore_errors=True)
    ratios = [watched / bare for bare, watched in pairs]
    ratio = statistics.median(ratios)
    spread = statistics.median(abs(value - ratio) for value in ratios)
    return {"benchmark": "watch_overhead", "tool": tool, "mode": mode, "ratio": round(ratio, 4),
            "mad": round(spread, 4), "noisy": spread > 0.03 * ratio, "steps": steps,
            "base_ms": round(1e3 * statistics.median(bare for bare, _ in pairs), 1)}


def measure_idle(work: Path) -> dict[str, Any]:
    """What an uncollected step costs with 1,000 parameters."""
    import torch

    model = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(1)) for _ in range(1000))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)  # without gradients a step is nothing
    monitor = monitor_of("plumbline", "idle", work)
    monitor.set_monitor(model, optimizer=optimizer)
    optimizer.step()
    costs = []
    for _ in range(20):
        costs.append(seconds_of_hooks(optimizer, 98) / 98)
        optimizer.step()  # puts the hooks of the collected one there
        optimizer.step()
    monitor.stop()
    cost = statistics.median(costs)
    return {"benchmark": "watch_overhead", "tool": "plumbline", "mode": "idle",
            "ratio": round(1 + cost / IDLE_STEP_S, 5), "us_per_step": round(1e6 * cost, 1)}


def seconds_of_hooks(optimizer: Any, steps: int) -> float:
    """Seconds that so many steps spend in hooks of the optimizer."""
    before = list(optimizer._optimizer_step_pre_hooks.values())
    after = list(optimizer._optimizer_step_post_hooks.values())
    began = time.perf_counter()
    for _ in range(steps):
        for hook in (*before, *after):
            hook(optimizer, (), {})
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", action="append", choices=("plumbline", "upstream-1.2.2"))
    parser.add_argument("--mode", action="append", choices=(*MODES, "idle"))
    parser.add_argument("--steps", type=int, help="pairs per variant (default 20; upstream 6)")
    parser.add_argument("--work", type=Path, default=tut.ROOT / "build/bench/watch_overhead")
    parser.add_argument("--json", type=Path, help="append JSON lines here")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, args.mode[0], args.work)
        return 0
    results = []
    for mode in args.mode or (*MODES, "idle"):
        if mode == "idle":
            results.append(measure_idle(args.work / mode))
            print(f"{'plumbline':16}{mode:12} {results[-1]['us_per_step']} us per step", flush=True)
            continue
        tools = ("plumbline",) if mode == "black_box" else ("plumbline", "upstream-1.2.2")
        for tool in args.tool or tools:
            steps = args.steps or (6 if tool.startswith("upstream") else 20)
            result = measure(tool, mode, steps, args.work / f"{tool}-{mode}")
            results.append(result)
            print(f"{tool:16}{mode:12} {result['ratio']:7.3f} +- {result['mad']:.3f}  "
                  f"({result['base_ms']:.0f} ms)", flush=True)
    if args.json:
        with args.json.open("a") as stream:
            stream.writelines(json.dumps(result) + "\n" for result in results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
