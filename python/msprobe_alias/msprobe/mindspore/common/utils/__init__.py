"""seed_all and the callbacks under upstream's path."""

from __future__ import annotations

from msprobe.core.common.exceptions import translated
from plumbline import mindspore as recorder
from plumbline.mindspore import MsprobeInitStep, MsprobeStep

__all__ = ["MsprobeInitStep", "MsprobeStep", "seed_all"]


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = True) -> None:
    """plumbline.mindspore.seed_all.

    Raises:
        MsprobeException: an argument is of the wrong type or out of range.
    """
    with translated():
        recorder.seed_all(seed, mode, rm_dropout)
