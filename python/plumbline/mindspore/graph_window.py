"""Static graphs: MindSpore's own dump, driven by config.json, in place of recorded calls."""

from __future__ import annotations

import os
from typing import Any

import mindspore as ms

from plumbline import _compare, _core
from plumbline.call_window import Settings, Window
from plumbline.mindspore import graph_mode

_marked: list[Any] = []  # what set_dump() was given


def set_dump(target: Any, enabled: bool = True) -> None:
    """Dumps the kernels of one cell or primitive, on every device: call it before `start(model)`.

    With an empty `list` in config.json these alone are dumped, forward and backward; `model` says
    where `target` is. A primitive stands for all of its name in its cell; one that the model
    itself has, for all of its name.

    Args:
        target: a Cell, with all that it calls, or a Primitive that is an attribute of a cell.
        enabled: False takes the mark away.

    Raises:
        ValueError: an argument is of the wrong type.

    Example:
        >>> set_dump(net.attention); debugger.start(net)  # doctest: +SKIP
    """
    if not isinstance(target, (ms.nn.Cell, ms.ops.Primitive)):
        raise ValueError('The "target" parameter must be an instance of Cell or Primitive, but '
                         f"got an instance of {type(target)}.")
    if not isinstance(enabled, bool):
        raise ValueError('The "enabled" parameter must be bool.')
    _marked[:] = [one for one in _marked if one is not target]
    if enabled:
        _marked.append(target)


class GraphWindow(Window):
    """Tells MindSpore what to dump, and has statistics made where MindSpore cannot.

    MindSpore reads its configuration when it compiles the first graph: the debugger is constructed
    and started after mode and jit level are set, before the model runs. A process that is killed
    leaves tensors, which `plumb dump-config finish` takes up.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._run = _compare.plan_graph_dump(*settings, graph_mode.place())
        self._say_problems()

    @staticmethod
    def is_asked_for(settings: Settings) -> bool:
        """In GRAPH_MODE, and by level L2, which means parts under jit."""
        return graph_mode.execution_mode() != "pynative" or _compare.asks_for_kernels(*settings)

    def start(self, model: Any, tokens: tuple[int, int] | None, rank_id: int | None) -> None:
        """Writes the dump configuration and sets the environment. Only the first call acts."""
        if tokens is not None or rank_id is not None:
            self.warn_once("start(): token_range and rank_id have no effect on static graphs")
        if _marked and not isinstance(model, ms.nn.Cell):
            self.warn_once("set_dump(): has no effect. Call start(model=...) with the network")
        elif _marked:
            self._run.select_scopes(graph_mode.scopes_of(model, _marked))
        wanted, unwanted = self._run.start()
        for name in unwanted:
            os.environ.pop(name, None)
        os.environ.update(wanted)
        self._say_problems()

    def step(self) -> None:
        """After an iteration: makes statistics of what is complete, in the background."""
        self._run.step()

    def set_init_step(self, step: int) -> None:
        """MindSpore counts iterations from here."""
        if not self._run.set_first_iteration(step) and not graph_mode.set_first_iteration(step):
            self.warn_once("set_init_step(): has no effect. Call it before start()")

    def dump_one_module(self, module: Any, name: str) -> None:
        self.warn_once(f"module_dump(): has no effect {self.without}. set_dump() marks cells")

    @property
    def run_directory(self) -> str:
        """What MindSpore writes of this rank."""
        return self._run.tree

    def close(self) -> None:
        """Makes the statistics that are left."""
        self._run.close()
        self._say_problems()

    def _say_problems(self) -> None:
        for problem in self._run.take_problems():
            _core.log_warning(problem)
