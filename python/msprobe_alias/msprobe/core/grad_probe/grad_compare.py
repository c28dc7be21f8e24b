"""Upstream's inner place of GradComparator."""

from __future__ import annotations

from plumbline import GradComparator

__all__ = ["GradComparator"]
