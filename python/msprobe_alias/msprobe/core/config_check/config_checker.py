"""Upstream's inner place of ConfigChecker."""

from __future__ import annotations

from plumbline import ConfigChecker

__all__ = ["ConfigChecker"]
