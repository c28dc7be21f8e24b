"""Where calls come from: `stack_info` of a monitor, and the stacks of communication calls."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from plumbline.watch.monitor_parts import Handle, MonitorParts

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def frames() -> Iterator[tuple[str, int, str]]:
    """(path, line, function) of the running call, innermost first, without plumbline's frames."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OWN_FOLDER):
            yield code.co_filename, frame.f_lineno, code.co_name
        frame = frame.f_back


class ModuleStacks:
    """The stack of the first call of every module, seen in one step."""

    def __init__(
        self, parts: MonitorParts, models: list[Any], printed: Callable[[str, set[str]], str]
    ) -> None:
        self._parts = parts
        self._modules: list[tuple[str, Any]] = []
        self._found: dict[str, str] = {}
        for model in models:
            taken: set[str] = set()
            self._modules += [(printed(name, taken), module)
                              for name, module in parts.modules(model)]

    def watch(self) -> list[Handle]:
        """Hooks around the calls of all modules."""
        return [self._parts.watch_calls(module, self._hook(name)) for name, module in self._modules]

    def rows(self) -> list[list[str]]:
        """stack_info.csv: a row for every module that was called."""
        return [["module_name", "stack_info"], *map(list, self._found.items())]

    def _hook(self, name: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if name not in self._found:
                self._found[name] = _text()
        return hook


def _text() -> str:
    return "".join(
        f"File {path}, line {line}, in {function}, \n {linecache.getline(path, line).strip()} \n"
        for path, line, function in frames())
