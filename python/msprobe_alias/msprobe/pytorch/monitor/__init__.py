"""Upstream's training monitor: the monitor itself, and what works on its files."""

from __future__ import annotations

from typing import NoReturn

from msprobe.missing import refuse


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
