"""The probes in place of API functions, as every framework has them."""

from __future__ import annotations

from typing import Protocol

from plumbline import _core
from plumbline.guards import Guards, Hooks


class CallHooks(Hooks, Protocol):
    """Records calls that are no attributes to replace: communication, kernels."""

    def finish(self) -> None:
        """Records what nobody waited for, as far as it is complete."""


class ApiHooksBase:
    """The probes of one process: in place while a window is open, unless they step aside.

    A framework's class makes them in `_build`, and adds what else belongs to a window.
    """

    def __init__(self) -> None:
        self._recorder: _core.Recorder | None = None
        self._patches = _core.PatchSet()
        self._others: list[CallHooks] = []
        self._guards = Guards(self)
        self._suspended = 0  # times
        self._is_installed = False

    def install(self, recorder: _core.Recorder, with_regions: bool) -> None:
        """Starts recording; idempotent."""
        if self._is_installed:
            return
        if self._recorder is not recorder:
            self._recorder, self._patches = recorder, _core.PatchSet()
            self._build(recorder)
        self._is_installed = True
        self._guards.apply()
        self._begin(recorder, with_regions)
        if self._suspended == 0:
            self._put()

    def uninstall(self) -> None:
        """Restores everything; idempotent."""
        if not self._is_installed:
            return
        self._is_installed = False
        if self._suspended == 0:
            self._take()
        for hooks in self._others:
            hooks.finish()
        self._end()
        self._guards.restore()

    def suspend(self) -> None:
        """Restores every function, until `resume`."""
        self._suspended += 1
        if self._suspended == 1 and self._is_installed:
            self._take()

    def resume(self) -> None:
        """Puts the probes back."""
        self._suspended -= 1
        if self._suspended == 0 and self._is_installed:
            self._put()

    def _build(self, recorder: _core.Recorder) -> None:
        """Makes the probes, once per recorder."""
        raise NotImplementedError

    def _begin(self, recorder: _core.Recorder, with_regions: bool) -> None:
        """A window opens; the functions are still the originals."""

    def _end(self) -> None:
        """It closes; they are the originals again."""

    def _put(self) -> None:
        self._patches.apply()
        for hooks in self._others:
            hooks.resume()

    def _take(self) -> None:
        for hooks in self._others:
            hooks.suspend()
        self._patches.restore()
