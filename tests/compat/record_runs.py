"""Records small models with one tool, one child process per recording.

    python record_runs.py {plumbline|upstream} OUT MODEL/LEVEL/MODE ...

leaves OUT/MODEL/LEVEL/MODE/step{0,1}. A recorder is one per process; importing torch, transformers
and the tool takes seconds, so this process imports them once and forks before each recorder.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import sys
import traceback
from pathlib import Path

import models
import torch
import yaml

MODES = {"statistics": ("statistics", "statistics"), "md5": ("statistics", "md5"),
         "tensor": ("tensor", "statistics"), "structure": ("structure", "statistics"),
         "overflow": ("overflow_check", None), "overflow2": ("overflow_check", None)}
LIMITS = {"overflow": -1, "overflow2": 2}  # overflow_nums


def record(tool: str, out: Path, model_name: str, level: str, mode: str) -> None:
    """Records two training steps."""
    if tool == "plumbline":
        from plumbline.pytorch import PrecisionDebugger, seed_all
    else:
        from msprobe.pytorch import PrecisionDebugger, seed_all
    out.mkdir(parents=True)
    task, summary = MODES[mode]
    config = {"task": task, "dump_path": str(out), "rank": [], "step": [], "level": level,
              "risk_level": "ALL",  # the newest release leaves calls out by default
              task: {"scope": [], "list": [], "data_mode": ["all"]}}
    if summary:
        config[task]["summary_mode"] = summary
    if mode in LIMITS:
        config[task]["overflow_nums"] = LIMITS[mode]
        config[task]["count"] = "all"  # upstream has no other way, and no such key
    path = out.parent / f"{mode}.json"
    path.write_text(json.dumps(config))
    path.chmod(0o640)
    torch.set_num_threads(1)
    seed_all(77, rm_dropout=False)
    debugger = PrecisionDebugger(config_path=str(path))
    torch.manual_seed(77)
    model, steps = models.MODELS[model_name]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for loss_of_step in steps:
        if level == "debug":
            loss = loss_of_step()
            debugger.save({"loss": loss, "weights": list(model.parameters())[:2]}, "state")
            loss.backward()
            debugger.step()
            continue
        debugger.start(model)
        loss_of_step().backward()
        debugger.stop()
        optimizer.step()
        optimizer.zero_grad()
        debugger.step()


def main() -> int:
    tool, out, *wanted = sys.argv[1:]
    importlib.import_module("plumbline.pytorch" if tool == "plumbline" else "msprobe.pytorch")
    yaml.SafeLoader = yaml.CSafeLoader  # upstream's list of functions takes the other half a second
    failures = 0
    for name in wanted:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                record(tool, Path(out) / name, *name.split("/"))
                status = 0
            except BaseException:
                traceback.print_exc()
            # Recorders finish in these; to take the interpreter apart after them costs a second.
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        failures += os.waitpid(child, 0)[1] != 0
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
