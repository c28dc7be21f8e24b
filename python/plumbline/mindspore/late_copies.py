"""Elements of tensors on a device that come to the host later: `async_dump` in PyNative mode."""

from __future__ import annotations

import threading

import mindspore as ms

from plumbline import _core
from plumbline.deliveries import Deliveries, HostCopy
from plumbline.values import first_line


class LateCopies:
    """The copies of this process. Thread-safe.

    A copy is one of the operators of the stream that is current: it holds what the tensor held
    when it was asked for, whatever writes to it later.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recorder: _core.Recorder | None = None
        self._next = 1
        self._under_way = Deliveries()

    def use(self, recorder: _core.Recorder) -> None:
        """Elements go to `recorder` from now on, where its configuration says `async_dump`."""
        self._recorder = recorder if recorder.is_async else None

    def copy(self, tensor: ms.Tensor) -> int | None:
        """The number under which the elements will come; None: they have to be read now."""
        recorder, way, size = self._recorder, self._under_way, int(tensor.nbytes)
        if recorder is None or getattr(tensor, "is_meta", False) or not way.wait_for_room(size):
            return None
        try:
            host = tensor.move_to("CPU", blocking=False)
            event = ms.runtime.Event()
            event.record()
        except Exception as error:  # in every call: the recorder then reads tensors as they come
            self._recorder = None
            _core.log_warning(f"async_dump: tensors on {tensor.device} are read at once: "
                              f"{first_line(error)}")
            return None
        with self._lock:
            number = self._next
            self._next += 1
        way.follow(recorder, HostCopy(number, host, size, event))
        return number

    def receive(self) -> None:
        """Waits until all of them have come: the process ends."""
        self._under_way.receive()
