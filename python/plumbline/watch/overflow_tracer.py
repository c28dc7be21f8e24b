"""The last forward calls before the first NaN or Inf: `plumbline.pytorch.OverflowTracer`.

Size caps: the constructor has the four arguments of transformers' class and three more.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from plumbline import _core
from plumbline.guards import CopyableHook


class TracedFramework(Protocol):
    """What the tracer must know of a framework."""

    def parts(self) -> dict[str, Any]:
        """What `_core.ModelTracer` asks for."""

    def named_modules(self, model: Any) -> Iterable[tuple[str, Any]]:
        """All modules, the model itself first, each once."""

    def is_module(self, value: object) -> bool:
        """Whether `value` is a module of the framework."""

    def rank(self) -> int | None:
        """Global rank; None without a process group."""

    def is_alone(self) -> bool:
        """Whether no other process waits for this one."""

    def is_compiling(self) -> bool:
        """Whether hooks run to be compiled, not to see values."""


def _check_count(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r} (expected an integer of at least {least})")
    return value


class OverflowTracerBase:
    """Hooks every module of a model, keeps what its last calls showed, and ends at NaN or Inf.

    After the call of each module a frame notes the smallest and largest magnitude of its own
    parameters, its inputs and its outputs. When a frame holds NaN or Inf, the frames that led up to
    it are printed in the form of transformers' DebugUnderflowOverflow and written to
    `{dump_path}/overflow_trace_rank{R}.json`, and ValueError is raised in place of the module's
    answer. Values on a device are asked for once, when the forward of the model is over. The tracer
    changes nothing that the model computes.

    Args:
        model: the module whose forward is a batch.
        max_frames_to_save: how many frames are kept.
        trace_batch_nums: numbers of batches, from 0, of which every frame is printed; nothing is
            searched for in them.
        abort_after_batch_num: ValueError behind the batch with this number.
        dump_path: directory of the file.
        raise_on_overflow: whether NaN or Inf ends the training; None: unless there are other
            processes, which would wait for this one for ever.

    Raises:
        ValueError: an argument is of the wrong type or out of range.

    Example:
        >>> tracer = OverflowTracer(model, max_frames_to_save=100)  # doctest: +SKIP
        >>> loss = model(batch).loss                                # doctest: +SKIP
    """

    _framework: TracedFramework

    def __init__(
        self,
        model: Any,
        max_frames_to_save: int = 21,
        trace_batch_nums: Iterable[int] | None = (),
        abort_after_batch_num: int | None = None,
        *,
        dump_path: str | os.PathLike[str] = "./output",
        raise_on_overflow: bool | None = None,
    ) -> None:
        if not self._framework.is_module(model):
            raise ValueError(f"model must be a module (got {type(model).__name__})")
        if raise_on_overflow is not None and not isinstance(raise_on_overflow, bool):
            raise ValueError(f"raise_on_overflow is {raise_on_overflow!r} (expected True, False or "
                             "None)")
        if abort_after_batch_num is not None:
            _check_count("abort_after_batch_num", abort_after_batch_num, 0)
        traced = [_check_count("trace_batch_nums: an element", number, 0)
                  for number in trace_batch_nums or ()]
        self._dump_path = os.fspath(dump_path)
        self._raises = raise_on_overflow
        self._model_type = type(model).__name__
        self._model = weakref.ref(model)
        self._handles: list[Any] = []
        self._pid = os.getpid()
        self._has_failed = False
        self._native = _core.ModelTracer(
            framework=self._framework.parts(),
            max_frames=_check_count("max_frames_to_save", max_frames_to_save, 1),
            traced_batches=traced,
            abort_after=abort_after_batch_num,
        )
        self.is_over = False
        self.resume()

    def resume(self) -> None:
        """Puts the hooks back that `remove()` took away, unless the trace is over."""
        model = self._model()
        if self._handles or self.is_over or model is None:
            return
        for name, module in self._framework.named_modules(model):
            is_root = module is model
            hook = CopyableHook(self._after, weakref.ref(module), name, is_root)
            options = {"always_call": True} if is_root else {}
            self._handles.append(module.register_forward_hook(hook, **options))

    def remove(self) -> None:
        """Takes the hooks away; what was kept stays."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __enter__(self) -> OverflowTracerBase:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def _after(self, known: Callable[[], Any], name: str, is_root: bool,
               module: Any, args: Any, output: Any) -> None:
        if self._framework.is_compiling() or known() is not module or os.getpid() != self._pid:
            return
        raised = is_root and output is None and sys.exc_info()[0] is not None
        try:
            report = (self._native.end_early() if raised
                      else self._native.frame(name, is_root, module, args, output))
        except Exception as error:
            # A hook never ends the training but for what it was asked to end it for.
            if not self._has_failed:
                self._has_failed = True
                _core.log_warning(f"OverflowTracer: {name or self._model_type} is left out: "
                                  f"{type(error).__name__}: {error} (said once)")
            return
        if report is not None:
            self._tell(report, raised)

    def _tell(self, report: _core.TraceReport, raised: bool) -> None:
        if report.text:
            print(report.text, end="", flush=True)
        if report.is_written:
            self._write()
        if report.is_found:
            self.is_over = True
            self.remove()
        if not report.error or raised:
            return
        raises = self._framework.is_alone() if self._raises is None else self._raises
        if raises or not report.is_found:
            raise ValueError(report.error)
        _core.log_error(f"{report.error}. The training goes on, and the tracer has ended")

    def _write(self) -> None:
        try:
            self._native.write(self._dump_path, self._model_type, self._framework.rank() or 0)
        except Exception as error:
            _core.log_error(f"OverflowTracer: the frames are printed and not written: {error}")
