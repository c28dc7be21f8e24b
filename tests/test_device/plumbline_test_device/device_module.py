"""`torch.testdev`: what PyTorch and programs written for accelerators look for in a backend."""

from __future__ import annotations

from types import TracebackType

import torch

from plumbline_test_device import backend

DeviceLike = int | str | torch.device | None


class Stream(torch.Stream):
    """A stream of the device."""

    def __new__(cls, device: DeviceLike = None, priority: int = 0) -> Stream:
        index = _index(device)
        return super().__new__(cls, torch.device(backend.NAME, index), priority=priority)


class Event(torch.Event):
    """An event of the device."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False) -> Event:
        return super().__new__(cls, backend.NAME, enable_timing=enable_timing, blocking=blocking)


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def init() -> None:
    pass


def _lazy_init() -> None:
    pass


def _is_in_bad_fork() -> bool:
    return False  # nothing of the device lives outside the process


def device_count() -> int:
    return backend.device_count()


def current_device() -> int:
    return torch.accelerator.current_device_index()


def set_device(device: DeviceLike) -> None:
    torch.accelerator.set_device_index(_index(device))


def _index(device: DeviceLike) -> int:
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return current_device() if index is None else index


class device:  # named as in torch.cuda
    """`with torch.testdev.device(1):` makes a device the current one."""

    def __init__(self, device: DeviceLike) -> None:
        self._index = _index(device)
        self._before = 0

    def __enter__(self) -> None:
        self._before = current_device()
        set_device(self._index)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        set_device(self._before)


def synchronize(device: DeviceLike = None) -> None:
    torch.accelerator.synchronize(_index(device))


def current_stream(device: DeviceLike = None) -> torch.Stream:
    return torch.accelerator.current_stream(_index(device))


def set_stream(stream: torch.Stream) -> None:
    torch.accelerator.set_stream(stream)


def get_device_name(device: DeviceLike = None) -> str:
    return f"plumbline test device {_index(device)}"


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


def is_bf16_supported() -> bool:
    return True


def empty_cache() -> None:
    pass


def memory_allocated(device: DeviceLike = None) -> int:
    return backend.counters()["live_bytes"]


def max_memory_allocated(device: DeviceLike = None) -> int:
    return backend.counters()["peak_bytes"]


def manual_seed(seed: int) -> None:
    backend.seed(current_device(), seed)


def manual_seed_all(seed: int) -> None:
    for index in range(device_count()):
        backend.seed(index, seed)


def initial_seed() -> int:
    return backend.initial_seed(current_device())


def get_rng_state(device: DeviceLike = None) -> torch.Tensor:
    return backend.random_state(_index(device))


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = None) -> None:
    backend.set_random_state(_index(device), new_state)


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
