"""Whether the optimizer that ends the steps of a training still does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plumbline import _core

# Calls of the model without a step, as a multiple of the most that a step had so far; and at least
# as many. Before the first step a long accumulation cannot be told from an optimizer without steps.
_TIMES, _LEAST, _LEAST_AT_FIRST = 8, 64, 1024


class StepCalls:
    """Counts how often the model is called between the steps of an optimizer.

    `tell` is called once, when there are so many calls that the optimizer makes no steps any more.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self._count = _core.CallCount(self._tell)
        self._count.limit = _LEAST_AT_FIRST
        self._most, self._steps = 0, 0
        self._tell_others = tell
        self._is_told = False

    @property
    def hook(self) -> Any:
        """To be called before every call of the model."""
        return self._count.before

    def end_step(self) -> None:
        """The optimizer made a step."""
        self._most, self._count.calls = max(self._most, self._count.calls), 0
        self._count.limit = max(_LEAST, _TIMES * self._most)
        self._steps += 1

    def close(self) -> None:
        """Nothing is told any more."""
        self._count.forget()

    @property
    def too_many(self) -> int:
        """Calls since the last step, where a step never had nearly as many; 0 else."""
        calls: int = self._count.calls
        return calls if calls > 2 * self._most + 2 else 0

    @property
    def is_told(self) -> bool:
        """Whether that was said."""
        return self._is_told

    def sentence(self, step: int) -> str:
        """What to say; `step` would be the next one."""
        seen = f"after step {step - 1}" if self._steps else "so far"
        return (f"the optimizer made no step {seen}, while the model was called "
                f"{self._count.calls} times: what happens since is not seen. Give it the optimizer "
                "that steps")

    def _tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            self._tell_others()
