"""Runs small programs as the ranks of a process group on this machine, with a hard time limit."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from warm_python import Server, server_for

# Importing PyTorch takes most of it, on a loaded machine; a hang must not stop the test run.
TIME_LIMIT_S = 120

PROLOGUE = """
import sys
import time
from datetime import timedelta
import torch
import torch.distributed as dist
torch.set_num_threads(1)
rank, world, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def join():
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world,
                            timeout=timedelta(seconds=60))
def finish():
    # Nobody closes its connections before everybody is done with them.
    shared = dist.distributed_c10d._get_default_store()
    shared.add("done", 1)
    while shared.add("done", 0) < world:
        time.sleep(0.005)
def leave():
    finish()
    dist.destroy_process_group()
"""

WINDOW = (
    PROLOGUE
    + """
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[4])
join()
"""
)

END = """
debugger.stop()
debugger.step()
leave()
"""


def run_ranks(directory: Path, code: str, *arguments: Any, world: int = 2,
              server: Server | None = None) -> list[str]:
    """What each rank printed; rank, world and a fresh store's path are in sys.argv[1:4]."""
    directory.mkdir(parents=True, exist_ok=True)
    store = directory / f"store{time.monotonic_ns()}"
    environment = dict(os.environ, PLUMBLINE_LOG_LEVEL="2", GLOO_SOCKET_IFNAME="lo")
    server = server or server_for(code)
    children = [
        server.start(["-c", code, rank, world, store, *arguments], environment, own_session=True)
        for rank in range(world)
    ]
    deadline = time.monotonic() + TIME_LIMIT_S
    outputs = []
    try:
        for rank, child in enumerate(children):
            done = child.wait(max(1.0, deadline - time.monotonic()))
            if done.returncode != 0:
                raise AssertionError(f"rank {rank}: exit {done.returncode}\n{done.stdout}\n"
                                     f"{done.stderr}")
            outputs.append(done.stdout)
    finally:
        for child in children:
            child.kill()
    return outputs


def dump_of(directory: Path, rank: int | str, step: int = 0) -> dict[str, Any]:
    """The entries of one rank."""
    text = (directory / "out" / f"step{step}" / f"rank{rank}" / "dump.json").read_text()
    entries: dict[str, Any] = json.loads(text)["data"]
    return entries
