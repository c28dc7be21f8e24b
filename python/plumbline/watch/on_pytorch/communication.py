"""Functions of torch.distributed, watched while a monitor collects a step (`cc_distribution`)."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from plumbline import _core
from plumbline.communication import MASKED_INPUTS
from plumbline.pytorch.distributed import (
    WAITS,
    Redirection,
    functions,
    is_redirected,
    observed_wait,
)
from plumbline.watch.communication import watched_call


class MonitoredCommunication:
    """The functions keep their identity (plumbline.pytorch.distributed)."""

    def __init__(
        self, live: _core.LiveMonitor, before: bool, is_wanted: Callable[[str], bool]
    ) -> None:
        self.watch = _core.CommunicationWatch(live, dist.Work, dist.P2POp, before)
        self.is_wanted = is_wanted
        self._functions: list[Redirection] | None = None
        self._handles = _core.PatchSet()
        for method in WAITS:
            original = getattr(dist.Work, method)
            self._handles.add(dist.Work, method, observed_wait(original, self.watch.completed))

    def apply(self) -> None:
        """Begins to watch, unless a recorder of calls watches the same functions."""
        found = list(functions())
        if any(is_redirected(function) for _, function in found):
            _core.log_warning("cc_distribution: a step is left out, PrecisionDebugger records the "
                              "same functions")
            return
        if self._functions is None:
            self._functions = [self._redirection(*one) for one in found]
        for redirection in self._functions:
            redirection.apply()
        self._handles.apply()

    def remove(self) -> None:
        """Restores everything."""
        self._handles.restore()
        for redirection in self._functions or []:
            redirection.restore()

    def _redirection(self, name: str, function: types.FunctionType) -> Redirection:
        masked: list[Any] = list(MASKED_INPUTS.get(name, []))
        parameters = list(inspect.signature(function).parameters)
        masked += [parameters[at] for at in masked if at < len(parameters)]
        return Redirection(function, lambda original: watched_call(
            self, name, original, masked))
