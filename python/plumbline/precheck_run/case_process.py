"""A process beside this one that makes calls, which may crash it or hang: a call costs no more than
the process, and another one is forked in its place.

This process must start no threads and touch no device, as a fork of one that did may hang: here
PyTorch has one thread, and what needs more runs in the process beside it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

import torch

from plumbline.precheck_run.case_limits import NoTestError
from plumbline.precheck_run.executor import one_line
from plumbline.precheck_run.server import PR_SET_PDEATHSIG, expect_little, how_it_ended

T = TypeVar("T")
_LENGTH = struct.Struct("=Q")
# A process that crashes, or has nothing to do any more, ends by itself in that time; one that was
# killed in this.
_SECONDS_OF_ITS_OWN, _SECONDS_TO_DIE = 1.0, 10.0


class LostError(Exception):
    """The call took its process with it; says how: "crashes: signal 11 (...)".

    Attributes:
        is_stuck: it did not come back in time.
    """

    def __init__(self, text: str, *, is_stuck: bool = False) -> None:
        super().__init__(text)
        self.is_stuck = is_stuck


class RaisedError(Exception):
    """The call raised; says what, in one line.

    Attributes:
        is_refusal: it was NoTestError, whose text stands for itself.
    """

    def __init__(self, text: str, *, is_refusal: bool) -> None:
        super().__init__(text)
        self.is_refusal = is_refusal


@dataclass(frozen=True)
class _Answer:
    value: Any = None
    error: str = ""
    is_refusal: bool = False


class CaseProcess:
    """Runs functions of modules, one after the other, in a process of its own.

    Args:
        seconds: after so long a function is given up.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._threads = torch.get_num_threads()
        self._pid = 0
        self._socket: socket.socket | None = None

    def __enter__(self) -> CaseProcess:
        torch.set_num_threads(1)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.end()
        torch.set_num_threads(self._threads)

    def call(self, function: Callable[..., T], *arguments: Any,
             seconds: float | None = None) -> T:
        """What function(*arguments) returns; `seconds` may make its time shorter.

        Raises:
            LostError, RaisedError
        """
        limit = self._seconds if seconds is None else min(seconds, self._seconds)
        connection = self._start() if self._socket is None else self._socket
        end = time.monotonic() + limit
        try:
            _send(connection, (function, arguments))
            answer: _Answer = _receive(connection, end)
        except TimeoutError:
            self.end(is_stuck=True)
            raise LostError(f"does not come back within {limit:.4g} s", is_stuck=True) from None
        except (EOFError, OSError):
            raise LostError(f"crashes: {self.end()}") from None
        if answer.error:
            raise RaisedError(answer.error, is_refusal=answer.is_refusal)
        return answer.value  # type: ignore[no-any-return]

    def end(self, *, is_stuck: bool = False) -> str:
        """Ends the process, if there is one; how it ended."""
        if self._socket is None:
            return "not started"
        self._socket.close()
        self._socket = None
        return _ended(self._pid, 0.0 if is_stuck else _SECONDS_OF_ITS_OWN)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            _serve(theirs, parent, self._threads)
        theirs.close()
        self._socket = ours
        return ours


def _ended(pid: int, seconds: float) -> str:
    """Waits for a process that has nothing left to do; kills it after some seconds."""
    begin = time.monotonic()
    is_killed = False
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return how_it_ended(status)
        waited = time.monotonic() - begin
        if not is_killed and waited >= seconds:
            os.kill(pid, signal.SIGKILL)
            is_killed = True
        if waited > _SECONDS_TO_DIE:  # in the driver of a device, where no signal reaches it
            return "it cannot be ended"
        time.sleep(0.001)


def _serve(connection: socket.socket, parent: int, threads: int) -> None:
    """In the process beside: answers until the other end is closed; never returns."""
    status = 1
    try:
        # Not even a parent that is killed leaves it behind.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == parent:
            expect_little()
            torch.set_num_threads(threads)
            with contextlib.suppress(EOFError):
                while True:
                    function, arguments = _receive(connection, None)
                    _send(connection, _answer(function, arguments))
            status = 0
    except (BrokenPipeError, ConnectionResetError):
        pass  # nobody waits for it any more
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Answer:
    try:
        return _Answer(function(*arguments))
    except NoTestError as error:
        return _Answer(error=str(error), is_refusal=True)
    except Exception as error:
        return _Answer(error=one_line(error))


def _send(connection: socket.socket, message: Any) -> None:
    data = pickle.dumps(message)
    connection.sendall(_LENGTH.pack(len(data)))
    connection.sendall(data)


def _receive(connection: socket.socket, end: float | None) -> Any:
    """The next message.

    Raises:
        TimeoutError: it is not complete at `end` (monotonic).
        EOFError: the other end is closed.
    """
    (length,) = _LENGTH.unpack(_read(connection, _LENGTH.size, end))
    return pickle.loads(_read(connection, length, end))  # from a fork of this program


def _read(connection: socket.socket, size: int, end: float | None) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        if end is not None:
            left = max(0.0, end - time.monotonic())
            if not select.select([connection], [], [], left)[0]:
                raise TimeoutError
        count = connection.recv_into(view)
        if count == 0:
            raise EOFError
        view = view[count:]
    return data
