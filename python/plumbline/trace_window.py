"""Mode "trace" of task overflow_check: a tracer of module calls in place of a recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plumbline import _core
from plumbline.call_window import Window


class TraceWindow(Window):
    """Lets a tracer see the model's calls between `start()` and `stop()`.

    Args:
        config: with the settings of the tracer.
        make_tracer: OverflowTracer of the framework.
        rank: tells the rank of this process.
        model: of the debugger's constructor; `start(model=...)` wins.
    """

    without = "with overflow_check.mode \"trace\""

    def __init__(self, config: _core.Config, make_tracer: Callable[..., Any],
                 rank: Callable[[], int | None], model: Any = None) -> None:
        super().__init__()
        for warning in config.warnings:
            _core.log_warning(warning)
        self._config = config
        self._make_tracer = make_tracer
        self._rank = rank
        self._model = model
        self._tracer: Any = None
        self._traced: Any = None
        self._step = 0

    def start(self, model: Any, tokens: tuple[int, int] | None, rank_id: int | None) -> None:
        if tokens is not None:
            self.warn_once(f"token_range has no effect {self.without}")
        self._model = self._model if model is None else model
        if self._model is None:
            raise ValueError("start(): the model is missing. With overflow_check.mode \"trace\" "
                             "call start(model=your_module).")
        if not self._config.wants(self._step, self._rank() if rank_id is None else rank_id):
            return
        if self._tracer is None or self._traced is not self._model:
            self._stop()
            self._traced = self._model
            self._tracer = self._make_tracer(
                self._model,
                max_frames_to_save=self._config.max_frames,
                trace_batch_nums=self._config.traced_batches,
                abort_after_batch_num=self._config.abort_after_batch,
                dump_path=self._config.dump_path,
                raise_on_overflow=self._config.raises_on_overflow,
            )
        self._tracer.resume()

    def stop(self) -> None:
        self._stop()

    def step(self) -> None:
        self._stop()
        self._step += 1

    def set_init_step(self, step: int) -> None:
        self._step = step

    @property
    def run_directory(self) -> str:
        return str(self._config.dump_path)

    def close(self) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._tracer is not None:
            self._tracer.remove()
