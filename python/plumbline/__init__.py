"""plumbline: record what a model computes, compare two recordings, name the first wrong call.

This package imports no framework. `plumbline.pytorch` holds the recorder for PyTorch.
"""

from __future__ import annotations

from plumbline._core import CorruptDataError, InternalError, UnsupportedError

__all__ = ["CorruptDataError", "InternalError", "UnsupportedError"]
