"""Runs Python source in processes that begin with PyTorch imported, which takes them a second.

A server imports torch and nothing else (or, for programs with an optimizer, what the first
optimizer of a process imports), and forks for every program: what a program does to its process
ends with it. The first frame of such a program is its own, as with `python -c`. What torch made
while it was imported is frozen (gc.freeze), so that a program's end does not search it.
"""

from __future__ import annotations

import array
import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

LIMIT_S = 300
_MESSAGE_BYTES = 1 << 20

# Run by the server. A forked child leaves the loop: its program runs at module level.
_SERVER = """
import array, gc, json, os, socket, sys
import torch
{also}
gc.freeze()
_server = socket.socket(fileno=int(sys.argv[1]))
_server.send(b"ready")
while True:
    _data, _parts, _, _ = _server.recvmsg({size}, socket.CMSG_SPACE(2 * 4))
    if not _data:
        os._exit(0)
    _files = array.array("i", _parts[0][2])
    _child = os.fork()
    if _child == 0:
        break
    for _file in _files:
        os.close(_file)
    _server.send(json.dumps(os.waitpid(_child, 0)[1]).encode())
_server.close()
for _place, _file in enumerate(_files):
    os.dup2(_file, _place + 1)
    os.close(_file)
_job = json.loads(_data)
os.chdir(_job["cwd"])
os.environ.clear()
os.environ.update(_job["environment"])
sys.path[1:1] = [_path for _path in _job["path"] if _path not in sys.path]
sys.argv[:] = ["-c", *_job["arguments"]]
with open(_job["source"]) as _file:
    _code = compile(_file.read(), "<string>", "exec")
for _name in [_name for _name in globals() if _name.startswith("_") and not _name.startswith("__")]:
    if _name != "_code":
        del globals()[_name]
del array, gc, json, os, socket, torch, _name
exec(globals().pop("_code"))
"""


def _read_all(reader: int) -> str:
    with os.fdopen(reader) as stream:
        return stream.read()


class Server:
    """One server process; programs run one after the other.

    Args:
        has_optimizer: also import torch's compiler, as the first optimizer of a process does.
    """

    def __init__(self, has_optimizer: bool = False) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        source = _SERVER.format(size=_MESSAGE_BYTES,
                                also="import torch._dynamo" if has_optimizer else "")
        self._process = subprocess.Popen(
            [sys.executable, "-c", source, str(theirs.fileno())], pass_fds=[theirs.fileno()],
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

    def run(self, code: str, arguments: list[str],
            environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """What `python -c CODE ARGUMENTS` does; status, stdout and stderr."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "program.py")
            source.write_text(code)
            job = {"source": str(source), "arguments": arguments, "environment": environment,
                   "cwd": os.getcwd(),
                   "path": environment.get("PYTHONPATH", "").split(os.pathsep)}
            pipes = [os.pipe(), os.pipe()]
            with ThreadPoolExecutor(2) as pool:
                texts = [pool.submit(_read_all, reader) for reader, _ in pipes]
                try:
                    status = self._ask(job, [writer for _, writer in pipes])
                finally:
                    for _, writer in pipes:
                        os.close(writer)
            return subprocess.CompletedProcess([sys.executable, "-c", code, *arguments],
                                               os.waitstatus_to_exitcode(status),
                                               *(text.result() for text in texts))

    def _ask(self, job: dict[str, Any], files: list[int]) -> int:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))
        self._socket.sendmsg([json.dumps(job).encode()], [rights])
        answer = self._socket.recv(64)
        if not answer:
            raise RuntimeError("the server of warm_python has ended")
        return int(json.loads(answer))
