"""Interpreters for `plumb` that begin with PyTorch imported, which takes others two seconds.

What `plumb` starts (PLUMBLINE_PYTHON, --python) is a launcher of a few milliseconds. It hands its
arguments, environment and descriptors to a server, which has imported the packages and forks a
process that runs the module (-m) or the text (-c). If the launcher ends, or `plumb` closes it, that
process is killed with all that it started. Tests of starting and leaving processes behind use
sys.executable.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_numbers = itertools.count()

_LAUNCHER = """#!{python} -IS
import os, sys
words = sys.argv[1:]
files = []
for number in range(240):
    try:
        os.fstat(number)
        files.append(number)
    except OSError:
        pass
if len(words) < 2 or words[0] not in ("-m", "-c") or len(files) > 230:
    os.execv({python!r}, [{python!r}, *words])
import socket
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect("\\0" + {address!r})
job = repr({{"words": words, "cwd": os.getcwd(), "environment": dict(os.environ),
            "group": os.getpgrp(), "files": files, "code": {code!r}}})
socket.send_fds(server, [job.encode()], files)
for number in files:
    os.close(number)
status = int(server.recv(64) or b"9")
if os.WIFSIGNALED(status):
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.waitstatus_to_exitcode(status))
"""

# Everything is forked from the loop at the bottom, in which nothing but the imports has happened.
_SERVER = r"""
import ast, ctypes, fcntl, gc, importlib, os, runpy, select, signal, socket, sys, traceback
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
for name in sys.argv[2:]:
    importlib.import_module(name)
gc.collect()
gc.freeze()
HIGH = 500


def program(job, files):
    os.setpgid(0, job["group"])  # by which plumb knows its processes, and ends them
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    high = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, HIGH) for file in files]
    os.closerange(0, HIGH)
    for file, number in zip(high, job["files"], strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["environment"])
    device = sys.modules.get("plumbline_test_device.backend")
    if device is not None:
        device._read_environment()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    option, text, *arguments = job["words"]
    exec(job["code"], {"__name__": "__main__"})
    if option == "-c":
        for name in [name for name in sys.modules if f"'{name}'" in text and "." in name]:
            del sys.modules[name]  # which the text runs
        sys.argv = ["-c", *arguments]
        exec(text, {"__name__": "__main__"})
        return
    sys.argv = [text, *arguments]
    sys.modules.pop(text, None)
    runpy.run_module(text, run_name="__main__", alter_sys=True)


def leave(work):
    status = 1
    try:
        work()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def supervise(connection):
    data, files, _, _ = socket.recv_fds(connection, 1 << 20, 250)
    if not data:
        return
    job = ast.literal_eval(data.decode())
    child = os.fork()
    if child == 0:
        leave(lambda: program(job, files))
    for file in files:
        os.close(file)
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(connection, select.POLLIN)
    if ended not in [descriptor for descriptor, _ in poll.poll()]:
        os.kill(child, signal.SIGKILL)  # and what it started ends with it
    status = os.waitpid(child, 0)[1]
    try:
        connection.send(b"%d" % status)
    except OSError:
        pass


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


signal.signal(signal.SIGINT, signal.SIG_IGN)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\0" + sys.argv[1])
listener.listen(64)
print("ready", flush=True)
while True:
    if not select.select([listener, sys.stdin], [], [])[0] == [listener]:
        break  # who started this has ended
    connection, _ = listener.accept()
    if os.fork() == 0:
        listener.close()
        leave(lambda: supervise(connection))
    connection.close()
    reap()
reap()
os._exit(0)
"""

TORCH = ("torch", "plumbline.precheck_run.pytorch", "plumbline.precheck_run.reference",
         "plumbline.precheck_run.executor", "plumbline.precheck_run.case_process")


class _Server:
    def __init__(self, modules: tuple[str, ...], path: str) -> None:
        self._address = f"plumbline-warm-{os.getpid()}-{next(_numbers)}"
        self._folder = tempfile.TemporaryDirectory(prefix="warm_python")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, self._address, *modules],
            env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(self._close)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError("the server of warm_interpreter did not start")

    def _close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._folder.cleanup()

    def launcher(self, path: Path | None, code: str) -> Path:
        path = path or Path(self._folder.name, f"python{next(_numbers)}")
        path.write_text(_LAUNCHER.format(python=sys.executable, address=self._address, code=code))
        path.chmod(0o755)
        return path


@functools.cache
def _server(modules: tuple[str, ...], path: str) -> _Server:
    return _Server(modules, path)


@functools.cache
def _plain(modules: tuple[str, ...], path: str) -> str:
    return str(_server(modules, path).launcher(None, ""))


def warm_python(modules: tuple[str, ...] = TORCH, path: str | None = None) -> str:
    """The path of an interpreter that has imported `modules`, with PYTHONPATH = `path`."""
    return _plain(modules, os.environ.get("PYTHONPATH", "") if path is None else path)


def spoiled_python(place: Path, code: str, modules: tuple[str, ...] = TORCH,
                   path: str | None = None) -> Path:
    """One, made at `place`, whose processes run `code`, which spoils something, at first."""
    path = os.environ.get("PYTHONPATH", "") if path is None else path
    return _server(modules, path).launcher(place, code)
