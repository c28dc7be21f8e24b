"""Records the golden runs of models and the runs of their cases, one child process per recording.

    python record_cases.py JOBS.json

JOBS is a list of {"model": name, "output": directory, "cases": [name, ...]}. Step 0 of a recording
(of task tensor) is the golden run; the cases follow in the order of the suite. OUTPUT/steps.json
names the steps. Importing torch and transformers takes seconds, so this process imports them once
and forks before each recording.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from all_cases import cases_of
from evaluate import write_statistics
from every_model import MODELS
from fault_cases import Case, Setup

from plumbline.pytorch import PrecisionDebugger

SEED = 20
LIMIT_S = 280  # of one recording


def run_once(debugger: Any, model_name: str, case: Case | None) -> None:
    """One step: build, change, record forward and backward."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    subject = MODELS[model_name]()
    torch.manual_seed(SEED + 1)
    with ExitStack() as stack:
        setup = Setup(subject, stack)
        if case is not None:
            case.change(setup)
        kernels = setup.kernels() if case is not None else None
        debugger.start(subject.model)
        loss = subject.loss()
        loss.backward()
        debugger.stop()
        debugger.step()
        if kernels is not None:
            # A change of one use of a kernel must happen; of changes of whole families, one must.
            unused = [key for key in setup.changes if ":" in key and kernels.applied[key] == 0]
            if unused or not kernels.applied:
                raise SystemExit(f"{case.name if case else ''}: kernels never used: {unused}")


def record(model_name: str, output: Path, wanted: list[str]) -> None:
    """One recording."""
    output.mkdir(parents=True, exist_ok=True)
    config = output / "config.json"
    config.write_text(json.dumps({"task": "tensor", "level": "L1",
                                  "dump_path": str(output / "dump"),
                                  "tensor": {"data_mode": ["all"]}}))
    debugger = PrecisionDebugger(config_path=str(config))
    steps = {}
    cases = [case for case in cases_of(model_name) if case.name in wanted]
    for number, case in enumerate([None, *cases]):
        run_once(debugger, model_name, case)
        steps["golden" if case is None else case.name] = f"dump/step{number}/rank"
    (output / "steps.json").write_text(json.dumps(steps, indent=1))


def main() -> int:
    gc.freeze()  # the children's last collections leave alone what is imported
    for job in json.loads(Path(sys.argv[1]).read_text()):
        child = os.fork()
        if child == 0:
            signal.alarm(LIMIT_S)
            record(job["model"], Path(job["output"]), job["cases"])
            # The recorder finishes in these; to take the interpreter apart takes a while.
            atexit._run_exitfuncs()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != 0:
            print(f"{job['output']}: cannot be recorded, status {status}", file=sys.stderr)
            return 1
        for rank in Path(job["output"]).glob("dump/*/rank"):
            write_statistics(rank, rank.parent / "statistics")
    return 0


if __name__ == "__main__":
    sys.exit(main())
