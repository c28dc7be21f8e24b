"""Values of tensors on a device that come to the host later, while the training goes on.

Statistics: a tensor is reduced on the stream that is current, into a row of a table on the device;
a step's rows are copied together, on a stream of our own behind an event. Elements, for files and
digests: they are copied into pinned memory on the stream that is current, which orders the copy
before later writes to the tensor. A thread asks the events now and then, and hands what is there to
the recorder. The training waits for none of it, unless the memory for what is under way is used up.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import torch

from plumbline import _core
from plumbline.deliveries import Deliveries, HostCopy, sentence
from plumbline.pytorch.device.statistics import COLUMNS, digest_into, reduce_into
from plumbline.values import first_line

_ROWS = 4096  # of a table: 416 KB
# And the value of an integer without dimensions, which float64 may round; two halves of a digest.
_ROW = COLUMNS + 3
# Tables on their way before the training is held up until one has come.
_MOST_UNDER_WAY = 64
_CAPTURED = -1
_WITHOUT_TRITON: set[str] = set()


class _Table:
    """Rows of one stream of a device, and where they arrive on the host."""

    size = 0

    def __init__(self, device: torch.device) -> None:
        self.rows = torch.empty((_ROWS, _ROW), dtype=torch.int64, device=device)
        self.numbers = self.rows.view(torch.float64)
        self.host = torch.empty((_ROWS, _ROW), dtype=torch.int64, pin_memory=True)
        self.kernels = _kernels_for(device)
        self.first = 0
        self.used = 0
        self.event: Any = None

    def reduce(self, tensor: torch.Tensor, wants_digest: bool) -> int:
        """Fills the next row; its number."""
        index = self.used
        row = self.numbers[index, :COLUMNS]
        if self.kernels is None or not self.kernels.reduce_into(tensor, row):
            reduce_into(tensor, row)
        if tensor.dim() == 0 and not tensor.is_floating_point() and not tensor.is_complex():
            self.rows[index, COLUMNS].copy_(
                tensor.view(torch.int64) if tensor.dtype is torch.uint64 else tensor)
        halves = self.rows[index, COLUMNS + 1 :]
        if wants_digest and (self.kernels is None or not self.kernels.digest_into(tensor, halves)):
            digest_into(tensor, halves)
        self.used += 1
        return self.first + index

    def deliver(self, recorder: _core.Recorder) -> None:
        recorder.add_rows(self.first, self.host.data_ptr(), self.used)


class LateValues:
    """The tables of this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._recorder: _core.Recorder | None = None
        self._wants_digest = False
        self._open: dict[tuple[torch.device, int], tuple[_Table, Any]] = {}
        self._free: dict[torch.device, list[_Table]] = {}
        self._streams: dict[torch.device, Any] = {}
        self._next = 1
        self._unable: set[torch.device] = set()
        self._under_way = Deliveries(self._arrived)

    def use(self, recorder: _core.Recorder) -> None:
        """Values go to `recorder` from now on."""
        self._recorder = recorder
        self._wants_digest = recorder.wants_digest

    def reduce(self, tensor: torch.Tensor) -> int | None:
        """The number under which the statistics will come.

        None: they have to be read now. _CAPTURED: there are none, the work is only being recorded
        into a graph, and what would be added to it here would run again with every replay.
        """
        return self._left_behind(tensor, self._reduce)

    def copy(self, tensor: torch.Tensor) -> int | None:
        """The same of every element."""
        return self._left_behind(tensor, self._copy)

    def _left_behind(self, tensor: torch.Tensor, how: Any) -> int | None:
        device = tensor.device
        if _is_capturing(device):
            return _CAPTURED
        if device in self._unable or self._recorder is None:
            return None
        with self._lock, torch._C._DisableTorchDispatch(), torch._C._DisableFuncTorch(), \
                torch.no_grad():
            try:
                number: int | None = how(tensor.detach(), device)
                return number
            except (RuntimeError, NotImplementedError, TypeError, AttributeError) as error:
                if tensor.dtype is torch.float32:  # the device, not a dtype of its own
                    self._unable.add(device)
                    _core.log_info(f"tensors on {device} are copied to the host to be read: "
                                   f"{first_line(error)}")
                return None

    def send(self) -> None:
        """Sends for what the tables hold, without waiting: the window closes or the step ends."""
        with self._lock:
            for table, stream in self._open.values():
                self._send(table, stream)
            self._open.clear()

    def receive(self) -> None:
        """Waits until all that was sent for has come: the process ends."""
        self._under_way.receive()

    def _reduce(self, tensor: torch.Tensor, device: torch.device) -> int:
        stream = getattr(torch, device.type).current_stream(device)
        key = (device, stream.stream_id)
        table = self._open.get(key, (None,))[0]
        if table is None or table.used == _ROWS:
            if table is not None:
                self._send(table, stream)
            table = self._new_table(device)
            self._open[key] = (table, stream)
        return table.reduce(tensor, self._wants_digest)

    def _copy(self, tensor: torch.Tensor, device: torch.device) -> int | None:
        size = tensor.numel() * tensor.element_size()
        if not self._under_way.wait_for_room(size):
            return None
        module = getattr(torch, device.type)
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        host.copy_(tensor, non_blocking=True)
        event = module.Event()
        event.record(module.current_stream(device))
        number = self._next
        self._next += 1
        assert self._recorder is not None
        self._under_way.follow(self._recorder, HostCopy(number, host, size, event))
        return number

    def _new_table(self, device: torch.device) -> _Table:
        free = self._free.setdefault(device, [])
        if not free:
            way = self._under_way
            way.wait_until(lambda: bool(free) or way.count < _MOST_UNDER_WAY)
        table = free.pop() if free else _Table(device)
        table.first = self._next
        table.used = 0
        self._next += _ROWS
        return table

    def _send(self, table: _Table, stream: Any) -> None:
        recorder = self._recorder
        if table.used == 0 or recorder is None:
            return
        device = table.rows.device
        module = getattr(torch, device.type)
        try:
            if device not in self._streams:
                self._streams[device] = module.Stream(device=device)
            side = self._streams[device]
            reduced = module.Event()
            reduced.record(stream)
            side.wait_event(reduced)
            with _current(module, side):
                table.host[: table.used].copy_(table.rows[: table.used], non_blocking=True)
                table.event = module.Event()
                table.event.record(side)
        except RuntimeError as error:
            recorder.drop_values(table.first, table.used, sentence(error))
            return
        self._under_way.follow(recorder, table)

    def _arrived(self, parcel: _Table | HostCopy) -> None:
        if isinstance(parcel, _Table):
            self._free.setdefault(parcel.rows.device, []).append(parcel)


def _is_capturing(device: torch.device) -> bool:
    ask = getattr(getattr(torch, device.type, None), "is_current_stream_capturing", None)
    return ask is not None and bool(ask())


def _kernels_for(device: torch.device) -> Any:
    """Triton's way, where Triton has a driver for devices of that type; else None."""
    if device.type in _WITHOUT_TRITON:
        return None
    try:
        import triton
        driven = triton.runtime.driver.active.get_active_torch_device().type
        if driven == device.type:
            from plumbline.pytorch.device.triton_statistics import TritonStatistics
            return TritonStatistics(device)
    except Exception as error:  # not installed, no driver, no compiler: the operators serve
        _core.log_info(f"statistics on {device.type} without Triton: {first_line(error)}")
    _WITHOUT_TRITON.add(device.type)
    return None


def _current(module: Any, stream: Any) -> contextlib.AbstractContextManager[Any]:
    """Makes `stream` the current one."""
    switch = getattr(module, "stream", None)  # a torch.Stream is a context manager since 2.6
    manager: contextlib.AbstractContextManager[Any] = stream if switch is None else switch(stream)
    return manager
