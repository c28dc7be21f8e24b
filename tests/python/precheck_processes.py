"""The pool's side of a pre-check's processes, in Python: starts the zygote, forks, asks, reads."""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import sys
from pathlib import Path
from typing import Any

import torch

SECONDS = 120  # no answer for so long is a failure


class Lines:
    """JSON lines over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._unread = b""

    def send(self, message: dict[str, Any]) -> None:
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def read(self, seconds: float = SECONDS) -> dict[str, Any] | None:
        """The next line; None at the end of the stream."""
        self.connection.settimeout(seconds)
        while b"\n" not in self._unread:
            chunk = self.connection.recv(1 << 20)
            if not chunk:
                return None
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message


class Zygote(Lines):
    """A server process with shared memory for a number of slots."""

    def __init__(self, slots: int = 1, environment: dict[str, str] | None = None) -> None:
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        self.memory = [os.memfd_create(f"slot{i}") for i in range(3 * slots)]
        # Away from the numbers that they get there.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 500)
                for fd in (theirs.fileno(), *self.memory)]
        actions = [(os.POSIX_SPAWN_DUP2, fd, 3 + place) for place, fd in enumerate(high)]
        self.pid = os.posix_spawn(
            sys.executable, [sys.executable, "-m", "plumbline.precheck_run.server"],
            {**os.environ, **(environment or {})}, file_actions=actions)
        for fd in high:
            os.close(fd)
        theirs.close()
        self.slots = slots
        self._ends: dict[int, str] = {}

    def start(self, **request: Any) -> dict[str, Any]:
        self.send({"op": "start", "framework": "pytorch", "device": "cpu", "slots": self.slots,
                   **request})
        answer = self.read()
        assert answer is not None
        return answer

    def fork(self, identity: int = 7, role: str = "bench", **request: Any) -> Executor:
        ours, theirs = socket.socketpair()
        line = json.dumps({"op": "fork", "id": identity, "role": role, "device": "cpu",
                           "threads": 1, **request}).encode() + b"\n"
        socket.send_fds(self.connection, [line], [theirs.fileno()])
        theirs.close()
        return Executor(ours, self, role)

    def end_of(self, identity: int) -> str:
        """How an executor ended; waits for it."""
        while identity not in self._ends:
            message = self.read()
            assert message is not None
            self._ends[message["ended"]] = message["how"]
        return self._ends.pop(identity)

    def close(self) -> None:
        """Ends the server, and waits for it."""
        self.connection.close()
        for fd in self.memory:
            os.close(fd)
        os.waitpid(self.pid, 0)


class Executor(Lines):
    """One executor; `ask` writes the arguments of a call and reads its answer."""

    def __init__(self, connection: socket.socket, zygote: Zygote, role: str) -> None:
        super().__init__(connection)
        self._zygote = zygote
        self._role = role

    def ready(self) -> dict[str, Any]:
        answer = self.read()
        assert answer is not None
        return answer

    def request(self, name: str, *args: Any, slot: int = 0, **members: Any) -> dict[str, Any]:
        """The message for a call; its arguments lie in the slot's memory then."""
        inputs = Inputs(self._zygote.memory[3 * slot], self._role == "bench")
        kind, api = name.split(".", 1)
        api = api.rpartition(".")[0]
        kwargs = [[key, inputs.value(item)] for key, item in members.pop("kwargs", {}).items()]
        grads = members.pop("grads", None)
        if grads is not None:
            grads = [inputs.value(grad) for grad in grads]
        message = {"id": 12, "slot": slot, "name": name, "type": kind, "api": api,
                   "args": [inputs.value(item) for item in args], "kwargs": kwargs,
                   "grads": grads, "autocast": None, **members}
        inputs.write()
        return message

    def ask(self, name: str, *args: Any, **members: Any) -> dict[str, Any]:
        self.send(self.request(name, *args, **members))
        answer = self.read()
        assert answer is not None
        return answer

    def result(self, answer: dict[str, Any], direction: str = "forward", slot: int = 0) -> Any:
        """What a direction returned, tensors read from shared memory."""
        assert "value" in answer[direction], answer
        fd = self._zygote.memory[3 * slot + (1 if self._role == "bench" else 2)]
        return read_value(answer[direction]["value"], fd)


class Inputs:
    """Writes arguments as the planner does: JSON and bytes."""

    def __init__(self, fd: int, raises: bool) -> None:
        self._fd = fd
        self._raises = raises
        self._bytes = bytearray()

    def value(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, Raw):
            return value.json
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop, value.step]}
        if isinstance(value, (list, tuple)):
            kind = "size" if isinstance(value, torch.Size) else type(value).__name__
            return {kind: [self.value(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[key, self.value(item)] for key, item in value.items()]}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value)}
        return {"ellipsis": "..."} if value is ... else value

    def _tensor(self, tensor: torch.Tensor) -> dict[str, Any]:
        self._bytes += b"\xab" * (-len(self._bytes) % 64)
        offset = len(self._bytes)
        plain = tensor.detach().contiguous()
        if tensor.numel():
            self._bytes += bytes(plain.view(-1).view(torch.uint8).numpy())
        raised = {torch.float16: "float32", torch.bfloat16: "float32", torch.float32: "float64"}
        return {"tensor": [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), offset,
                           tensor.requires_grad, raised.get(tensor.dtype)]}

    def write(self) -> None:
        if os.fstat(self._fd).st_size < len(self._bytes):
            os.ftruncate(self._fd, len(self._bytes))
        os.pwrite(self._fd, self._bytes, 0)


class Raw:
    """An argument by its JSON."""

    def __init__(self, json: Any) -> None:
        self.json = json


def read_value(value: Any, fd: int) -> Any:
    """A result as Python values; what has no other form stays a dict."""
    if not isinstance(value, dict):
        return value
    ((kind, body),) = value.items()
    if kind in ("list", "tuple", "size"):
        items = [read_value(item, fd) for item in body]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: read_value(item, fd) for key, item in body}
    if kind != "tensor":
        return value
    name, shape, offset = body[:3]
    dtype = getattr(torch, name)
    assert offset % 64 == 0
    count = 1
    for size in shape:
        count *= size
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    data = os.pread(fd, count * dtype.itemsize, offset)
    return torch.frombuffer(bytearray(data), dtype=dtype).view(shape)


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for_end(pid: int, seconds: float = SECONDS) -> bool:
    """Whether a process, which need not be a child, ends in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def size_of(fd: int) -> int:
    return os.fstat(fd).st_size
