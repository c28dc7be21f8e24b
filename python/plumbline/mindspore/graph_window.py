"""Static graphs: MindSpore's own dump, driven by config.json, in place of recorded calls."""

from __future__ import annotations

import os
import threading
from typing import Any

from plumbline import _compare, _core
from plumbline.call_window import Settings
from plumbline.mindspore import graph_mode


def is_asked_for(settings: Settings) -> bool:
    """Whether graphs are dumped: in GRAPH_MODE, and at level L2, which means parts under jit."""
    return graph_mode.execution_mode() != "pynative" or _compare.asks_for_kernels(
        settings.config_path, _overrides(settings))


class GraphWindow:
    """Tells MindSpore what to dump, and makes statistics where MindSpore cannot.

    MindSpore reads its configuration when it compiles the first graph: the debugger is constructed
    and started after mode and jit level are set, before the model runs. One of the windows that a
    PrecisionDebugger may have (plumbline.debugger.Window). Thread-safe.

    Raises:
        ValueError: a setting is unknown, of the wrong type, or impossible in this mode or on this
            device; the entry is named.
        FileNotFoundError: config_path does not exist.
    """

    def __init__(self, settings: Settings) -> None:
        self._rank = _rank()
        place = _compare.GraphPlace(
            graph_mode.execution_mode(), graph_mode.device(), self._rank,
            graph_mode.hash_is_named_md5())
        self._plan = _compare.plan_graph_dump(settings.config_path, _overrides(settings), place)
        for warning in self._plan.warnings:
            _core.log_warning(warning)
        self._finisher: Any = None
        self._is_started = False
        self._pid = os.getpid()
        self._said: set[str] = set()
        self._lock = threading.RLock()

    def start(self, model: Any, tokens: tuple[int, int] | None, rank_id: int | None) -> None:
        """Writes the dump configuration and sets the environment. Only the first call acts."""
        if tokens is not None:
            self._without_effect("token_range")
        if rank_id is not None:
            self._without_effect("rank_id")
        with self._lock:
            if self._is_started or not self._plan.is_on:
                return
            self._is_started = True
            try:
                path = self._plan.write()
            except OSError as error:
                _core.log_warning(f"{error}. Graphs are not dumped")
                return
            for name in self._plan.removed_environment():
                os.environ.pop(name, None)
            os.environ.update(dict(self._plan.environment(path)))
            if self._plan.finishes:
                self._finisher = _compare.GraphFinisher(self._plan, self._rank)

    def stop(self) -> None:
        """Nothing: the configuration says which iterations are dumped."""

    def step(self) -> None:
        """After an iteration: makes statistics of what is complete, in the background."""
        with self._lock:
            if self._finisher is not None and os.getpid() == self._pid:
                self._finisher.begin()

    def set_init_step(self, step: int) -> None:
        """MindSpore counts iterations from here."""
        graph_mode.set_first_iteration(step)

    def register_custom_api(self, module: Any, api: str, api_prefix: str | None) -> None:
        """Nothing: a graph calls no Python function when it runs."""
        self._without_effect("register_custom_api()")

    def restore_custom_api(self, module: Any, api: str) -> None:
        """Nothing, as `register_custom_api()`."""

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        """Nothing: level debug is of recorded calls."""
        self._without_effect("save()")

    def dump_one_module(self, module: Any, name: str) -> None:
        """Nothing: `list` of config.json selects kernels by their scope."""
        self._without_effect("module_dump()")

    @property
    def run_directory(self) -> str:
        """What MindSpore writes of this rank."""
        return str(self._plan.tree(self._rank))

    def close(self) -> None:
        """Makes the statistics that are left.

        A process that is killed before leaves tensors, which `plumb dump-config finish` takes up.
        """
        with self._lock:
            finisher, self._finisher = self._finisher, None
        if finisher is None or os.getpid() != self._pid:
            return
        try:
            _rows, problems = finisher.finish()
        except (OSError, ValueError, _core.CorruptDataError) as error:
            _core.log_warning(f"statistics of graphs are not complete: {error}")
            return
        for problem in problems:
            _core.log_warning(problem)

    def _without_effect(self, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            _core.log_warning(f"{what}: has no effect on static graphs")


def _overrides(settings: Settings) -> _compare.GraphOverrides:
    return _compare.GraphOverrides(
        settings.task, settings.dump_path, settings.level, settings.step_json)


def _rank() -> int | None:
    text = os.environ.get("RANK_ID", "")
    return int(text) if text.isdigit() else None
