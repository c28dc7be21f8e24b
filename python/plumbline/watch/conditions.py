"""Conditions of watchpoints, as `mindinsight.debugger` names them.

Parameters that are None do not ask anything; of several any one makes a hit.

Size caps: conditions have upstream's parameters.
"""

from __future__ import annotations

from typing import Any


class ConditionBase:
    """What a watchpoint looks for."""

    _id = ""
    _number = 0

    def __init__(self, given: dict[str, Any]) -> None:
        for name, value in given.items():
            is_number = isinstance(value, (int, float))
            if value is not None and not is_number:
                raise TypeError(f"{name} is a {type(value).__name__} (expected a number)")
        self._names = list(given)
        self._given = {name: value if name == "equal_nan" else float(value)
                       for name, value in given.items() if value is not None}

    @property
    def name(self) -> str:
        """That of the class, without `Condition`."""
        return type(self).__name__.removesuffix("Condition")

    @property
    def condition_id(self) -> int:
        """Its number in MindSpore's checker."""
        return self._number

    @property
    def param_dict(self) -> dict[str, Any]:
        """The parameters that were given or have a default."""
        return dict(self._given)

    @property
    def param_names(self) -> list[str]:
        """Names of all that it takes."""
        return list(self._names)

    def __str__(self) -> str:
        return str(self.param_dict)

    @property
    def expression(self) -> str:
        """The condition as `plumb watch --when` takes it."""
        given = ", ".join(f"{name}={_spelled(value)}" for name, value in self._given.items())
        return f"{self._id}({given})" if given else self._id


def _spelled(value: float) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _need(name: str, given: dict[str, Any]) -> None:
    if all(value is None for value in given.values()):
        raise ValueError(f"{name} needs one of {', '.join(given)}")


class TensorTooLargeCondition(ConditionBase):
    """A mean of magnitudes, extreme or mean is above a number."""

    _id, _number = "tensor_too_large", 15

    def __init__(self, abs_mean_gt: float | None = None, max_gt: float | None = None,
                 min_gt: float | None = None, mean_gt: float | None = None) -> None:
        given = {"abs_mean_gt": abs_mean_gt, "max_gt": max_gt, "min_gt": min_gt,
                 "mean_gt": mean_gt}
        _need(type(self).__name__, given)
        super().__init__(given)


class TensorTooSmallCondition(ConditionBase):
    """A mean of magnitudes, extreme or mean is below a number."""

    _id, _number = "tensor_too_small", 16

    def __init__(self, abs_mean_lt: float | None = None, max_lt: float | None = None,
                 min_lt: float | None = None, mean_lt: float | None = None) -> None:
        given = {"abs_mean_lt": abs_mean_lt, "max_lt": max_lt, "min_lt": min_lt,
                 "mean_lt": mean_lt}
        _need(type(self).__name__, given)
        super().__init__(given)


class TensorRangeCondition(ConditionBase):
    """How many elements lie in a range, or how wide the range of all is."""

    _id, _number = "tensor_range", 21

    def __init__(self, range_start_inclusive: float | None = None,
                 range_end_inclusive: float | None = None,
                 range_percentage_lt: float | None = None,
                 range_percentage_gt: float | None = None,
                 max_min_lt: float | None = None, max_min_gt: float | None = None) -> None:
        checks = {"range_percentage_lt": range_percentage_lt,
                  "range_percentage_gt": range_percentage_gt, "max_min_lt": max_min_lt,
                  "max_min_gt": max_min_gt}
        _need(type(self).__name__, checks)
        asks_part = range_percentage_lt is not None or range_percentage_gt is not None
        if asks_part and (range_start_inclusive is None or range_end_inclusive is None):
            raise ValueError("a percentage needs range_start_inclusive and range_end_inclusive")
        super().__init__({"range_start_inclusive": range_start_inclusive,
                          "range_end_inclusive": range_end_inclusive, **checks})


class TensorOverflowCondition(ConditionBase):
    """NaN or an infinity is in the tensor."""

    _id, _number = "tensor_overflow", 13

    def __init__(self) -> None:
        super().__init__({})


class OperatorOverflowCondition(ConditionBase):
    """The operator overflowed on its device."""

    _id, _number = "operator_overflow", 2

    def __init__(self) -> None:
        super().__init__({})


class TensorAllZeroCondition(ConditionBase):
    """So many percent of the elements are 0."""

    _id, _number = "tensor_all_zero", 17

    def __init__(self, zero_percentage_ge: float) -> None:
        super().__init__({"zero_percentage_ge": zero_percentage_ge})


class TensorUnchangedCondition(ConditionBase):
    """Every element is as near to its earlier value as this."""

    _id, _number = "weight_not_changed", 20

    def __init__(self, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> None:
        super().__init__({"rtol": rtol, "atol": atol, "equal_nan": equal_nan})


class TensorChangeBelowThresholdCondition(ConditionBase):
    """The mean change is less than this part of the mean magnitude before."""

    _id, _number = "weight_change_too_small", 19

    def __init__(self, abs_mean_update_ratio_lt: float, epsilon: float = 1e-9) -> None:
        super().__init__({"abs_mean_update_ratio_lt": abs_mean_update_ratio_lt,
                          "epsilon": epsilon})


class TensorChangeAboveThresholdCondition(ConditionBase):
    """The mean change is more than this part of the mean magnitude before."""

    _id, _number = "weight_change_too_large", 18

    def __init__(self, abs_mean_update_ratio_gt: float, epsilon: float = 1e-9) -> None:
        super().__init__({"abs_mean_update_ratio_gt": abs_mean_update_ratio_gt,
                          "epsilon": epsilon})
