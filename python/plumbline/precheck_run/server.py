"""The zygote of a pre-check: imports a framework once, then forks executors in milliseconds.

    python -m plumbline.precheck_run.server

Descriptor 3 is a stream socket of JSON lines; of slot s, descriptor 4 + 3s is the memory of the
arguments, 5 + 3s that of results of the benchmark side, 6 + 3s that of the device side.

    <- {"op":"start","framework":"pytorch","device":"auto","slots":8}
    -> {"ready":true,"framework_version":"2.13.0","device":"cpu","device_name":"",
        "inventory_missing":[]}
       or {"error":"text"}
    <- {"op":"fork","id":7,"role":"bench","device":"cpu","threads":1}    with a socket attached
    -> {"ended":7,"how":"signal 6 (Aborted)"}                            whenever an executor ends

Closing descriptor 3 ends the zygote and every executor. This process runs no operator, touches no
device and starts no thread: a fork of a process that did would hang or fail.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections import deque
from typing import Any

from plumbline.precheck_run.executor import Framework, Place, one_line, serve

CONTROL = 3
FIRST_SLOT = 4
# The last two: MindTorch as side under test, and PyTorch where MindTorch stands before it.
FRAMEWORKS = ("pytorch", "mindspore", "mindtorch", "native_torch")
PR_SET_PDEATHSIG = 1
# Thread pools that libraries would start when they are imported, and the check for CUDA that does
# not initialise its driver.
_QUIET_IMPORT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


class Zygote:
    """Serves one control socket until its other end is closed."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._framework: Framework | None = None
        self._slots = 0
        self._ids: dict[int, Any] = {}  # pid of an executor -> its id
        self._unread = b""
        self._sockets: deque[int] = deque()  # received, in the order of the fork requests
        self._libc = ctypes.CDLL(None)
        self._pid = os.getpid()

    def serve(self) -> None:
        """Returns when the other end is closed; every executor has ended then."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        signal.signal(signal.SIGCHLD, _noted)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: who started this one decides
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(woken, select.POLLIN)
        try:
            is_open = True
            while is_open:
                ready = [descriptor for descriptor, _ in poll.poll()]
                if woken in ready:
                    _drain(woken)
                    self._reap()
                if self._control.fileno() in ready:
                    is_open = self._receive()
        finally:
            self._end_all()

    def _receive(self) -> bool:
        """Reads and answers what is there; false at the end of the stream."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 64)
        except ConnectionResetError:
            return False
        self._sockets.extend(descriptors)
        if not data:
            return False
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._answer(json.loads(line))
        return True

    def _answer(self, request: dict[str, Any]) -> None:
        if request["op"] == "start":
            self._send(self._start(request))
        elif request["op"] == "fork":
            self._fork(request)
        else:
            self._send({"error": f"request {request['op']!r} is unknown (expected start or fork)"})

    def _start(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["framework"]
        if name not in FRAMEWORKS:
            expected = " or ".join(FRAMEWORKS)
            return {"error": f"framework {name!r} is unknown (expected {expected})"}
        os.environ.update(_QUIET_IMPORT)
        try:
            module = importlib.import_module(f"plumbline.precheck_run.{name}")
            framework: Framework = module.load(request["device"])
        except Exception as error:
            return {"error": one_line(error)}
        device = self._find_device(framework, request["device"])
        if "error" in device:
            return device
        self._framework = framework
        self._slots = int(request["slots"])
        gc.collect()
        gc.freeze()  # what is loaded now stays for good: no executor ever walks it, or copies it
        missing = framework.missing(request.get("inventory", []))
        version = framework.version
        return {"ready": True, "framework_version": version, **device, "inventory_missing": missing}

    def _find_device(self, framework: Framework, device: str) -> dict[str, Any]:
        """What _usable() says, found out by a process of its own."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._leave(lambda: os.write(write, json.dumps(_usable(framework, device)).encode()))
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            text = pipe.read()
        _, status = os.waitpid(pid, 0)
        if text:
            answer: dict[str, Any] = json.loads(text)
            return answer
        return {"error": f"device {device}: looking for it ended with {how_it_ended(status)}"}

    def _fork(self, request: dict[str, Any]) -> None:
        if not self._sockets:
            self._send({"ended": request["id"], "how": "no socket came with the request"})
            return
        descriptor = self._sockets.popleft()
        if self._framework is None:
            os.close(descriptor)
            self._send({"ended": request["id"], "how": "not started"})
            return
        try:
            pid = os.fork()
        except OSError as error:
            self._send({"ended": request["id"], "how": f"no process: {error.strerror}"})
        else:
            if pid == 0:
                self._leave(lambda: self._execute(request, descriptor))
            self._ids[pid] = request["id"]
        finally:
            os.close(descriptor)

    def _leave(self, work: Any) -> None:
        """In a forked process: does the work and ends, never to return into the zygote's code."""
        status = 1
        try:
            # Not even a zygote that is killed leaves executors behind.
            self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() == self._pid:  # else it was killed before
                expect_little()
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                work()
                status = 0
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except (BrokenPipeError, ConnectionResetError):
            pass  # nobody waits for it any more: the run is over
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _execute(self, request: dict[str, Any], descriptor: int) -> None:
        self._control.close()
        for other in self._sockets:
            os.close(other)
        connection = socket.socket(fileno=descriptor)
        place = Place(request["role"], request["device"], request["threads"], self._slots,
                      FIRST_SLOT)
        assert self._framework is not None
        try:
            runner = self._framework.open(place)
        except Exception as error:
            connection.sendall(_line({"error": one_line(error)}))
            raise SystemExit(1) from error
        connection.sendall(_line({"ready": True, "pid": os.getpid()}))
        serve(connection, runner)

    def _reap(self) -> None:
        """Reports every executor that has ended."""
        while self._ids:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in self._ids:
                self._send({"ended": self._ids.pop(pid), "how": how_it_ended(status)})

    def _end_all(self) -> None:
        for pid in self._ids:
            os.kill(pid, signal.SIGKILL)
        for pid in self._ids:
            os.waitpid(pid, 0)

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its end: read next
            self._control.sendall(_line(message))


def expect_little() -> None:
    """This process may crash or take all memory: without a core file, and before others."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("500")


def how_it_ended(status: int) -> str:
    """A status of waitpid() in words: "signal 6 (Aborted)", "exit status 3"."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"signal {number} ({signal.strsignal(number) or 'unknown'})"
    return f"exit status {os.waitstatus_to_exitcode(status)}"


def _usable(framework: Framework, device: str) -> dict[str, str]:
    try:
        usable = framework.usable_device(device)
        return {"device": usable, "device_name": framework.device_name(usable)}
    except Exception as error:
        return {"error": f"device {device}: {one_line(error)}"}


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _noted(number: int, frame: object) -> None:
    """A handler that does nothing: the signal only has to reach the wakeup descriptor."""


def _drain(descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(descriptor, 1 << 12):
            pass


def main() -> int:
    """Runs the zygote on descriptor 3; its exit status."""
    try:
        control = socket.socket(fileno=CONTROL)
    except OSError:
        print("plumbline.precheck_run.server: descriptor 3 is no socket (plumb precheck starts this"
              " program; it is no use by itself)", file=sys.stderr)
        return 2
    # What calls print is no output of the program that started this one; and they read nothing.
    os.dup2(sys.stderr.fileno(), 1)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    Zygote(control).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
