"""The hooks around the calls of modules, as every framework has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from plumbline import _core
from plumbline.guards import CopyableHook


class ModuleHookTable:
    """The hooks of one process; registered while a window is open.

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

    def __len__(self) -> int:
        return len(self._modules)

    def fill(
        self, recorder: _core.Recorder, modules: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Takes modules given as (entry prefix, module); registers nothing yet."""
        if self._recorder is not recorder:
            self._recorder, self._hooks, self._autograd = recorder, {}, self._make_autograd()
        for prefix, module in modules:
            hook = self._hooks.get(prefix)
            if hook is None:
                hook = _core.ModuleHook(recorder, self._autograd, prefix, wants_backward)
                self._hooks[prefix] = hook
            self._modules.append((module, hook))

    def clear(self) -> None:
        """Forgets the modules and removes their hooks."""
        self._modules = []
        self.suspend()

    def resume(self) -> None:
        """Registers the hooks."""
        for module, hook in self._modules:
            before, after = CopyableHook(hook.before), CopyableHook(hook.after)
            self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            # always_call: a module that raises, or is left early by activation checkpointing, must
            # not stay the parent of later calls.
            self._handles.append(
                module.register_forward_hook(after, with_kwargs=True, always_call=True)
            )

    def suspend(self) -> None:
        """Removes them."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end_step(self) -> None:
        """Removes the hooks of parameters of the step."""
        for hook in self._hooks.values():
            hook.forget_parameters()
