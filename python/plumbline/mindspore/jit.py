"""Functions and cells that MindSpore compiles (`jit`): one entry for each call of them."""

from __future__ import annotations

from typing import Any

from plumbline import _core
from plumbline.guards import HookGroup, Hooks
from plumbline.mindspore.executor import api


class JitCalls:
    """Lets the compiler see what it compiles: probes and hooks step aside meanwhile.

    It reads the source of all that is called, and compiles the hooks of cells.
    """

    def __init__(self) -> None:
        self._members = HookGroup()
        self._recorder: _core.Recorder | None = None
        self._patches = _core.PatchSet()
        self._original: Any = api._JitExecutor.__call__

        def call(executor: Any, *args: Any, **kwargs: Any) -> Any:
            return self._call(executor, args, kwargs)

        call.__wrapped__ = self._original  # type: ignore[attr-defined]
        self._patches.add(api._JitExecutor, "__call__", call)

    def join(self, hooks: Hooks, recorder: _core.Recorder | None) -> None:
        """`recorder`: records the calls as `Jit.{function}.{n}` while `hooks` take part."""
        self._members.add(hooks)
        self._recorder = recorder or self._recorder
        self._patches.apply()

    def leave(self, hooks: Hooks) -> None:
        """Undoes `join`."""
        self._members.remove(hooks)
        if not self._members:
            self._recorder = None
            self._patches.restore()

    def _call(self, executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # A method's first argument is its object, which is no value.
        owner = args[:1] if executor.obj is not None else ()

        def run(*values: Any, **named: Any) -> Any:
            with self._members.aside():
                return self._original(executor, *owner, *values, **named)

        if self._recorder is None:
            return run(*args[len(owner) :], **kwargs)
        probe: Any = self._recorder.probe(run, f"Jit.{_name_of(executor)}", False)
        return probe(*args[len(owner) :], **kwargs)


def _name_of(executor: Any) -> str:
    """The function's name; that of its class for a cell's construct."""
    name = str(getattr(executor.fn, "__name__", "JitFunction"))
    if name == "construct" and executor.obj is not None:
        return type(executor.obj).__name__
    return name
