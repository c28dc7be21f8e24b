"""Whether the optimizer that ends the steps of a training still does."""

from __future__ import annotations

# Calls of the model without a step, as a multiple of the most that a step had so far; and at least
# as many. Before the first step a long accumulation cannot be told from an optimizer without steps.
_TIMES, _LEAST, _LEAST_AT_FIRST = 8, 64, 1024


class StepCalls:
    """Counts how often the model is called between the steps of an optimizer."""

    def __init__(self) -> None:
        self._calls, self._most, self._steps = 0, 0, 0
        self._is_told = False

    def add(self) -> bool:
        """One call. True once: there are so many that the optimizer makes no steps any more."""
        self._calls += 1
        least = _LEAST if self._steps else _LEAST_AT_FIRST
        if self._is_told or self._calls < max(least, _TIMES * self._most):
            return False
        self._is_told = True
        return True

    def end_step(self) -> None:
        """The optimizer made a step."""
        self._most, self._calls = max(self._most, self._calls), 0
        self._steps += 1

    @property
    def is_told(self) -> bool:
        """Whether that was said."""
        return self._is_told

    @property
    def too_many(self) -> int:
        """Calls since the last step, where a step never had nearly as many; 0 else."""
        return self._calls if self._calls > 2 * self._most + 2 else 0

    def sentence(self, step: int) -> str:
        """What to say; `step` would be the next one."""
        seen = f"after step {step - 1}" if self._steps else "so far"
        return (f"the optimizer made no step {seen}, while the model was called {self._calls} "
                "times: what happens since is not seen. Give it the optimizer that steps")
