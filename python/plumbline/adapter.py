"""The Adapter protocol: all that a framework must provide to be recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from plumbline import _core
from plumbline.api_hooks import ApiHooksBase
from plumbline.module_hooks import ModuleHooksBase


class Adapter(Protocol):
    """One framework, as the debugger sees it.

    An adapter registers and removes hooks, wraps and restores functions, reads attributes of
    framework objects and hands memory to `_core`. It names no file, counts no call, formats no
    number and decides nothing about what is observed.
    """

    @property
    def name(self) -> str:
        """Stored as `framework` in dump.json: "pytorch", "mindspore"."""

    @property
    def module_prefix(self) -> str:
        """First part of the names of modules' entries: "Module", "Cell"."""

    modules_since: tuple[int, ...]
    """First version whose modules can be recorded (levels L0 and mix)."""

    def version(self) -> tuple[int, ...]:
        """Version of the framework, parsed once."""

    def rank(self) -> int | None:
        """Global rank; None until the distributed layer is up. Never raises."""

    def is_module(self, value: object) -> bool:
        """Whether `value` is a module of the framework."""

    def framework_parts(self) -> dict[str, Any]:
        """Types and callables of the framework that `_core.new_recorder` asks for."""

    def use_recorder(self, recorder: _core.Recorder) -> None:
        """`recorder` was made of the parts, in place of an earlier one."""

    def send_values(self) -> None:
        """Values that were left on a device are sent for: the window closes, or the step ends."""

    def receive_values(self) -> None:
        """Waits until they are there: the recorder ends."""

    def apis(self) -> Iterable[tuple[str, str, object, str]]:
        """Wrapped APIs as (prefix, name, owner, attribute): owner.attribute is replaced."""

    def use_model(self, models: Iterable[Any]) -> None:
        """`start()` was given these models, at any level."""

    def install_apis(self, recorder: _core.Recorder, with_regions: bool) -> None:
        """Starts recording API calls; idempotent.

        With `with_regions`, calls inside the optimizer and gradient clipping get those as parent.
        """

    def uninstall_apis(self) -> None:
        """Restores every replaced attribute by identity; idempotent."""

    def install_modules(
        self, recorder: _core.Recorder, modules: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Hooks modules given as (entry prefix "Module.name.Class", module); idempotent."""

    def uninstall_modules(self) -> None:
        """Removes the module hooks; gradients of recorded calls still arrive until `end_step`."""

    def operator_records(self, recorder: _core.Recorder) -> Any:
        """A context manager that records every operator inside and counts them in `calls`."""

    def next_node_number(self) -> int:
        """Number that the next node of the autograd graph will get on this thread."""

    def kernel_dump_device(self) -> Any:
        """What dumps a device's kernels (init_dump, set_dump, finalize_dump); or None."""

    def second_runs(self) -> Any:
        """What running a call again takes: `plumbline.watch.perturbation.SecondRuns`."""

    def watch_calls(self, module: Any, callback: Callable[..., None]) -> Any:
        """Calls `callback` before every call of `module`; returns a handle with `remove()`."""

    def install_batches(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        """Calls `before` a data loader fetches a batch and `after` it has one; idempotent."""

    def uninstall_batches(self) -> None:
        """Restores the data loader; idempotent."""

    def new_gradients(self) -> Any:
        """Where gradients are to be found (plumbline.watch.grad_probe.Gradients)."""

    def end_step(self) -> None:
        """Forgets what belonged to the step that ended."""

    def module_tree(self, model: Any) -> Iterable[tuple[str, Any]]:
        """Sub-modules of `model` as (qualified name, module), depth first, without the root."""

    def seed(self, seed: int, deterministic: bool, remove_dropout: bool) -> None:
        """Fixes every random generator of the framework."""


class HookedAdapter:
    """What the adapters of frameworks share: hooks of APIs and of modules, versions, call hooks."""

    def __init__(self, apis: ApiHooksBase, modules: ModuleHooksBase) -> None:
        self._apis = apis
        self._modules = modules

    def use_recorder(self, recorder: _core.Recorder) -> None:
        """Nothing: no values come later."""

    def send_values(self) -> None:
        """Nothing."""

    def receive_values(self) -> None:
        """Nothing."""

    def install_apis(self, recorder: _core.Recorder, with_regions: bool) -> None:
        """Starts recording API calls."""
        self._apis.install(recorder, with_regions)

    def uninstall_apis(self) -> None:
        """Restores every replaced attribute."""
        self._apis.uninstall()

    def install_modules(
        self, recorder: _core.Recorder, modules: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Hooks modules."""
        self._modules.install(recorder, modules, wants_backward)

    def uninstall_modules(self) -> None:
        """Removes the hooks of modules."""
        self._modules.uninstall()

    def end_step(self) -> None:
        """Removes the parameter hooks of the step."""
        self._modules.end_step()

    def watch_calls(self, module: Any, callback: Callable[..., None]) -> Any:
        """A forward pre hook."""
        return module.register_forward_pre_hook(callback)


def version_numbers(text: str) -> tuple[int, ...]:
    """(2, 13, 0) of "2.13.0+cpu"."""
    return tuple(int(part) for part in text.split("+")[0].split(".")[:3] if part.isdigit())
