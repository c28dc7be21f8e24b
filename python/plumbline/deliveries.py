"""What is on its way from a device to a recorder while the training goes on.

A thread asks the event of each parcel now and then, and has the parcel delivered when it has come.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from plumbline import _core
from plumbline.values import first_line

_POLL_SECONDS = 0.0005
# On their way before the training is held up; a tensor that is larger is read at once.
_MOST_BYTES = 512 << 20
# A device that gives nothing for so long when the process ends is given up.
_PATIENCE_SECONDS = 60.0


class Parcel(Protocol):
    """Values of `used` tensors, those with the numbers from `first` on."""

    first: int
    used: int
    size: int
    """Bytes that count as under way."""
    event: Any
    """Its query() tells whether they are on the host."""

    def deliver(self, recorder: _core.Recorder) -> None:
        """Hands them over."""


class Deliveries:
    """The parcels of this process. Thread-safe.

    Args:
        delivered: called with each parcel that has come as a whole.
    """

    def __init__(self, delivered: Callable[[Any], None] = lambda parcel: None) -> None:
        self.count = 0
        self.bytes = 0
        self._delivered = delivered
        self._under_way: queue.SimpleQueue[tuple[_core.Recorder, Parcel]] = queue.SimpleQueue()
        self._arrived = threading.Condition()
        self._thread: threading.Thread | None = None

    def follow(self, recorder: _core.Recorder, parcel: Parcel) -> None:
        """`parcel` goes to `recorder` when it has come."""
        with self._arrived:
            self.count += 1
            self.bytes += parcel.size
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._receive, name="plumb-late", daemon=True)
            self._thread.start()
        self._under_way.put((recorder, parcel))

    def wait_until(self, is_free: Callable[[], bool]) -> bool:
        """Holds the training up until what is under way has become less; False: it does not."""
        with self._arrived:
            return self._arrived.wait_for(is_free, _PATIENCE_SECONDS)

    def wait_for_room(self, size: int) -> bool:
        """Holds the training up until `size` bytes may be under way too; False: they have to be
        read now."""
        return size <= _MOST_BYTES and self.wait_until(
            lambda: self.count == 0 or self.bytes + size <= _MOST_BYTES)

    def receive(self) -> None:
        """Waits until everything has come: the process ends."""
        with self._arrived:
            while self.count and self._thread is not None and self._thread.is_alive():
                before = self.count
                self._arrived.wait(_PATIENCE_SECONDS)
                if self.count == before:
                    break

    def _receive(self) -> None:
        while True:
            recorder, parcel = self._under_way.get()
            is_whole = _deliver(recorder, parcel)
            with self._arrived:
                self.count -= 1
                self.bytes -= parcel.size
                if is_whole:
                    self._delivered(parcel)
                self._arrived.notify_all()
            del recorder, parcel


def sentence(error: BaseException) -> str:
    """Why values of a device are lost."""
    return f"the device did not give them: {first_line(error)}"


def _deliver(recorder: _core.Recorder, parcel: Parcel) -> bool:
    """Whether the values came. Never raises."""
    try:
        while not parcel.event.query():
            time.sleep(_POLL_SECONDS)
        parcel.deliver(recorder)
    except Exception as error:
        recorder.drop_values(parcel.first, parcel.used, sentence(error))
        return False
    return True


class HostCopy:
    """The elements of one tensor, copied to the host."""

    used = 1

    def __init__(self, number: int, host: Any, size: int, event: Any) -> None:
        self.first, self.host, self.size, self.event = number, host, size, event

    def deliver(self, recorder: _core.Recorder) -> None:
        if not recorder.add_tensor(self.first, self.host):
            raise RuntimeError(f"the copy on the host cannot be read ({self.host.dtype})")
