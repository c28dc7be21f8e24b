"""plumbline: record what a model computes, compare two recordings, name the first wrong call.

This package imports no framework. `plumbline.pytorch` holds the recorder for PyTorch;
`compare()` answers where two recordings part.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from plumbline._core import CorruptDataError, InternalError, UnsupportedError

if TYPE_CHECKING:
    from plumbline.checkpoint_comparison import CheckpointResult
    from plumbline.comparison import compare
    from plumbline.comparison_result import ComparisonResult
    from plumbline.config_check.checker import ConfigChecker
    from plumbline.rank_comparison import RanksResult, compare_ranks
    from plumbline.training_comparison import compare_training

__all__ = [
    "CheckpointResult",
    "ComparisonResult",
    "ConfigChecker",
    "CorruptDataError",
    "InternalError",
    "RanksResult",
    "UnsupportedError",
    "compare",
    "compare_ranks",
    "compare_training",
]

# Name -> the module that has it.
_LAZY = {
    "CheckpointResult": "plumbline.checkpoint_comparison",
    "ComparisonResult": "plumbline.comparison_result",
    "ConfigChecker": "plumbline.config_check.checker",
    "RanksResult": "plumbline.rank_comparison",
    "compare": "plumbline.comparison",
    "compare_ranks": "plumbline.rank_comparison",
    "compare_training": "plumbline.training_comparison",
}


def __getattr__(name: str) -> Any:
    """Loads the comparison when it is first asked for: a training process needs none of it."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    """The lazy names are there too."""
    return sorted({*globals(), *_LAZY})
