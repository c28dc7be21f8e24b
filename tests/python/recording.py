"""Runs small programs in fresh interpreters: the debugger is one per process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from warm_python import OPTIMIZER, server, server_for

_BESIDE = Path(sys.executable).with_name("plumb")
# The program under test: named by the environment, else beside this interpreter, else on PATH.
PLUMB = os.environ.get("PLUMB") or (str(_BESIDE) if _BESIDE.exists() else shutil.which("plumb"))
assert PLUMB, "plumb is not installed and PLUMB is not set"


# For programs that run examples, which record at a level of their own.
AT_LEVEL = """
def at_level(level):
    import plumbline.pytorch
    original = plumbline.pytorch.PrecisionDebugger
    plumbline.pytorch.PrecisionDebugger = lambda **words: original(**{**words, "level": level})
"""


def config(directory: Path, **options: Any) -> Path:
    """Writes config.json below `directory`; task options go into the task's section."""
    common = {"task", "level", "step", "rank", "dump_path"}
    task = options.setdefault("task", "statistics")
    top = {key: value for key, value in options.items() if key in common}
    top.setdefault("dump_path", str(directory / "out"))
    top.setdefault("level", "L1")
    top[task] = {key: value for key, value in options.items() if key not in common}
    path = directory / "config.json"
    path.write_text(json.dumps(top))
    return path


def run(code: str, *arguments: Any, check: bool = True,
        fresh: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs Python source; its arguments are in sys.argv[1:]. `fresh`: without a torch that is
    imported already, for programs to which that makes a difference."""
    environment = dict(os.environ, PLUMBLINE_LOG_LEVEL="2")
    words = [str(argument) for argument in arguments]
    if "torch" in code and not fresh:
        result = server_for(code).run(["-c", code, *words], environment)
    else:
        result = subprocess.run([sys.executable, "-c", code, *words], capture_output=True,
                                text=True, env=environment, timeout=300, check=False)
    if check and result.returncode != 0:
        raise AssertionError(f"exit {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result


def run_script(path: Path, *arguments: Any,
               environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a Python program that has an optimizer, without warnings; it must end well."""
    result = server(OPTIMIZER).run(["-W", "ignore", path, *arguments],
                                   environment or dict(os.environ, PLUMBLINE_LOG_LEVEL="2"))
    if result.returncode != 0:
        raise AssertionError(f"exit {result.returncode}\n{result.stdout[-3000:]}\n"
                             f"{result.stderr[-3000:]}")
    return result


def dump(directory: Path, step: int = 0) -> dict[str, Any]:
    """The entries of a step's dump.json."""
    text = (directory / "out" / f"step{step}" / "rank" / "dump.json").read_text()
    entries: dict[str, Any] = json.loads(text)["data"]
    return entries
