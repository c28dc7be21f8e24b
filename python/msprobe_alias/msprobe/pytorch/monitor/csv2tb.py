"""csv2tensorboard_by_step() with upstream's arguments; the conversion is plumbline's."""

from __future__ import annotations

from plumbline import csv2tensorboard_by_step

__all__ = ["csv2tensorboard_by_step"]
