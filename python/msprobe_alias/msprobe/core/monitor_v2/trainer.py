"""Upstream's inner place of TrainerMonitorV2."""

from __future__ import annotations

from plumbline import TrainerMonitorV2

__all__ = ["TrainerMonitorV2"]
