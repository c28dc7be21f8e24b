"""Runs Python source in processes that begin with PyTorch imported, which takes them a second.

A server imports torch and what else it is told, nothing more, and forks for every program: what a
program does to its process ends with it. The first frame of such a program is its own, as with
`python -c`. What was imported is frozen (gc.freeze), so that a program's end does not search it. A
program that ends well ends as any does as far as its own objects go: threads are waited for, exit
functions run. To take torch apart after that takes a fifth of its import, and is left out.
"""

from __future__ import annotations

import array
import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

LIMIT_S = 300
_MESSAGE_BYTES = 1 << 20

# Run by the server. A forked child leaves the loop: its program runs at module level.
_SERVER = """
import array, gc, json, os, select, socket, sys
import torch
{imports}
gc.collect()
gc.freeze()
_server = socket.socket(fileno=int(sys.argv[1]))
_server.send(b"ready")
_running = {{}}
_child = -1
while _child != 0:
    _ready = select.select([_server, *_running], [], [])[0][0]
    if _ready is not _server:
        _child, _answer = _running.pop(_ready)
        os.close(_ready)
        os.write(_answer, b"%d\\n" % os.waitpid(_child, 0)[1])
        os.close(_answer)
        continue
    _data, _parts, _, _ = _server.recvmsg({size}, socket.CMSG_SPACE(3 * 4))
    if not _data:
        os._exit(0)
    *_files, _answer = array.array("i", _parts[0][2])
    _child = os.fork()
    if _child != 0:
        for _file in _files:
            os.close(_file)
        os.write(_answer, b"%d\\n" % _child)
        _running[os.pidfd_open(_child)] = _child, _answer
_server.close()
for _place, _file in enumerate(_files):
    os.dup2(_file, _place + 1)
    os.close(_file)
os.close(_answer)
for _file, (_, _answer) in _running.items():
    os.close(_file)
    os.close(_answer)
_job = json.loads(_data)
if _job["own_session"]:
    os.setsid()
os.chdir(_job["cwd"])
os.environ.clear()
os.environ.update(_job["environment"])
sys.path[1:1] = [_path for _path in _job["path"] if _path not in sys.path]
sys.argv[:] = _job["arguments"]
if _job["is_silent"]:
    __import__("warnings").simplefilter("ignore")
with open(_job["source"]) as _file:
    _code = compile(_file.read(), "<string>" if sys.argv[0] == "-c" else sys.argv[0], "exec")
if sys.argv[0] != "-c":
    sys.path[0] = os.path.dirname(sys.argv[0])
    __file__ = sys.argv[0]
for _name in [_name for _name in globals() if _name.startswith("_") and not _name.startswith("__")]:
    if _name != "_code":
        del globals()[_name]
del array, gc, json, os, select, socket, torch, _name
try:
    exec(globals().pop("_code"))
    _status = 0
except SystemExit as _end:
    if not isinstance(_end.code, int | None):
        raise
    _status = _end.code or 0
def _leave(status, names):
    import atexit, gc, os, sys, threading
    threading._shutdown()
    atexit._run_exitfuncs()
    names.clear()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 255)
_leave(_status, globals())
"""


def _read_all(reader: int) -> str:
    with os.fdopen(reader) as stream:
        return stream.read()


class Program:
    """A program that a server runs; rather like subprocess.Popen.

    Args:
        server: a socket to the server.
        words: what follows the name of the interpreter: ["-W", "ignore",] "-c" and source, or the
            path of a script; then the arguments.
        environment: its whole environment.
        options: cwd, and own_session: whether it leads a session and a process group of its own.
    """

    def __init__(self, server: socket.socket, words: list[str], environment: dict[str, str],
                 **options: Any) -> None:
        self.words, self._own_session = words, options.get("own_session", False)
        self._folder = tempfile.TemporaryDirectory()
        is_silent = words[:2] == ["-W", "ignore"]
        source, *arguments = words[2:] if is_silent else words
        if source == "-c":
            source = str(Path(self._folder.name, "program.py"))
            Path(source).write_text(arguments.pop(0))
            arguments.insert(0, "-c")
        else:
            source = os.path.abspath(source)
            arguments.insert(0, source)
        job = {"source": source, "arguments": arguments, "environment": environment,
               "is_silent": is_silent, "cwd": str(options.get("cwd") or os.getcwd()),
               "own_session": self._own_session,
               "path": environment.get("PYTHONPATH", "").split(os.pathsep)}
        readers, writers = zip(*(os.pipe() for _ in range(3)), strict=True)
        self._answer = os.fdopen(readers[2], "rb", buffering=0)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", writers))
        server.sendmsg([json.dumps(job).encode()], [rights])
        for file in writers:
            os.close(file)
        self._pool = ThreadPoolExecutor(2)
        self._outputs = [self._pool.submit(_read_all, reader) for reader in readers[:2]]
        self.pid = int(self._line(LIMIT_S))
        self.returncode: int | None = None

    def _line(self, timeout: float) -> str:
        if not select.select([self._answer], [], [], max(timeout, 0))[0]:
            raise subprocess.TimeoutExpired(self.words, timeout)
        found = self._answer.readline().decode()  # a number, which the server writes at once
        if not found:
            raise RuntimeError("the server of warm_python has ended")
        return found

    def wait(self, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        """What the program left; ends it and what is in its group where it takes longer."""
        try:
            self.returncode = os.waitstatus_to_exitcode(int(self._line(timeout or LIMIT_S)))
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return self._ended()

    def kill(self) -> None:
        """Ends it, if it has not ended, with its group where that is its own."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                (os.killpg if self._own_session else os.kill)(self.pid, signal.SIGKILL)
            self.returncode = os.waitstatus_to_exitcode(int(self._line(LIMIT_S)))
            self._ended()

    def _ended(self) -> subprocess.CompletedProcess[str]:
        self._answer.close()
        out, err = (output.result() for output in self._outputs)
        self._pool.shutdown()
        self._folder.cleanup()
        return subprocess.CompletedProcess(self.words, self.returncode, out, err)


class Server:
    """One server process.

    Args:
        imports: statements that it runs besides `import torch`.
        python: its interpreter.
    """

    def __init__(self, imports: str = "", python: Path | str = sys.executable) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        source = _SERVER.format(size=_MESSAGE_BYTES, imports=imports)
        self._process = subprocess.Popen(
            [str(python), "-c", source, str(theirs.fileno())], pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL)
        theirs.close()
        self._socket = ours
        self._socket.settimeout(LIMIT_S)
        if self._socket.recv(16) != b"ready":
            raise RuntimeError("the server of warm_python did not start")
        atexit.register(self.close)

    def close(self) -> None:
        """Ends the server."""
        self._socket.close()
        self._process.wait(timeout=10)

    def start(self, words: list[Any], environment: dict[str, str], **options: Any) -> Program:
        """Begins what the interpreter does with these words."""
        return Program(self._socket, list(map(str, words)), environment, **options)

    def run(self, words: list[Any], environment: dict[str, str],
            **options: Any) -> subprocess.CompletedProcess[str]:
        """Status, stdout and stderr of what the interpreter does with these words."""
        return self.start(words, environment, **options).wait(options.get("timeout"))


# What the first optimizer of a process imports: torch's compiler.
OPTIMIZER = "import torch._dynamo"


@functools.cache
def server(imports: str = "", python: Path | str = sys.executable) -> Server:
    """The one server of this process for such programs, started when it is needed."""
    return Server(imports, python)


def server_for(code: str) -> Server:
    """The server of this process for such a program."""
    return server(OPTIMIZER if "torch.optim" in code else "")
