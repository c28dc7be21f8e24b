"""module_dump: record one module as a whole, without what happens inside it."""

from __future__ import annotations

from typing import Any

from plumbline.debugger import DebuggerBase


def module_dump(module: Any, dump_name: str) -> None:
    """Records calls of `module` as `Module.{dump_name}.{Class}` until `module_dump_end()`.

    Inside, neither its children nor APIs are recorded. Call it between `start()` and `stop()`.

    Args:
        module: the module to record.
        dump_name: its name in the entries.

    Raises:
        ValueError: an argument is of the wrong type.
        RuntimeError: no PrecisionDebugger was constructed.

    Example:
        >>> module_dump(model.encoder, "encoder")  # doctest: +SKIP
    """
    # Of every framework; wrong arguments are said before a missing debugger, as upstream does.
    if not callable(getattr(module, "register_forward_hook", None)):
        raise ValueError(f"module_dump: module must be a Module (got {type(module).__name__})")
    if not isinstance(dump_name, str):
        raise ValueError(f"module_dump: dump_name must be a string (got {dump_name!r})")
    with DebuggerBase._locked() as window:
        window.dump_one_module(module, dump_name)


def module_dump_end() -> None:
    """Ends what `module_dump()` began.

    Raises:
        RuntimeError: no PrecisionDebugger was constructed.
    """
    with DebuggerBase._locked() as window:
        window.dump_one_module(None, "")
