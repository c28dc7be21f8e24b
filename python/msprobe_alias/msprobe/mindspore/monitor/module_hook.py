"""`from msprobe.mindspore.monitor.module_hook import TrainerMon`."""

from __future__ import annotations

from plumbline.mindspore import TrainerMon

__all__ = ["TrainerMon"]
