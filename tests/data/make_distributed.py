"""Records two ranks with the real upstream (release 1.2.2): upstream_1.2.2/distributed.

Run with an interpreter that has mindstudio-probe 1.2.2 and transformers:
    python tests/data/make_distributed.py
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "upstream_1.2.2" / "distributed"


def calls(rank: int) -> None:
    """The calls to record; tests/python/test_distributed.py makes the same with plumbline."""
    import torch
    import torch.distributed as dist

    mine = torch.tensor([rank + 1.0, 2.0, float("nan") if rank else -3.0])
    total = mine.clone()
    dist.all_reduce(total)
    dist.all_reduce(total, op=dist.ReduceOp.MAX, group=dist.group.WORLD)
    dist.all_reduce(total, async_op=True).wait()
    dist.broadcast(mine.nan_to_num().int(), 0)
    dist.broadcast(mine, src=1, group=dist.group.WORLD)
    dist.barrier()


def record(rank: int, directory: str) -> None:
    import torch.distributed as dist
    import transformers  # noqa: F401  upstream must not be first

    from msprobe.pytorch import PrecisionDebugger

    store = f"file://{directory}/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    debugger = PrecisionDebugger(f"{directory}/config.json")
    debugger.start()
    calls(rank)
    debugger.stop()
    debugger.step()


def main() -> None:
    directory = tempfile.mkdtemp()
    config = {
        "task": "statistics", "dump_path": f"{directory}/out", "rank": [], "step": [],
        "level": "L1", "statistics": {"summary_mode": "md5"},
    }
    Path(directory, "config.json").write_text(json.dumps(config))
    children = [
        os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, __file__, str(rank), directory])
        for rank in range(2)
    ]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    HERE.mkdir(exist_ok=True)
    for rank in range(2):
        text = Path(directory, f"out/step0/rank{rank}/dump.json").read_text()
        data = json.loads(text)["data"]
        kept = {key: value for key, value in data.items() if key.startswith("Distributed.")}
        (HERE / f"rank{rank}.json").write_text(json.dumps(kept, indent=1) + "\n")
    shutil.rmtree(directory)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        record(int(sys.argv[1]), sys.argv[2])
    else:
        main()
