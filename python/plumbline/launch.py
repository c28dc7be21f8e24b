"""The rank under which a process records, known before a process group is."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable

from plumbline import _core

# Variables of the global rank and of the number of processes, and how many these are where the
# second is not said. A job of Slurm sets its rank for programs that it does not start itself, too.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", 2),  # torchrun, accelerate, deepspeed
    ("RANK_ID", "RANK_SIZE", 2),  # msrun and Ascend's launchers
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", 2),  # Open MPI
    ("PMI_RANK", "PMI_SIZE", 2),  # MPICH, Intel MPI
    ("SLURM_PROCID", "SLURM_NTASKS", 1),
)


class RecordedRank:
    """The rank by the process group; until there is one, by the launcher.

    Args:
        of_group: tells the rank in the framework's process group; None without one.
    """

    def __init__(self, of_group: Callable[[], int | None]) -> None:
        self._of_group = of_group
        self._assumed: int | None = None  # what the launcher said, until a group confirms it

    def __call__(self) -> int | None:
        """None where neither says it."""
        rank = self._of_group()
        if rank is None:
            self._assumed = launched_rank()
            return self._assumed
        if self._assumed not in (None, rank):
            _core.log_warning(
                f"this process is rank {rank} of its process group, but rank {self._assumed} by "
                f"the environment of its launcher. What is open stays in rank{self._assumed}; what "
                f"is opened from now on goes to rank{rank}. Call init_process_group before the "
                "first start()")
        self._assumed = None
        return rank


def launched_rank() -> int | None:
    """Global rank by the environment; None where no launcher of several processes says it."""
    if multiprocessing.parent_process() is not None:
        return None  # what stands in the environment was said to the parent
    for of_rank, of_size, unsaid in _LAUNCHERS:
        rank = _number(of_rank)
        if rank is not None and (_number(of_size) or unsaid) > 1:
            return rank
    return None if _number("WORLD_SIZE") == 1 else _rank_on_node()


def _rank_on_node() -> int | None:
    """The global rank by the rank on the node, which tells it alone on the first node only."""
    local, on_each = _number("LOCAL_RANK"), _number("LOCAL_WORLD_SIZE")
    node = _number("NODE_RANK") or _number("GROUP_RANK") or 0
    if local is None or node == 0:
        return local
    rank = node * (on_each or 0) + local
    return rank if on_each is not None and rank < 2**31 else None


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
