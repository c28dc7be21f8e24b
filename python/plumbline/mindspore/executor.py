"""MindSpore's module of executors, under the name that it has in this version."""

from __future__ import annotations

try:
    from mindspore.graph import api
except ImportError:  # before MindSpore 2.9; later ones warn of the old name
    from mindspore.common import api

__all__ = ["api"]
