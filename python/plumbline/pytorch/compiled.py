"""What torch.compile compiles is left alone: traced and run without probes and without hooks."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import torch

from plumbline import _core
from plumbline.guards import HookGroup, Hooks, around_outermost


class CompiledRegions:
    """Suspends probes while a compiled region runs, and module hooks while one is compiled."""

    def __init__(self) -> None:
        self._recorder: _core.Recorder | None = None
        self._probes, self._traced = HookGroup(), HookGroup()
        self._switch = _core.PatchSet()
        self._compile = _core.PatchSet()
        self._compile.add(torch, "compile", self._watched(torch.compile))

    def join(self, recorder: _core.Recorder, hooks: Hooks, is_traced: bool) -> None:
        """`is_traced`: the compiler sees these hooks; what it has compiled does not run them."""
        self._recorder = recorder
        (self._traced if is_traced else self._probes).add(hooks)
        if not self._compile.is_applied:
            self._compile.apply()
        self.watch()

    def leave(self, hooks: Hooks) -> None:
        """Undoes `join`."""
        self._probes.remove(hooks)
        self._traced.remove(hooks)
        if self._probes or self._traced:
            return
        self._compile.restore()
        if self._switch.is_applied:
            self._switch.restore()
            handler: Any = sys.modules["torch._dynamo.callback"].callback_handler
            with contextlib.suppress(ValueError):  # torch._dynamo.reset() has forgotten them
                handler.remove_start_callback(self._compile_begins)
                handler.remove_end_callback(self._compile_ends)

    def watch(self) -> None:
        """Watches the compiler, once it is loaded."""
        frames: Any = sys.modules.get("torch._dynamo.eval_frame")
        handler: Any = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
        switch = getattr(frames, "_maybe_set_eval_frame", None)
        if self._switch.is_applied or switch is None or handler is None:
            return
        if len(self._switch) == 0:
            around = around_outermost(switch, self._begin, self._probes.resume)
            self._switch.add(frames, "_maybe_set_eval_frame", around)
        self._switch.apply()
        handler.register_start_callback(self._compile_begins)
        handler.register_end_callback(self._compile_ends)

    def _watched(self, original: Any) -> Any:
        def compile(*args: Any, **kwargs: Any) -> Any:
            import torch._dynamo  # noqa: F401 -- loads what is watched

            self.watch()
            return original(*args, **kwargs)

        return compile

    def _begin(self) -> None:
        self._probes.suspend()
        if self._recorder is not None:
            self._recorder.count_loss("compiled_regions", "calls inside a torch.compile region")

    def _compile_begins(self, _: object) -> None:
        self._traced.suspend()

    def _compile_ends(self, _: object) -> None:
        self._traced.resume()
