"""Task grad_probe: what a PrecisionDebugger does once `monitor()` was called."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from plumbline import _core
from plumbline.adapter import Adapter
from plumbline.call_window import Window
from plumbline.launch import RecordedRank


class Gradients(Protocol):
    """Where a framework has gradients. Parameters have numbers, in the order that they came in."""

    def add(self, model: Any) -> list[str]:
        """Names of the parameters that come in with `model`; ValueError: it is no such thing."""

    def watch(self, before_step: Callable[[Any, Any], None]) -> None:
        """Calls `before_step(optimizer, gradients)` before an optimizer steps; idempotent.

        `gradients`: what the optimizer was called with, for `of()`.
        """

    def unwatch(self) -> None:
        """Undoes `watch()`; idempotent."""

    def of(self, numbers: Sequence[int], given: Any) -> list[Any]:
        """The gradients of these parameters; None where there is none."""

    def held_by(self, optimizer: Any) -> list[int]:
        """Numbers of the parameters that this optimizer changes."""


class GradWindow(Window):
    """Hands gradients to the native probe. Training goes on whatever becomes of them."""

    without = "with task grad_probe"

    def __init__(self, config: _core.Config, adapter: Adapter) -> None:
        super().__init__()
        for warning in config.warnings:
            _core.log_warning(warning)
        self._rank = RecordedRank(adapter.rank)
        self._gradients: Gradients = adapter.new_gradients()
        parts = {"name": adapter.name, **adapter.framework_parts()}
        self._probe = _core.GradProbe(config, parts)
        self._pid = os.getpid()

    def monitor(self, model: Any) -> None:
        self._probe.add_parameters(self._gradients.add(model))
        self._gradients.watch(self._before_step)

    def start(self, model: Any, tokens: tuple[int, int] | None, rank_id: int | None) -> None:
        """Nothing: optimizers say when there is something to record."""

    def stop(self) -> None:
        """Waits for the files of the steps so far."""
        if os.getpid() == self._pid:
            self._probe.drain()

    def set_init_step(self, step: int) -> None:
        if not self._probe.set_first_step(step):
            self.warn_once("set_init_step(): has no effect. Call it before the first step")

    @property
    def run_directory(self) -> str:
        return self._probe.directory

    def close(self) -> None:
        self._gradients.unwatch()
        if os.getpid() == self._pid:
            self._probe.close()

    def _before_step(self, optimizer: Any, given: Any) -> None:
        if os.getpid() != self._pid:
            return
        try:
            with self.lock:
                own = self._gradients.held_by(optimizer)
                wanted = self._probe.begin(id(optimizer), own, self._rank())
                if wanted:
                    self._probe.take(wanted, self._gradients.of(wanted, given))
                    self._probe.end()
        except Exception as error:
            self.warn_once(f"grad_probe: a step is not recorded: {type(error).__name__}: {error}")
