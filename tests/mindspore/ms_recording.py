"""Recording in this process: importing MindSpore takes longer than all runs of a test file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plumbline.debugger import DebuggerBase
from plumbline.mindspore import PrecisionDebugger


def new_debugger(directory: Path, **options: Any) -> Any:
    """A debugger that writes below `directory`/out, in place of the process's earlier one."""
    if DebuggerBase._instance is not None:
        DebuggerBase._instance._close()
        DebuggerBase._instance = None
    common = {"task", "level", "step", "rank", "dump_path", "async_dump"}
    task = options.setdefault("task", "statistics")
    top = {key: value for key, value in options.items() if key in common}
    top.setdefault("dump_path", str(directory / "out"))
    top[task] = {key: value for key, value in options.items() if key not in common}
    path = directory / "config.json"
    path.write_text(json.dumps(top))
    return PrecisionDebugger(str(path))


def read(directory: Path, name: str = "dump", step: int = 0) -> Any:
    """One JSON file of a step."""
    return json.loads((directory / f"out/step{step}/rank/{name}.json").read_text())


def entries(directory: Path, step: int = 0) -> dict[str, Any]:
    """The entries of a step's dump.json."""
    data: dict[str, Any] = read(directory, step=step)["data"]
    return data


def assert_nothing_lost(directory: Path) -> None:
    """No step says that something could not be recorded."""
    logs = list(directory.glob("out/*/*/dump_error_info.log"))
    assert not logs, logs[0].read_text()


def tensors(value: Any) -> list[dict[str, Any]]:
    """Every tensor in an entry, in order."""
    if isinstance(value, dict):
        if value.get("type") == "mindspore.Tensor":
            return [value]
        value = list(value.values())
    if not isinstance(value, list):
        return []
    return [tensor for item in value for tensor in tensors(item)]
