"""async_dump in PyNative mode: tensors of a device come later, and are those of the moment.

A CPU has no device memory. In its place stands a device whose copies to the host arrive only when
their event has been asked several times, and whose memory nobody may look at.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from ms_recording import assert_nothing_lost, entries, new_debugger, read

from plumbline import deliveries


class Device:
    """Every tensor is on it but what it has copied to the host."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.waits = self.reads = self.most = 0
        self.host: dict[int, Tensor] = {}
        self.under_way: list[Callable[[], None]] = []
        self.is_on = False
        pointer, device = ms.Tensor.data_ptr, self

        def data_ptr(tensor: Tensor) -> int:
            device.reads += device.place(tensor) != "CPU"
            return int(pointer(tensor))

        class Event:
            def record(self) -> None:
                self.copies, device.under_way = device.under_way, []
                self.polls = 0

            def query(self) -> bool:
                self.polls += 1
                while self.polls > 3 and self.copies:
                    self.copies.pop()()
                return not self.copies

        patch.setattr(ms.Tensor, "device", property(self.place), raising=False)
        patch.setattr(ms.Tensor, "data_ptr", data_ptr)
        patch.setattr(ms.Tensor, "move_to", lambda *args, **named: self.move(*args, **named))
        patch.setattr(ms.runtime, "Event", Event)

    def place(self, tensor: Tensor) -> str:
        return "Ascend:0" if self.is_on and self.host.get(id(tensor)) is not tensor else "CPU"

    def move(self, tensor: Tensor, to: str, blocking: bool = True) -> Tensor:
        assert to == "CPU"
        values = tensor.asnumpy().copy()  # as an operator of the stream: what it holds now
        memory = values if blocking else np.full_like(values, 77)
        result = Tensor.from_numpy(memory)
        self.host[id(result)] = result
        self.waits += blocking
        if not blocking:
            self.under_way.append(lambda: np.copyto(memory, values))
        return result


class Net(nn.Cell):  # type: ignore[misc]
    """Writes to its parameter while the copies of it are under way."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor(np.arange(12, dtype=np.float32).reshape(3, 4)), name="w")

    def construct(self, x: Any) -> Any:
        h = ops.matmul(x, ops.relu(self.w))
        ops.assign_add(self.w, ops.ones_like(self.w))
        return ops.relu(ops.matmul(ops.abs(h), self.w.T)).sum()


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    return Device(monkeypatch)


def record(folder: Path, device: Device, **options: Any) -> None:
    folder.mkdir()
    net = Net()
    debugger = new_debugger(folder, **options)
    for number in range(2):
        device.is_on = True
        debugger.start(net)
        net(Tensor(np.full((2, 3), number + 1, np.float32)))
        debugger.stop()
        debugger.step()
    device.is_on = False
    debugger._close()


def files(folder: Path) -> dict[str, bytes]:
    root = folder / "out"
    return {str(path.relative_to(root)): path.read_bytes().replace(str(folder).encode(), b"")
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.name not in (".run", "stack.json")}


@pytest.mark.parametrize("options", [
    {"task": "statistics"}, {"task": "statistics", "summary_mode": "md5"},
    {"task": "tensor", "list": ["matmul", "Cell", "relu"]}])
def test_files_are_those_of_reading_at_once_and_nothing_waits(
    tmp_path: Path, device: Device, options: dict[str, Any]
) -> None:
    record(tmp_path / "at_once", device, level="mix", **options)
    assert device.waits > 10
    device.waits = device.reads = 0
    record(tmp_path / "later", device, level="mix", async_dump=True, **options)
    assert (device.waits, device.reads) == (0, 0)
    assert_nothing_lost(tmp_path / "later")
    assert files(tmp_path / "later") == files(tmp_path / "at_once")
    # The inputs of the second product are those after the addition, of the first those before it.
    first, second = (entries(tmp_path / "later")[f"Functional.matmul.{number}.forward"]
                     for number in (0, 1))
    assert first["input_args"][1]["Max"] == 11 and second["input_args"][1]["Max"] == 12
    assert read(tmp_path / "later")["framework"] == "mindspore"


def test_the_training_is_held_up_before_memory_is_used_up(
    tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "_MOST_BYTES", 48)  # one parameter
    record(tmp_path / "later", device, level="L1", async_dump=True)
    assert device.waits == 0
    assert_nothing_lost(tmp_path / "later")
    monkeypatch.setattr(deliveries, "_MOST_BYTES", 47)
    device.waits = 0
    record(tmp_path / "large", device, level="L1", async_dump=True)
    assert device.waits > 0  # those that are larger
    assert files(tmp_path / "large") == files(tmp_path / "later")


def test_a_device_that_copies_nothing_in_the_background_is_read_at_once(
    tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    record(tmp_path / "at_once", device, level="L1")
    monkeypatch.setattr(ms.runtime, "Event", None)
    record(tmp_path / "later", device, level="L1", async_dump=True)
    assert files(tmp_path / "later") == files(tmp_path / "at_once")
    assert capfd.readouterr().out.count("async_dump: tensors on Ascend:0 are read at once") == 1


def test_copies_that_never_come_are_counted(
    tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any) -> bool:
        raise RuntimeError("the device is lost")

    monkeypatch.setattr(ms.runtime.Event, "query", fails)
    record(tmp_path / "later", device, level="L1", async_dump=True)
    entry = entries(tmp_path / "later")["Functional.relu.0.forward"]["output"][0]
    assert entry["shape"] == [3, 4] and entry["Max"] is None
    log = (tmp_path / "later/out/step0/rank/dump_error_info.log").read_text()
    assert "values_dropped" in log and "the device is lost" in log


def test_on_a_cpu_the_files_are_written_in_the_background(tmp_path: Path, device: Device) -> None:
    for name, is_async in (("at_once", False), ("later", True)):
        folder = tmp_path / name
        folder.mkdir()
        net, debugger = Net(), new_debugger(folder, level="mix", async_dump=is_async)
        debugger.start(net)
        net(Tensor(np.ones((2, 3), np.float32)))
        debugger.stop()
        debugger.step()
        debugger._close()
    assert device.waits == 0 and not device.host
    assert files(tmp_path / "later") == files(tmp_path / "at_once")
