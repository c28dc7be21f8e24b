"""Runs test functions in processes that have the test device, apart from pytest's own process.

A server imports torch, which loads the device by itself, and the test module; it forks for every
test. So no other test sees the device, a test may crash it, and each begins with an unused one.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "test_device"

_SERVER = """
import importlib, json, os, sys, traceback
import torch
torch.set_num_threads(1)
module = importlib.import_module(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        break
    print(os.waitpid(child, 0)[1], flush=True)
else:
    os._exit(0)
log = os.open(job["log"], os.O_WRONLY | os.O_CREAT)
os.dup2(log, 1)
os.dup2(log, 2)
status = 1
try:
    getattr(module, job["function"]).__wrapped__(**job["arguments"])
    status = 0
except BaseException:
    traceback.print_exc()
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)
"""


@functools.cache
def _build() -> None:
    subprocess.run([sys.executable, str(ROOT / "tests/test_device/build.py")], check=True,
                   stdout=subprocess.DEVNULL)


def device_environment(**more: str) -> dict[str, str]:
    """The environment of a process that has the device, which is built if it is not."""
    _build()
    paths = [str(FOLDER), str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(":")]
    return os.environ | {"PYTHONPATH": ":".join(path for path in paths if path)} | more


@dataclass(frozen=True)
class Ended:
    """How a test ended in its own process: exit status, negative for a signal, and its output."""

    status: int
    text: str


class _Server:
    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, module], env=device_environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(self._process.kill)
        if self._answer() != "ready":
            raise RuntimeError("the server of test device runs did not start")

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def run(self, function: str, arguments: dict[str, Any]) -> Ended:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "log")
            job = {"function": function, "arguments": arguments, "log": str(log)}
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            status = os.waitstatus_to_exitcode(int(self._answer()))
            return Ended(status, log.read_text(errors="replace") if log.exists() else "")


@functools.cache
def _server(module: str) -> _Server:
    return _Server(module)


def run_on_device(function: Callable[..., None], **arguments: Any) -> Ended:
    """Runs the body of a function marked `@on_device` or `@device_program`."""
    return _server(function.__module__).run(function.__name__, arguments)


def device_program(function: Callable[..., None]) -> Callable[..., Ended]:
    """A function whose body runs in a process with the device, and which returns how it ended."""
    @functools.wraps(function)
    def run(**arguments: Any) -> Ended:
        return run_on_device(function, **arguments)
    return run


def on_device(function: Callable[..., None]) -> Callable[..., None]:
    """A test whose body runs in a process with the device and has to end well."""
    @functools.wraps(function)
    def test(**arguments: Any) -> None:
        ended = run_on_device(function, **arguments)
        assert ended.status == 0, f"{signal_name(ended.status)}\n{ended.text}"
    return test


def signal_name(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"
