"""plumbline: record what a model computes, compare two recordings, name the first wrong call.

This package imports no framework, and nothing native before it is asked for: the executors of a
pre-check live in it too. `plumbline.pytorch` holds the recorder for PyTorch;
`compare()` answers where two recordings part, `precheck()` which calls of one a device computes
wrong, `check_operators()` which it does while it runs; `view()` shows recordings in a notebook.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbline._core import CorruptDataError, InternalError, UnsupportedError
    from plumbline.checkpoint_comparison import CheckpointResult
    from plumbline.comparison import compare
    from plumbline.comparison_result import ComparisonResult
    from plumbline.config_check.checker import ConfigChecker
    from plumbline.parallel_layout import ParallelConfig, plot_model_parallelism
    from plumbline.precheck_result import PrecheckResult, precheck
    from plumbline.pytorch.operator_check import OperatorCheck, check_operators
    from plumbline.rank_comparison import RanksResult, compare_ranks
    from plumbline.training_comparison import compare_training
    from plumbline.viewer import View, view
    from plumbline.watch.csv2tb import csv2tensorboard_by_step
    from plumbline.watch.grad_comparator import GradComparator
    from plumbline.watch.trainer_monitor_v2 import TrainerMonitorV2

__all__ = [
    "CheckpointResult",
    "ComparisonResult",
    "ConfigChecker",
    "CorruptDataError",
    "GradComparator",
    "InternalError",
    "OperatorCheck",
    "ParallelConfig",
    "PrecheckResult",
    "RanksResult",
    "TrainerMonitorV2",
    "UnsupportedError",
    "View",
    "check_operators",
    "compare",
    "compare_ranks",
    "compare_training",
    "csv2tensorboard_by_step",
    "plot_model_parallelism",
    "precheck",
    "view",
]

# Name -> the module that has it.
_LAZY = {
    "CheckpointResult": "plumbline.checkpoint_comparison",
    "ComparisonResult": "plumbline.comparison_result",
    "ConfigChecker": "plumbline.config_check.checker",
    "CorruptDataError": "plumbline._core",
    "GradComparator": "plumbline.watch.grad_comparator",
    "InternalError": "plumbline._core",
    "OperatorCheck": "plumbline.pytorch.operator_check",
    "ParallelConfig": "plumbline.parallel_layout",
    "PrecheckResult": "plumbline.precheck_result",
    "RanksResult": "plumbline.rank_comparison",
    "TrainerMonitorV2": "plumbline.watch.trainer_monitor_v2",
    "UnsupportedError": "plumbline._core",
    "View": "plumbline.viewer",
    "check_operators": "plumbline.pytorch.operator_check",
    "compare": "plumbline.comparison",
    "compare_ranks": "plumbline.rank_comparison",
    "compare_training": "plumbline.training_comparison",
    "csv2tensorboard_by_step": "plumbline.watch.csv2tb",
    "plot_model_parallelism": "plumbline.parallel_layout",
    "precheck": "plumbline.precheck_result",
    "view": "plumbline.viewer",
}


def __getattr__(name: str) -> Any:
    """Loads what is asked for, when it is first: a training process needs no comparison."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    """The lazy names are there too."""
    return sorted({*globals(), *_LAZY})
