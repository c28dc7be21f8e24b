"""One executor of a pre-check: its loop, its shared memory, and what it asks of a framework."""

from __future__ import annotations

import gc
import json
import mmap
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from plumbline.precheck_run.values import BadArgumentError

_ALIGNMENT = 64  # of every tensor in shared memory
_LEAST_RESULTS = 1 << 16
# Results below this are kept when smaller ones follow.
_KEPT_BYTES = 64 << 20
# A full collection walks only what calls left behind (the zygote froze the rest): every so many
# calls, and sooner where calls are large.
_CALLS_PER_COLLECTION = 4096
_BYTES_PER_COLLECTION = 256 << 20
_LONGEST_MESSAGE = 400
_decode = json.JSONDecoder().decode  # json.loads() asks for the encoding first


@dataclass(frozen=True, slots=True)
class Place:
    """What a process is there for."""

    role: str  # "bench" or "device"
    device: str  # "cpu", "npu:0"
    threads: int
    slots: int
    first_descriptor: int  # of slot 0; three per slot

    @property
    def is_bench(self) -> bool:
        """Whether this is the benchmark side: raised precision, on the CPU."""
        return self.role == "bench"


class Runner(Protocol):
    """A framework that runs calls, in an executor."""

    is_broken: bool
    """The device is lost to this process; another one has to go on."""

    bytes_seen: int
    """Bytes of arguments and results so far."""

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request. Raises only if the request makes no sense."""


class Framework(Protocol):
    """A framework, imported in the zygote, where it must start no thread and touch no device.

    Its module has `load(device: str) -> Framework`, which raises what says why it is not there.
    """

    version: str

    def usable_device(self, device: str) -> str:
        """The device that `device` ("auto", "npu") means, tried in a process of its own."""

    def device_name(self, device: str) -> str:
        """What the maker calls a usable device; "" where nobody says it, and of a CPU."""

    def missing(self, inventory: Iterable[str]) -> list[str]:
        """Those of "Functional.conv2d", ... that this version does not have."""

    def open(self, place: Place) -> Runner:
        """In a new executor: takes the device."""


class Slot:
    """The shared memory of one slot, as one role sees it; mapped when it is first used.

    A map that has become too small is dropped and replaced: tensors that still lie in it keep it.
    """

    def __init__(self, place: Place, index: int) -> None:
        first = place.first_descriptor + 3 * index
        self._inputs_fd = first
        self._results_fd = first + (1 if place.is_bench else 2)
        self._inputs: mmap.mmap | None = None
        self._results: mmap.mmap | None = None
        self._used = 0
        self._touched = 0

    def inputs(self, end: int) -> mmap.mmap:
        """Memory of the arguments, at least `end` > 0 bytes."""
        if self._inputs is None or len(self._inputs) < end:
            size = os.fstat(self._inputs_fd).st_size
            if size < end:
                raise BadArgumentError(f"a tensor ends at byte {end} of the shared memory, which "
                                       f"has {size} bytes")
            self._inputs = mmap.mmap(self._inputs_fd, size, mmap.MAP_SHARED, mmap.PROT_READ)
        return self._inputs

    def begin_results(self) -> None:
        """The results of a new call start at the beginning."""
        if self._touched > _KEPT_BYTES and self._results is not None and self._used < self._touched:
            page = mmap.ALLOCATIONGRANULARITY
            start = -(-max(self._used, _KEPT_BYTES) // page) * page
            if start < self._touched:
                self._results.madvise(mmap.MADV_REMOVE, start, len(self._results) - start)
            self._touched = start
        self._used = 0

    def take(self, size: int) -> tuple[mmap.mmap, int]:
        """Room for `size` > 0 bytes of a result: the memory and the offset in it."""
        offset = -(-self._used // _ALIGNMENT) * _ALIGNMENT
        end = self._used = offset + size
        self._touched = max(self._touched, end)
        return self.results(end), offset

    def results(self, end: int) -> mmap.mmap:
        """Memory of the results, at least `end` > 0 bytes."""
        if self._results is None or len(self._results) < end:
            self._results = self._map_results(end)
        return self._results

    def _map_results(self, end: int) -> mmap.mmap:
        size = os.fstat(self._results_fd).st_size
        if size < end:
            # Doubled, so that few calls pay for it; pages that nobody writes cost nothing.
            page = mmap.ALLOCATIONGRANULARITY
            size = -(-max(end, 2 * size, _LEAST_RESULTS) // page) * page
            os.ftruncate(self._results_fd, size)
        return mmap.mmap(self._results_fd, size)


def serve(connection: socket.socket, runner: Runner) -> None:
    """Answers requests in their order until the other end is closed.

    Each answer is sent before the next call runs: a call that crashes or hangs takes no answer of
    another one with it.
    """
    encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
    gc.disable()
    pieces: list[bytes] = []
    calls, bytes_collected = 0, 0
    while chunk := connection.recv(1 << 20):
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            pieces.append(chunk)
            continue
        lines = b"".join((*pieces, head)).split(b"\n")
        pieces = [tail]
        for line in lines:
            answer = answer_line(line, runner)
            connection.sendall(encode(answer).encode() + b"\n")
            if runner.is_broken:
                raise SystemExit(1)
            calls += 1
            large = runner.bytes_seen - bytes_collected > _BYTES_PER_COLLECTION
            if calls % _CALLS_PER_COLLECTION == 0 or large:
                bytes_collected = runner.bytes_seen
                gc.collect()


def answer_line(line: bytes, runner: Runner) -> dict[str, Any]:
    """The answer to one line. A request that makes no sense gets {"id", "error"}."""
    identity = None
    try:
        request = _decode(line.decode())
        identity = request["id"]
        answer = runner.run(request)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        answer = {"error": f"the request is malformed: {one_line(error)}"}
    if runner.is_broken:
        answer["last"] = True  # lines after this one were not begun
    return {"id": identity, **answer}


def one_line(error: BaseException) -> str:
    """An exception as one line: "RuntimeError: ...", without the C++ frames that torch adds."""
    text = " ".join(str(error).split("\nException raised from ")[0].split())
    name = type(error).__name__
    line = f"{name}: {text}" if text else name
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."
