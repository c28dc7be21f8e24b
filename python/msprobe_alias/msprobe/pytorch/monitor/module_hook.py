"""`from msprobe.pytorch.monitor.module_hook import TrainerMon`."""

from __future__ import annotations

from plumbline.pytorch import TrainerMon

__all__ = ["TrainerMon"]
