"""Recording some calls of a model only: the tokens of a generation loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class TokenWindow:
    """Opens at the begin of call `first` of the model and closes when call `last + 1` begins."""

    def __init__(self, first: int, last: int, on_open: Callable[[], None],
                 on_close: Callable[[], None]) -> None:
        self._first = first
        self._last = last
        self._on_open = on_open
        self._on_close = on_close
        self._calls = 0
        self._handle: Any = None

    def watch(self, handle: Any) -> None:
        """Keeps the handle of the hook that calls `before_call`."""
        self._handle = handle

    def before_call(self, *_: Any) -> None:
        """A forward pre hook of the model."""
        call = self._calls
        self._calls += 1
        if call == self._first:
            self._on_open()
        elif call == self._last + 1:
            self._on_close()

    def remove(self) -> None:
        """Takes the hook off; idempotent."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None


def check_token_range(token_range: Any) -> tuple[int, int]:
    """The two ends.

    Raises:
        ValueError: not two integers with 0 <= first <= last.
    """
    is_pair = isinstance(token_range, (list, tuple)) and len(token_range) == 2
    ends = tuple(token_range) if is_pair else ()
    if not ends or any(isinstance(end, bool) or not isinstance(end, int) for end in ends) or not (
        0 <= ends[0] <= ends[1]
    ):
        raise ValueError(
            f"start(): token_range is {token_range!r} (expected two integers [first, last] with "
            "0 <= first <= last)"
        )
    return ends[0], ends[1]
