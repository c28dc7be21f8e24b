"""Recording the Triton kernels that the user launches: `kernel[grid](...)`, while a window is open.

A launch is an entry `Triton.{kernel}.{n}.forward` whose output is the arguments afterwards, because
kernels write into them. Seen on the classes of kernels, whose `run` every launch goes through; the
kernels that torch.compile makes are launched otherwise.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from plumbline import _core

_KERNEL_CLASSES = (
    ("triton.runtime.jit", "JITFunction"),
    ("triton.runtime.interpreter", "InterpretedFunction"),  # of TRITON_INTERPRET=1
    ("triton.runtime.autotuner", "Autotuner"),
    ("triton.runtime.autotuner", "Heuristics"),
)


class _NoHandle:
    """No launch returns one: it is complete in the order of the device's stream."""


class TritonHooks:
    """The probes of one process; installed while a window is open."""

    def __init__(self, recorder: _core.Recorder) -> None:
        self._launches = _core.Collectives(recorder, _NoHandle, bool, {})
        self._patches = _core.PatchSet()
        self._known: set[Any] = set()
        self._probes: dict[int, tuple[Any, Any]] = {}  # by kernel's identity: it and its probe

    def resume(self) -> None:
        """Replaces the launch of every class of kernels that is loaded by now; idempotent."""
        for module, name in _KERNEL_CLASSES:
            kind = getattr(sys.modules.get(module), name, None)
            launch = vars(kind).get("run") if isinstance(kind, type) else None
            if launch is not None and kind not in self._known and not self._patches.is_applied:
                self._known.add(kind)
                self._patches.add(kind, "run", self._launcher(launch))
        self._patches.apply()

    def suspend(self) -> None:
        """Restores everything; idempotent."""
        self._patches.restore()

    def finish(self) -> None:
        """Forgets the kernels, which the user may have made for one call."""
        self._probes.clear()

    def _launcher(self, original: Any) -> Any:
        def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            if warmup:
                return original(self, *args, grid=grid, warmup=warmup, **kwargs)
            return launch(self, *args, **kwargs, grid=grid)

        def launch(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            known = self._probes.get(id(kernel))
            if known is None:
                function = functools.partial(original, kernel, warmup=False)
                probe: Any = self._launches.probe(function, f"Triton.{_name(kernel)}", [], [], [])
                known = self._probes[id(kernel)] = kernel, probe
            return known[1](*args, **kwargs)

        return functools.update_wrapper(run, original)


def _name(kernel: Any) -> str:
    """That of the function in it, below what tunes it."""
    while hasattr(kernel, "fn"):
        kernel = kernel.fn
    return str(getattr(kernel, "__name__", type(kernel).__name__))
