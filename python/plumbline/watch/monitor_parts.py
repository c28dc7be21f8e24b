"""What a framework must provide to be watched by a training monitor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from plumbline import _core

AdamRule = tuple[float, float, float, float]
"""Both betas, eps, and how many steps the moments hold (at least 1)."""


class Handle(Protocol):
    """A hook that can be taken away."""

    def remove(self) -> None:
        """Takes it away; what was there before is there again, by identity."""


class CommunicationHooks(Handle, Protocol):
    """Hooks around communication functions, which can be put there again and again."""

    watch: _core.CommunicationWatch
    is_wanted: Callable[[str], bool]  # asked at each outermost call

    def apply(self) -> None:
        """Puts them there."""


class MonitorParts(Protocol):
    """One framework. Reads attributes, registers and removes hooks; computes nothing."""

    def rank(self) -> int | None:
        """Global rank; None without a process group."""

    def group_place(self, group: Any) -> tuple[int, list[int]]:
        """This process's rank within `group` and the global ranks in it; (0, [0]) without one."""

    def framework_parts(self) -> dict[str, Any]:
        """Types and callables for `_core.new_live_monitor`."""

    def autograd(self) -> _core.Autograd:
        """What following gradients needs."""

    def is_recomputing(self) -> Callable[[], bool] | None:
        """Tells whether a call of a module is made again for a backward pass."""

    def is_model(self, value: Any) -> bool:
        """Whether it is a module that can be watched."""

    def is_optimizer(self, value: Any) -> bool:
        """Whether it has steps that can be watched."""

    def modules(self, model: Any) -> Iterable[tuple[str, Any]]:
        """All modules of `model` by name, itself first with an empty name."""

    def parameters(self, model: Any, with_frozen: bool = False) -> Iterable[tuple[str, Any]]:
        """Its parameters that are trained, or all, by name."""

    def watch_module(self, module: Any, watch: _core.ModuleWatch) -> list[Handle]:
        """Registers the hooks of `watch` around the calls of `module`."""

    def count_calls(self, model: Any, hook: Callable[..., None]) -> list[Handle]:
        """Calls `hook` at every call of the outermost module, also in steps that are not watched;
        nothing where that costs more than the call.
        """

    def watch_calls(self, module: Any, hook: Callable[..., None]) -> Handle:
        """Calls `hook` before every call of `module`."""

    def communication_hooks(
        self, live: _core.LiveMonitor, before: bool, is_wanted: Callable[[str], bool]
    ) -> CommunicationHooks | None:
        """Hooks around communication functions, not applied yet; None: there are none.

        `before`: values are read before calls too. `is_wanted`: asked at each outermost call.
        """

    def watch_gradients(
        self, models: list[Any], parameters: list[tuple[Any, _core.WatchedName]],
        live: _core.LiveMonitor, autograd: _core.Autograd, batches: tuple[int, bool],
    ) -> list[Handle]:
        """Adds the gradients of parameters before ranks combine them; `batches`: how many
        micro-batches a step has, and whether each is a row.
        """

    def watch_steps(
        self, optimizer: Any, before: Callable[[], None], after: Callable[[], None]
    ) -> Handle:
        """Calls `before` and `after` around every step of the optimizer."""

    def gradient(self, parameter: Any, optimizer: Any, prefers_main: bool) -> Any:
        """What the optimizer reads, or None."""

    def moments(self, parameter: Any, optimizer: Any) -> tuple[Any, Any]:
        """First and second moment; None where there is none."""

    def adam_rules(self, parameters: list[Any], optimizer: Any) -> list[AdamRule | None]:
        """Of each parameter, before the step; None where the optimizer has no such numbers."""

    def is_duplicate(self, parameter: Any, tp_group: Any, dp_group: Any) -> bool:
        """Whether another rank reports this parameter's reduced gradient."""

    def scalar(self, number: float) -> Any:
        """A tensor without dimensions."""
