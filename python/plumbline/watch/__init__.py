"""Values over the steps of a training: what a training monitor wrote, watchpoints on recordings.

The names of `mindinsight.debugger` are here.
"""

from plumbline.watch.conditions import (
    ConditionBase,
    OperatorOverflowCondition,
    TensorAllZeroCondition,
    TensorChangeAboveThresholdCondition,
    TensorChangeBelowThresholdCondition,
    TensorOverflowCondition,
    TensorRangeCondition,
    TensorTooLargeCondition,
    TensorTooSmallCondition,
    TensorUnchangedCondition,
)
from plumbline.watch.debugger import (
    DebuggerTensor,
    DumpAnalyzer,
    Node,
    Watchpoint,
    WatchpointHit,
)

__all__ = [
    "ConditionBase", "DebuggerTensor", "DumpAnalyzer", "Node", "OperatorOverflowCondition",
    "TensorAllZeroCondition", "TensorChangeAboveThresholdCondition",
    "TensorChangeBelowThresholdCondition", "TensorOverflowCondition", "TensorRangeCondition",
    "TensorTooLargeCondition", "TensorTooSmallCondition", "TensorUnchangedCondition",
    "Watchpoint", "WatchpointHit",
]
