"""Records the golden run of one model and the run of every case of it, in one process.

    python record_cases.py MODEL OUTPUT TASK [CASE ...]

Step 0 of the recording is the golden run; the cases of the model follow: those named, or without
names all that need no environment of their own. TASK is `tensor` or `statistics`.
OUTPUT/steps.json names the steps.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from all_cases import cases_of
from every_model import MODELS
from fault_cases import Case, Setup

from plumbline.pytorch import PrecisionDebugger

SEED = 20


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


def main() -> int:
    model_name, output = sys.argv[1], Path(sys.argv[2])
    task, wanted = sys.argv[3], sys.argv[4:]
    cases = [case for case in cases_of(model_name)
             if (case.name in wanted if wanted else not case.environment)]
    output.mkdir(parents=True, exist_ok=True)
    config = output / "config.json"
    config.write_text(json.dumps({"task": task, "level": "L1", "dump_path": str(output / "dump"),
                                  task: {"data_mode": ["all"]}}))
    debugger = PrecisionDebugger(config_path=str(config))
    steps = {}
    for number, case in enumerate([None, *cases]):
        run_once(debugger, model_name, case)
        steps["golden" if case is None else case.name] = f"dump/step{number}/rank"
    (output / "steps.json").write_text(json.dumps(steps, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
