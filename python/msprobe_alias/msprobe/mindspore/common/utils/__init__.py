"""seed_all and the callbacks under upstream's path."""

from __future__ import annotations

from msprobe.core.common.exceptions import translated
from plumbline import mindspore as recorder
from plumbline.mindspore import MsprobeInitStep, MsprobeStep

__all__ = ["MsprobeInitStep", "MsprobeStep", "seed_all"]

seed_all = translated()(recorder.seed_all)
