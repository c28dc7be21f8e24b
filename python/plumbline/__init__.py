"""plumbline: record what a model computes, compare two recordings, name the first wrong call.

This package imports no framework. `plumbline.pytorch` holds the recorder for PyTorch;
`compare()` answers where two recordings part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plumbline._core import CorruptDataError, InternalError, UnsupportedError

if TYPE_CHECKING:
    from plumbline.comparison import ComparisonResult, compare

__all__ = [
    "ComparisonResult",
    "CorruptDataError",
    "InternalError",
    "UnsupportedError",
    "compare",
]

_FROM_COMPARISON = ("ComparisonResult", "compare")


def __getattr__(name: str) -> Any:
    """Loads the comparison when it is first asked for: a training process needs none of it."""
    if name not in _FROM_COMPARISON:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from plumbline import comparison

    value = globals()[name] = getattr(comparison, name)
    return value


def __dir__() -> list[str]:
    """The lazy names are there too."""
    return sorted({*globals(), *_FROM_COMPARISON})
