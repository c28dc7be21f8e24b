"""Records the golden runs and every case of several ranks, on one rank of one world.

    python record_ranks.py RANK WORLD STORE OUTPUT

STORE is a path for a FileStore. Every run is a step; OUTPUT/steps.json names them.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from rank_cases import CASES, RankCase
from rank_training import TRAININGS, Ddp

from plumbline.pytorch import PrecisionDebugger


def run_once(debugger: Any, training: str, case: RankCase | None) -> None:
    """One step."""
    torch.set_num_threads(1)
    run = TRAININGS[training](dist.get_rank(), dist.get_world_size())
    if case is not None:
        case.change(run)
    if isinstance(run, Ddp):
        run.begin()
        run.begin = lambda: None  # type: ignore[method-assign]
    dist.barrier()
    debugger.start(run.net)
    run.run()
    debugger.stop()
    debugger.step()


def main() -> int:
    rank, world, store, output = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    config = output / f"config{rank}.json"
    config.write_text(json.dumps({"task": "tensor", "level": "L1",
                                  "dump_path": str(output / "dump"),
                                  "tensor": {"data_mode": ["all"]}}))
    debugger = PrecisionDebugger(config_path=str(config))
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world,
                            timeout=timedelta(seconds=60))
    cases = [case for case in CASES if case.world == world]
    steps = {}
    for training in dict.fromkeys(case.training for case in cases):
        steps[f"golden-{training}"] = len(steps)
        run_once(debugger, training, None)
        for case in cases:
            if case.training == training:
                steps[case.name] = len(steps)
                run_once(debugger, training, case)
    if rank == 0:
        (output / "steps.json").write_text(json.dumps(steps, indent=1))
    # Nobody closes its connections before everybody is done with them.
    dist.barrier()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
