"""A server of executors without a framework, to test the pool: what a call does is its name.

    python fake_executors.py [no-device | dies]

Speaks what python/plumbline/precheck_run/server.py speaks. An executor answers most calls with one
float64 tensor that holds the input bytes, doubled for the device.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

LINES = 3
FIRST_MEMORY = 4


def end_text(status: int) -> str:
    """How a process ended, as the server says it."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"signal {number} ({signal.strsignal(number)})"
    return f"exit status {os.WEXITSTATUS(status)}"


def result_of(request: dict[str, Any], role: str, count: int) -> dict[str, Any]:
    """Writes the result into the memory of the slot."""
    slot = request["slot"]
    given = array.array("d")
    given.frombytes(os.pread(FIRST_MEMORY + 3 * slot, 8 * count, 0))
    factor = 2.0 if role == "device" else 1.0
    made = array.array("d", [factor * value for value in given])
    memory = FIRST_MEMORY + 3 * slot + (2 if role == "device" else 1)
    if os.fstat(memory).st_size < 8 * count:
        os.ftruncate(memory, 8 * count)
    os.pwrite(memory, made.tobytes(), 0)
    return {"value": {"tensor": ["float64", [count], 0, False, None]}}


def answer(request: dict[str, Any], role: str) -> bytes:
    """The answer to one call, or the misdeed that it names."""
    name = request["name"]
    if name == f"abort {role}":
        os.abort()
    if name == f"kill {role}":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == f"kill server {role}" or (name == "kill server once" and not os.path.exists(
            request["flag"])):
        if "flag" in request:
            with open(request["flag"], "w", encoding="ascii"):
                pass
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(100)
    if name == f"hang {role}":
        time.sleep(100)
    said: dict[str, Any] = {"id": request["id"], "backward": None}
    if name == f"garbage {role}":
        return b"\xff\x00{not json\n"
    if name == f"endless {role}":
        return b"x" * (65 << 20)
    if name == f"other {role}":
        said["id"] += 1
    if name == f"far {role}":
        said["forward"] = {"value": {"tensor": ["float64", [4], 1 << 40, False, None]}}
    elif name == f"memory {role}" and request.get("count", 0) >= 0:
        said["forward"] = {"skip": ["out-of-memory", f"process {os.getpid()}"]}
    elif name == f"skip {role}":
        said["forward"] = {"skip": ["device-failed", "RuntimeError: no kernel"]}
    else:
        said["forward"] = result_of(request, role, request.get("count", 4))
    return json.dumps(said).encode() + b"\n"


def serve(channel: socket.socket, role: str) -> None:
    """Works off the calls of one executor."""
    channel.sendall(json.dumps({"ready": True, "pid": os.getpid()}).encode() + b"\n")
    with channel.makefile("rb") as lines:
        for line in lines:
            channel.sendall(answer(json.loads(line), role))


class Server:
    """Forks executors and says how they ended."""

    def __init__(self) -> None:
        self.channel = socket.socket(fileno=LINES)
        self.received = b""
        self.numbers: dict[int, int] = {}  # of executors, by process

    def say(self, message: dict[str, Any]) -> None:
        """One line."""
        with contextlib.suppress(BrokenPipeError):
            self.channel.sendall(json.dumps(message).encode() + b"\n")

    def reap(self) -> None:
        """Says who has ended."""
        while self.numbers:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            self.say({"ended": self.numbers.pop(process), "how": end_text(status)})

    def fork(self, request: dict[str, Any], descriptor: int) -> None:
        """Makes an executor that talks through `descriptor`."""
        process = os.fork()
        if process == 0:
            self.channel.close()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the test is over
                serve(socket.socket(fileno=descriptor), request["role"])
            os._exit(0)
        os.close(descriptor)
        self.numbers[process] = request["id"]

    def run(self) -> None:
        """Until the other end is closed."""
        while True:
            ready, _, _ = select.select([self.channel], [], [], 0.01)
            self.reap()
            if not ready:
                continue
            data, descriptors, _, _ = socket.recv_fds(self.channel, 65536, 16)
            if not data:
                return
            self.received += data
            *lines, self.received = self.received.split(b"\n")
            for line in lines:
                request = json.loads(line)
                if request["op"] == "fork":
                    self.fork(request, descriptors.pop(0))
                elif "no-device" in sys.argv:
                    self.say({"error": f"no device {request['device']}"})
                elif "dies" in sys.argv:
                    os.abort()
                else:
                    self.say({"ready": True, "framework_version": "1.0",
                              "device": "cpu" if request["device"] == "auto" else request["device"],
                              "inventory_missing": ["torch.gone"]})


if __name__ == "__main__":
    Server().run()
