"""`print_struct`: what every module takes and gives, as module_struct.json."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plumbline import _core
from plumbline.watch.monitor_parts import Handle, MonitorParts


class ModuleStructure:
    """Looks at the first step of all modules of the models; the training ends after it."""

    def __init__(
        self, parts: MonitorParts, models: list[Any], printed: Callable[[str, set[str]], str]
    ) -> None:
        self._found: dict[str, dict[str, Any]] = {}
        self._handles: list[Handle] = []
        for stage, model in enumerate(models):
            taken: set[str] = set()
            for name, module in parts.modules(model):
                self._watch(f"{stage}:{printed(name, taken)}", module)

    @property
    def is_complete(self) -> bool:
        """Whether a module was seen."""
        return bool(self._found)

    def write(self, output: str, rank: int | None, config: _core.MonitorConfig) -> None:
        """Removes the hooks; the lowest selected rank writes the file, or each its own."""
        for handle in self._handles:
            handle.remove()
        own, folder = rank or 0, Path(output)
        if config.is_latest:
            folder = folder / "module_struct" / f"rank{own}"
        elif own != min(config.ranks or [0]):
            return
        os.makedirs(folder, mode=0o750, exist_ok=True)
        path = folder / "module_struct.json"
        path.write_text(json.dumps(self._found, indent=2), encoding="utf-8")

    def _watch(self, name: str, module: Any) -> None:
        def forward(_: Any, inputs: Any, outputs: Any) -> None:
            found = self._found.setdefault(name, {})
            found["input"], found["output"] = _described(inputs), _described(outputs)

        def backward(_: Any, inputs: Any, outputs: Any) -> None:
            found = self._found.setdefault(name, {})
            found["input_grad"], found["output_grad"] = _described(inputs), _described(outputs)

        self._handles.append(module.register_forward_hook(forward))
        register = getattr(module, "register_full_backward_hook", None)
        self._handles.append((register or module.register_backward_hook)(backward))


def _described(value: Any) -> dict[str, str]:
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        members = {str(at): _element(one) for at, one in enumerate(value)}
        return {"config": f"{kind}[{len(value)}]", **members}
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return {"config": "tensor", "tensor": _element(value)}
    return {"config": str(type(value))}


def _element(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"size={tuple(value.shape)}, dtype={value.dtype}"
    return str(type(value))
