"""The hooks around the calls of modules, as every framework has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from plumbline import _core
from plumbline.guards import CopyableHook


class ModuleHooksBase:
    """The hooks of one process; installed while a window is open.

    What a hook does is native (`python/bindings/module_hook.h`). A module keeps its hook, and with
    it the gradients that still arrive, as long as the recorder is the same.

    Args:
        autograd: makes what the hooks must know of the framework's autograd; called late, because
            old versions lack parts of it.
    """

    def __init__(self, autograd: Callable[[], _core.Autograd]) -> None:
        self._make_autograd = autograd
        self._modules: list[tuple[Any, _core.ModuleHook]] = []
        self._handles: list[Any] = []
        self._hooks: dict[str, _core.ModuleHook] = {}
        self._recorder: _core.Recorder | None = None
        self._autograd: Any = None

    def install(
        self, recorder: _core.Recorder, modules: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Hooks modules given as (entry prefix, module); idempotent."""
        if self._modules:
            return
        if self._recorder is not recorder:
            self._recorder, self._hooks, self._autograd = recorder, {}, self._make_autograd()
        for prefix, module in modules:
            if not self._takes_hooks(recorder, prefix, module):
                continue
            hook = self._hooks.get(prefix)
            if hook is None:
                hook = _core.ModuleHook(recorder, self._autograd, prefix, wants_backward)
                self._hooks[prefix] = hook
            self._modules.append((module, hook))
        self._begin(recorder)
        self.resume()

    def uninstall(self) -> None:
        """Removes the hooks around modules; idempotent."""
        self._end()
        self._modules = []
        self.suspend()

    def _takes_hooks(self, recorder: _core.Recorder, prefix: str, module: Any) -> bool:
        """Whether hooks of this module see all of its calls."""
        return True

    def _begin(self, recorder: _core.Recorder) -> None:
        """A window opens; no hook is registered yet."""

    def _end(self) -> None:
        """It closes, or was closed before; the hooks are still registered."""

    def resume(self) -> None:
        """Registers the hooks."""
        for module, hook in self._modules:
            before, after = CopyableHook(hook.before), CopyableHook(hook.after)
            self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            self._handles.append(self._register_after(module, after))

    def _register_after(self, module: Any, after: CopyableHook) -> Any:
        """always_call: a module that raises, or is left early by activation checkpointing, must not
        stay the parent of later calls.
        """
        return module.register_forward_hook(after, with_kwargs=True, always_call=True)

    def suspend(self) -> None:
        """Removes them."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end_step(self) -> None:
        """Removes the hooks of parameters of the step."""
        for hook in self._hooks.values():
            hook.forget_parameters()
