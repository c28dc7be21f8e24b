"""Functions and cells that MindSpore compiles (`jit`): one entry for each call of them."""

from __future__ import annotations

from typing import Any

from mindspore.common import api

from plumbline import _core
from plumbline.guards import Hooks


class JitCalls:
    """Records calls of compiled functions as `Jit.{function}.{n}`.

    The compiler reads the source of what is called and must find the originals there: `hooks` are
    suspended while a compiled function runs.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._recorder: _core.Recorder | None = None
        self._patches = _core.PatchSet()
        self._original: Any = api._JitExecutor.__call__

        def call(executor: Any, *args: Any, **kwargs: Any) -> Any:
            return self._call(executor, args, kwargs)

        call.__wrapped__ = self._original  # type: ignore[attr-defined]
        self._patches.add(api._JitExecutor, "__call__", call)

    def install(self, recorder: _core.Recorder) -> None:
        """Begins to record."""
        self._recorder = recorder
        self._patches.apply()

    def uninstall(self) -> None:
        """Ends it."""
        self._patches.restore()

    def _call(self, executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._recorder is None:
            return self._original(executor, *args, **kwargs)
        # A method's first argument is its object.
        owner = args[:1] if executor.obj is not None else ()

        def run(*values: Any, **named: Any) -> Any:
            self._hooks.suspend()
            try:
                return self._original(executor, *owner, *values, **named)
            finally:
                self._hooks.resume()

        probe: Any = self._recorder.probe(run, f"Jit.{_name_of(executor)}", False)
        return probe(*args[len(owner) :], **kwargs)


def _name_of(executor: Any) -> str:
    """The function's name; that of its class for a cell's construct."""
    name = str(getattr(executor.fn, "__name__", "JitFunction"))
    if name == "construct" and executor.obj is not None:
        return type(executor.obj).__name__
    return name
