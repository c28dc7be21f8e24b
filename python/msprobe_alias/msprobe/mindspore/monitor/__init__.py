"""Upstream's training monitor for MindSpore."""

from __future__ import annotations

from typing import NoReturn

from msprobe.missing import refuse


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
