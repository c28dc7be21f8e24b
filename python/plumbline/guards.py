"""Calls during which every function must be the original, not a probe."""

from __future__ import annotations

import contextlib
import functools
import importlib._bootstrap
import multiprocessing.reduction
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from plumbline import _core


class Hooks(Protocol):
    """Hooks that step aside; the calls come in pairs and may be nested."""

    def suspend(self) -> None:
        """Takes the hooks away."""

    def resume(self) -> None:
        """Puts them back if they are still wanted."""


class HookGroup:
    """Hooks that step aside together."""

    def __init__(self) -> None:
        self._members: list[Hooks] = []

    def add(self, hooks: Hooks) -> None:
        """These take part from here on."""
        self._members.append(hooks)

    def remove(self, hooks: Hooks) -> None:
        """They take part no more; nothing if they did not."""
        if hooks in self._members:
            self._members.remove(hooks)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._members)

    def suspend(self) -> None:
        """Takes them all away."""
        for hooks in self._members:
            hooks.suspend()

    def resume(self) -> None:
        """Puts them back."""
        for hooks in self._members:
            hooks.resume()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Without those that take part now."""
        members = list(self._members)
        for hooks in members:
            hooks.suspend()
        try:
            yield
        finally:
            for hooks in members:
                hooks.resume()


class Guards:
    """Suspends `hooks` during imports, pickling, and whatever else is added.

    Wrapped while applied; other threads lose what they call meanwhile.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._patches = _core.PatchSet()
        # A library imported inside the window inspects functions and keeps references to them.
        # Every import of a module that is not loaded yet passes through this one function.
        self.add(importlib._bootstrap, "_find_and_load")
        # A function is pickled by name, if that name gives the same object.
        self.add(pickle, "dump")
        self.add(multiprocessing.reduction, "dump")
        self._patches.add(pickle, "dumps", self._dumps(pickle.dumps))

    def add(self, owner: Any, name: str) -> None:
        """Guards `owner.name`, if there is such a function."""
        original = getattr(owner, name, None)
        if original is not None:
            self._patches.add(owner, name, self._without_hooks(original))

    def apply(self) -> None:
        """Begins to guard."""
        self._patches.apply()

    def restore(self) -> None:
        """Ends it."""
        self._patches.restore()

    def _without_hooks(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            self._hooks.suspend()
            try:
                return original(*args, **kwargs)
            finally:
                self._hooks.resume()

        return guarded

    def _dumps(self, original: Callable[..., Any]) -> Callable[..., Any]:
        again = self._without_hooks(original)

        @functools.wraps(original)
        def dumps(*args: Any, **kwargs: Any) -> Any:
            # Messages between processes, also of threads: hooks go only if they must.
            with contextlib.suppress(pickle.PicklingError):
                return original(*args, **kwargs)
            return again(*args, **kwargs)

        return dumps


def around_outermost(
    switch: Callable[[Any], Any], begin: Callable[[], None], end: Callable[[], None]
) -> Callable[[Any], Any]:
    """A function like `switch`, which code calls with a callable when a region begins and with what
    it got back when that ends, from the same frame; regions inside come from deeper frames.

    Calls `begin` and `end` around the outermost region of each thread.
    """
    outermost = threading.local()

    def switched(callback: Any) -> Any:
        caller = id(sys._getframe(1))
        frame = getattr(outermost, "frame", None)
        if callable(callback) and frame is None:
            outermost.frame = caller
            begin()
            return switch(callback)
        previous = switch(callback)
        if frame == caller:
            outermost.frame = None
            end()
        return previous

    return switched


class CopyableHook(functools.partial):  # type: ignore[type-arg]
    """A hook that stays behind when what holds it is copied or saved.

    The copy gets a callable of the standard library that does nothing, so that it neither records
    nor needs plumbline to be loaded.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")
