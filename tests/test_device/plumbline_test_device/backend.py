"""The library behind the device: loading, counters, defects, switches."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import torch

NAME = "testdev"
_SYNCHRONISING = ("scalar_reads", "shape_reads", "copy_syncs", "stream_syncs", "event_syncs",
                  "device_syncs")


class _DefectOptions(ctypes.Structure):
    """DefectOptions of test_device.h."""

    _fields_ = (("op", ctypes.c_char_p), ("kind", ctypes.c_char_p), ("dtype", ctypes.c_char_p),
                ("value", ctypes.c_double), ("lane", ctypes.c_int64), ("skip", ctypes.c_int64),
                ("times", ctypes.c_int64))


class _State:
    """What belongs to this process."""

    library: ctypes.CDLL | None = None
    from_environment: tuple[Defect, ...] = ()


def load() -> None:
    """Makes the device known to PyTorch as `testdev`; the second call does nothing."""
    if _State.library is not None:
        return
    library = ctypes.CDLL(str(Path(__file__).with_name("libplumbline_test_device.so")))
    library.ptd_last_error.restype = ctypes.c_char_p
    library.ptd_counter_name.restype = ctypes.c_char_p
    library.ptd_operator_counts.restype = ctypes.c_char_p
    library.ptd_counter_name.argtypes = [ctypes.c_int64]
    library.ptd_counters.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_int64]
    library.ptd_inject.argtypes = [ctypes.POINTER(_DefectOptions)]
    library.ptd_seed.argtypes = [ctypes.c_int, ctypes.c_uint64]
    library.ptd_initial_seed.restype = ctypes.c_uint64
    for name in ("ptd_random_state", "ptd_set_random_state"):
        getattr(library, name).argtypes = [ctypes.c_int, ctypes.c_void_p]
        getattr(library, name).restype = ctypes.c_int64
    for name in ("ptd_clear", "ptd_hits"):
        getattr(library, name).argtypes = [ctypes.c_int64]
    for name in ("ptd_counters", "ptd_inject", "ptd_hits", "ptd_set_protected", "ptd_is_deferred"):
        getattr(library, name).restype = ctypes.c_int64
    _State.library = library

    from plumbline_test_device import device_module  # it needs the library

    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, device_module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    atexit.register(_let_backward_threads_finish)
    _read_environment()


def _let_backward_threads_finish() -> None:
    """PyTorch runs backward passes of accelerators in threads of its own, which drop the last
    references to hooks when `backward` has already returned. One that asks for the interpreter's
    lock while the interpreter ends aborts the process, so they get a moment before that."""
    if counters()["kernels"]:
        time.sleep(0.02)


def _read_environment() -> None:
    if os.environ.get("PLUMBLINE_TEST_DEVICE_PROTECT") == "0":
        set_protect(False)
    if os.environ.get("PLUMBLINE_TEST_DEVICE_DEFERRED") == "1":
        set_deferred(True)
    text = os.environ.get("PLUMBLINE_TEST_DEVICE_DEFECTS", "")
    if not text:
        return
    try:
        wanted = json.loads(text)
        _State.from_environment = tuple(inject(**each) for each in wanted)
    except (TypeError, ValueError) as error:
        raise ValueError(f"PLUMBLINE_TEST_DEVICE_DEFECTS: {error} (expected a JSON list of objects "
                         f"with the arguments of inject, got {text!r})") from error


def _library() -> ctypes.CDLL:
    load()
    library = _State.library
    assert library is not None
    return library


def counters() -> dict[str, int]:
    """What happened since the last reset; `syncs` is the sum of all points where the host waits."""
    library = _library()
    count = library.ptd_counters(None, 0)
    values = (ctypes.c_uint64 * count)()
    library.ptd_counters(values, count)
    result = {library.ptd_counter_name(i).decode(): int(values[i]) for i in range(count)}
    result["syncs"] = sum(result[name] for name in _SYNCHRONISING)
    return result


def reset_counters() -> None:
    """Sets all counters but `live_bytes` to zero, those of `op_counts` too."""
    _library().ptd_reset_counters()


def op_counts() -> dict[str, int]:
    """Kernels run since the last reset, by name and overload: `{"mm.out": 2}`."""
    text = _library().ptd_operator_counts().decode()
    pairs = (line.rsplit(" ", 1) for line in text.splitlines())
    return {name.removeprefix("aten::"): int(count) for name, count in pairs}


class Defect:
    """One defect that was switched on; as a context manager it is switched off at the end."""

    def __init__(self, number: int) -> None:
        self._number = number

    @property
    def hits(self) -> int:
        """Calls it acted on; of a numeric kind, only those of which it changed some byte."""
        return int(_library().ptd_hits(self._number))

    def clear(self) -> None:
        """Switches it off; `hits` can still be read."""
        _library().ptd_clear(self._number)

    def __enter__(self) -> Defect:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.clear()


def inject(op: str, kind: str, value: float = 0.0, *, dtype: str | None = None,
           lane: int | None = None, skip: int = 0, times: int = -1) -> Defect:
    """Makes calls of an operator on the device go wrong, from now on.

    Args:
        op: base name for all overloads and the in-place form ("mm", "_softmax_backward_data");
            operators of other libraries as "namespace::name".
        kind: scale (by `value`), nan (in lane 0 unless told), bf16acc (sums of products rounded to
            bfloat16 after each term, other results rounded once), lost_carry (sums forget their
            first half, other results the carry into the upper half of the mantissa), sleep
            (`value` seconds), hang, abort, crash (SIGSEGV), error (an exception).
        dtype: only calls whose first tensor has it ("bfloat16").
        lane: only elements whose row-major number is `lane` modulo 16.
        skip: leave so many matching calls alone first.
        times: act on so many calls at most.
    """
    options = _DefectOptions(op.encode(), kind.encode(), (dtype or "").encode(), value,
                             -1 if lane is None else lane, skip, times)
    library = _library()
    number = library.ptd_inject(ctypes.byref(options))
    if number < 0:
        raise ValueError(library.ptd_last_error().decode())
    return Defect(number)


def clear_defects() -> None:
    """Switches all defects off."""
    _library().ptd_clear(-1)


def defects_from_environment() -> tuple[Defect, ...]:
    """Those that PLUMBLINE_TEST_DEVICE_DEFECTS switched on, in its order."""
    return _State.from_environment


def device_count() -> int:
    """How many devices there are."""
    return int(_library().ptd_device_count())


def seed(device: int, value: int) -> None:
    """Seeds the default generator of a device."""
    _library().ptd_seed(device, value % 2**64)


def initial_seed(device: int) -> int:
    """What the default generator of a device was last seeded with."""
    return int(_library().ptd_initial_seed(device))


def random_state(device: int) -> torch.Tensor:
    """The state of the default generator of a device, as a byte tensor on the CPU."""
    library = _library()
    state = torch.empty(library.ptd_random_state(device, None), dtype=torch.uint8)
    library.ptd_random_state(device, state.data_ptr())
    return state


def set_random_state(device: int, state: torch.Tensor) -> None:
    """Sets what `random_state` returned."""
    library = _library()
    size = library.ptd_random_state(device, None)
    if state.device.type != "cpu" or state.dtype != torch.uint8 or state.numel() != size:
        raise ValueError(f"testdev: random state of {size} bytes on the CPU expected, got "
                         f"{state.numel()} of {state.dtype} on {state.device}")
    if library.ptd_set_random_state(device, state.contiguous().data_ptr()) != 0:
        raise RuntimeError(library.ptd_last_error().decode())


def set_protect(on: bool) -> None:
    """Whether host access faults; without it kernels start faster. Before the first tensor only."""
    if _library().ptd_set_protected(int(on)) != 0:
        raise RuntimeError("testdev: protection can be switched only before the first tensor")


def set_deferred(on: bool) -> None:
    """Whether non-blocking copies to pinned memory arrive only when the host waits for them."""
    _library().ptd_set_deferred(int(on))


@contextmanager
def deferred_copies() -> Iterator[None]:
    """`set_deferred(True)` for a while; what is still under way at the end arrives then."""
    before = bool(_library().ptd_is_deferred())
    set_deferred(True)
    try:
        yield
    finally:
        set_deferred(before)
