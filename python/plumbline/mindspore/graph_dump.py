"""Level L2: MindSpore's own dump of static graphs, driven by config.json."""

from __future__ import annotations

import atexit
import json
import os
from typing import Any

from plumbline import _compare, _core
from plumbline.mindspore import graph_mode


class GraphDump:
    """Tells MindSpore what to dump, and makes statistics where MindSpore cannot.

    MindSpore reads its configuration when it compiles the first graph: construct this and call
    `start()` after mode and jit level are set, before the model is built.

    Args:
        config_path: config.json; without it the defaults with the arguments below.
        task: "statistics", "tensor", "overflow_check" or "exception_dump"; wins over the file.
        dump_path: output directory; wins over the file.
        level: must come to "L2"; wins over the file.
        step: iterations to record, counted from 0, as ints or "a-b" ranges; wins over the file.

    Raises:
        ValueError: a setting is unknown, of the wrong type, or impossible in this mode or on this
            device; the entry is named.
        FileNotFoundError: config_path does not exist.

    Example:
        >>> dump = GraphDump("config.json", level="L2")  # doctest: +SKIP
        >>> dump.start()                                 # doctest: +SKIP
    """

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        step: list[int | str] | None = None,
    ) -> None:
        steps = None if step is None else json.dumps(step)
        overrides = _compare.GraphOverrides(task, dump_path, level, steps)
        self._rank = _rank()
        place = _compare.GraphPlace(
            graph_mode.execution_mode(), graph_mode.device(), self._rank,
            graph_mode.hash_is_named_md5())
        self._plan = _compare.plan_graph_dump(config_path, overrides, place)
        for warning in self._plan.warnings:
            _core.log_warning(warning)
        self._finisher: Any = None
        self._started = False
        self._ended = False

    def start(self, model: Any = None) -> None:
        """Writes the dump configuration and sets the environment. Only the first call acts.

        Args:
            model: not needed: MindSpore dumps the whole graph.

        Raises:
            OSError: dump_path cannot be written.
        """
        if self._started or not self._plan.is_on:
            return
        self._started = True
        path = self._plan.write()
        for name in self._plan.removed_environment():
            os.environ.pop(name, None)
        os.environ.update(dict(self._plan.environment(path)))
        if self._plan.finishes:
            self._finisher = _compare.GraphFinisher(self._plan, self._rank)
        atexit.register(self.finish)

    def stop(self) -> None:
        """Nothing: the configuration says which iterations are dumped."""

    def step(self) -> None:
        """After an iteration: makes statistics of what is complete, in the background."""
        if self._finisher is not None and not self._ended:
            self._finisher.begin()

    def finish(self) -> None:
        """Makes the statistics that are left. Runs by itself when the process ends.

        A process that is killed before leaves tensors, which `plumb dump-config finish` takes up.
        """
        if self._finisher is None or self._ended:
            return
        self._ended = True
        try:
            _rows, problems = self._finisher.finish()
        except (OSError, ValueError, _core.CorruptDataError) as error:
            _core.log_warning(f"statistics of graphs are not complete: {error}")
            return
        for problem in problems:
            _core.log_warning(problem)


def _rank() -> int | None:
    text = os.environ.get("RANK_ID", "")
    return int(text) if text.isdigit() else None
