"""Upstream's check of operators while a program runs; it is plumbline's."""

from __future__ import annotations

from typing import NoReturn

from msprobe.missing import refuse
from msprobe.pytorch.online_dispatch.dispatch import PtdbgDispatch

__all__ = ["PtdbgDispatch"]


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
