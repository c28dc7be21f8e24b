"""The recorders that the end-to-end benchmarks measure, behind one small interface."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent

# name -> (level, task, summary_mode)
MODES = {
    "L0": ("L0", "statistics", "statistics"),
    "L1": ("L1", "statistics", "statistics"),
    "L1_async": ("L1", "statistics", "statistics"),
    "mix": ("mix", "statistics", "statistics"),
    "L0_md5": ("L0", "statistics", "md5"),
    "L1_md5": ("L1", "statistics", "md5"),
    "mix_md5": ("mix", "statistics", "md5"),
    "L1_tensor": ("L1", "tensor", "statistics"),
    # Searching tasks, on a model that has nothing to find.
    "L1_overflow": ("L1", "overflow_check", ""),
    "L1_nan": ("L1", "nan_check", ""),
}
TOOLS = ("plumbline", "upstream-1.2.2", "upstream-26.2.0", "debugmode", "none")
NEVER = 1_000_000  # a step number that no benchmark reaches


def python_of(tool: str) -> str:
    """The interpreter whose environment holds `tool`."""
    if tool.startswith("upstream-"):
        version = tool.removeprefix("upstream-")
        path = ROOT / "build" / "upstream" / version / "bin" / "python"
        if not path.exists():
            raise SystemExit(f"{path}: missing. Run tools/bootstrap.sh upstream")
        return str(path)
    return sys.executable


class WorkerProcess:
    """A benchmark's own worker: a line goes in, a line comes back.

    Args:
        command: of the worker, which prints a line when it is ready.
        name: for messages.
    """

    def __init__(self, command: list[str], name: str) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True)
        self._name = name
        self._read()

    def ask(self, line: str) -> str:
        """What the worker answers."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name}: the worker ended early (status "
                               f"{self._process.wait()}); set BENCH_SHOW_ERRORS=1 to see why")
        return line


def write_config(path: Path, mode: str, dump_path: Path) -> None:
    """Writes a config.json for one of MODES, or for "closed": a window that never opens."""
    level, task, summary = MODES.get(mode, ("mix", "statistics", "statistics"))
    section: dict[str, Any] = {"scope": [], "list": [], "data_mode": ["all"]}
    if summary:
        section["summary_mode"] = summary
    if task == "overflow_check":
        section["overflow_nums"] = -1
    config = {
        "task": task,
        "dump_path": str(dump_path),
        "rank": [],
        "step": [NEVER] if mode == "closed" else [],
        "level": level,
        "async_dump": mode.endswith("_async"),
        task: section,
    }
    path.write_text(json.dumps(config, indent=2))
    path.chmod(0o640)


class NoRecorder:
    """Stands in for a recorder where nothing is recorded."""

    def start(self, model: Any) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""

    def step(self) -> None:
        """Nothing."""


class DebugModeRecorder(NoRecorder):
    """torch's own DebugMode, which keeps its records in memory."""

    def __init__(self, hashes: bool):
        self._hashes = hashes
        self._open: list[Any] = []
        self.records = 0

    def start(self, model: Any) -> None:
        from torch.utils._debug_mode import DebugMode

        mode = DebugMode()
        self._open = [mode]
        if self._hashes:
            self._open.append(DebugMode.log_tensor_hashes(hash_inputs=True))
        for context in self._open:
            context.__enter__()

    def stop(self) -> None:
        for context in reversed(self._open):
            context.__exit__(None, None, None)
        self.records = len(self._open[0].operators)


def make_recorder(tool: str, mode: str, work: Path) -> Any:
    """A recorder with start(model), stop() and step(), writing under `work`/dump.

    Call it after the model's libraries are imported: upstream patches what they import.
    """
    if tool == "none":
        return NoRecorder()
    if tool == "debugmode":
        return DebugModeRecorder(hashes=mode == "hashes")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    config = work / "config.json"
    write_config(config, mode, work / "dump")
    if tool == "plumbline":
        from plumbline.pytorch import PrecisionDebugger
    else:
        from msprobe.pytorch import PrecisionDebugger
    return PrecisionDebugger(config_path=str(config))


def entries_of(step_dir: Path) -> int:
    """Number of entries in the one dump.json under a step directory; 0 if there is none."""
    found = list(step_dir.glob("*/dump.json"))
    if len(found) != 1:
        return 0
    with found[0].open() as stream:
        return len(json.load(stream)["data"])


def files_and_bytes(folder: Path) -> tuple[int, int]:
    """Number of names under `folder`, and bytes on disk with hard links counted once."""
    names, total = 0, 0
    seen: set[int] = set()
    for path in folder.rglob("*"):
        if path.is_file():
            names += 1
            status = path.stat()
            if status.st_ino not in seen:
                seen.add(status.st_ino)
                # Allocated blocks: a hole in a file costs no disk. Never more than the file's size,
                # so that partly used last blocks do not count against any tool.
                total += min(status.st_size, 512 * status.st_blocks)
    return names, total
