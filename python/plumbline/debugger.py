"""PrecisionDebugger: the window a training script opens, written once for every framework.

Size caps: the constructor has upstream's six arguments.
"""

from __future__ import annotations

import atexit
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plumbline import _core
from plumbline.adapter import Adapter
from plumbline.call_window import CallWindow, Settings, Window
from plumbline.token_window import check_token_range
from plumbline.watch.grad_probe import GradWindow
from plumbline.watch.perturbation import PerturbationWindow


class DebuggerBase:
    """Records the calls between `start()` and `stop()`, one output directory per step and rank.

    One per process, as upstream: constructing it again returns the first one. A framework's
    package derives its `PrecisionDebugger` from this class and sets `_adapter`.

    Args:
        config_path: config.json; without it the defaults with the arguments below.
        task: "statistics", "tensor", "structure", "overflow_check", "nan_check", "free_benchmark"
            or "grad_probe"; wins over the file.
        dump_path: output directory; wins over the file.
        level: "L0" (modules), "L1" (APIs), "mix" (both), "L2" (the operators below the one call
            that `list` names) or "debug" (what `save()` is given); wins over the file.
        model: deprecated, pass it to `start()`.
        step: step numbers to record, as ints or "a-b" ranges; wins over the file.

    Raises:
        ValueError: a setting is unknown, of the wrong type or out of range.
        FileNotFoundError: config_path does not exist.

    Example:
        >>> debugger = PrecisionDebugger(dump_path="./out", level="mix")  # doctest: +SKIP
        >>> debugger.start(model=model)                                   # doctest: +SKIP
        >>> loss = model(batch).sum(); loss.backward()                    # doctest: +SKIP
        >>> debugger.stop(); debugger.step()                              # doctest: +SKIP
    """

    _adapter: Adapter
    _instance: DebuggerBase | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> DebuggerBase:
        """Returns the one debugger of the process."""
        if DebuggerBase._instance is None:
            instance = super().__new__(cls)
            instance._ready = False
            return instance
        return DebuggerBase._instance

    _ready: bool
    _settings: Settings
    _window: Window

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        model: Any = None,
        step: list[int | str] | None = None,
    ) -> None:
        steps = None if step is None else json.dumps(step, default=str)
        settings = (config_path, task or None, dump_path or None, level or None, steps)
        if self._ready:
            if settings != self._settings:
                _core.log_warning("PrecisionDebugger exists already; the arguments of this second "
                                  "construction are ignored")
            return
        _check_texts(config_path=config_path, task=task, dump_path=dump_path, level=level)
        self._settings = settings
        self._window = self._new_window(settings, model)
        if model is not None:
            _core.log_warning("the argument `model` is deprecated: pass it to start(model=...)")
        atexit.register(self._close)
        self._ready = True
        DebuggerBase._instance = self

    @classmethod
    def start(
        cls,
        model: Any = None,
        token_range: list[int] | tuple[int, int] | None = None,
        rank_id: int | None = None,
        scheduled_tokens: dict[str, int] | None = None,
    ) -> None:
        """Opens the window for the current step.

        Args:
            model: module, or list or tuple of modules; required at levels L0 and mix.
            token_range: first and last call of the model to record, counted from 0 since here:
                for generation, where each call makes a token. Needs `model`.
            rank_id: takes the place of the rank of the process group, in the directory and for
                the rank filter.
            scheduled_tokens: of a batch that holds the tokens of several requests: request ->
                number of its tokens, in their order. With `request_id` in config.json, whose rows
                alone are recorded; a step without that request is not recorded.

        Raises:
            ValueError: the model is missing or of the wrong type; token_range is not two integers
                0 <= first <= last; rank_id is negative.
        """
        cls._get()
        tokens = None if token_range is None else check_token_range(token_range)
        if rank_id is not None:
            _check_count("start(): rank_id", rank_id)
        with cls._locked() as window:
            window.use_batch(scheduled_tokens)
            window.start(model, tokens, rank_id)

    @classmethod
    def stop(cls) -> None:
        """Closes the window and writes the step's files. Nothing stays patched."""
        with cls._locked() as window:
            window.stop()

    @classmethod
    def forward_backward_dump_end(cls) -> None:
        """The same as `stop()`, under the name older scripts use."""
        cls.stop()

    @classmethod
    def step(cls) -> None:
        """Ends the current step: call numbers start at 0 again."""
        with cls._locked() as window:
            window.step()

    @classmethod
    def set_init_step(cls, step: int) -> None:
        """Numbers the next step `step`: call it before the loop of a resumed training.

        Raises:
            ValueError: step is not an integer of at least 0.
        """
        cls._get()
        _check_count("set_init_step: step", step)
        with cls._locked() as window:
            window.set_init_step(step)

    @classmethod
    def register_custom_api(cls, module: Any, api: str, api_prefix: str | None = None) -> None:
        """Records calls of `module.api` like those of a built-in API, as `{prefix}.{api}.{n}`.

        Call it after constructing the debugger and before code takes a reference of its own. At
        levels L1 and mix; the function stays wrapped until `restore_custom_api()`.

        Args:
            module: a module, class or object that holds the function.
            api: name of the function in it.
            api_prefix: first part of the entry's name; default: the module's `__name__`, else
                "Custom".

        Raises:
            ValueError: no such function, or the prefix is not a string.

        Example:
            >>> PrecisionDebugger.register_custom_api(kernels, "rms_norm")  # doctest: +SKIP
        """
        with cls._locked() as window:
            window.register_custom_api(module, api, api_prefix)

    @classmethod
    def restore_custom_api(cls, module: Any, api: str) -> None:
        """Undoes `register_custom_api()`.

        Raises:
            ValueError: no such function.
        """
        with cls._locked() as window:
            window.restore_custom_api(module, api)

    @classmethod
    def monitor(cls, model: Any) -> None:
        """Records gradients whenever an optimizer steps, from here on; with task grad_probe only.

        Args:
            model: PyTorch: a module, or a list of modules, whose parameters' gradients are
                recorded. MindSpore: an optimizer.

        Raises:
            ValueError: the model is none.

        Example:
            >>> debugger = PrecisionDebugger(task="grad_probe", dump_path="g")  # doctest: +SKIP
            >>> debugger.monitor(model)                                         # doctest: +SKIP
        """
        cls._get()
        with cls._locked() as window:
            window.monitor(model)

    @classmethod
    def save(cls, variable: Any, name: str, save_backward: bool = True) -> None:
        """Records a value of your own as `{name}.{count}` of debug.json; at level debug only.

        The gradients that backward passes give the tensors in it until `step()` are recorded in
        the same structure as `{name}_grad.{count}`; the last one counts. No `start()` is needed;
        `step()` and the end of the process write the file. What cannot be recorded is skipped
        with a warning.

        Args:
            variable: tensor, NumPy array, number, text, or list, tuple, dict, dataclass of such.
            name: counted from 0 over the whole run.
            save_backward: also record gradients.

        Example:
            >>> PrecisionDebugger.save({"hidden": hidden}, "block0")  # doctest: +SKIP
        """
        with cls._locked() as window:
            window.save(variable, name, save_backward)

    @property
    def run_directory(self) -> str:
        """Directory of the current step and rank; empty before the first `start()`."""
        return self._window.run_directory

    @classmethod
    def _get(cls) -> DebuggerBase:
        if DebuggerBase._instance is None:
            raise RuntimeError("PrecisionDebugger instance is not created.")
        return DebuggerBase._instance

    @classmethod
    @contextmanager
    def _locked(cls) -> Iterator[Window]:
        window = cls._get()._window
        with window.lock:
            yield window

    def _new_window(self, settings: Settings, model: Any) -> Window:
        """How this process is recorded; a framework that has another way overrides it."""
        return self._window_for(_core.load_config(*settings), settings, model)

    def _window_for(self, config: _core.Config, settings: Settings, model: Any) -> Window:
        """The window of the configuration's task."""
        if config.task == "grad_probe":
            return GradWindow(config, self._adapter)
        if config.task == "free_benchmark":
            return PerturbationWindow(settings, self._adapter, model)
        return CallWindow(settings, self._adapter, model)

    def _close(self) -> None:
        self._window.close()


def _check_count(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"{what} is {value!r} (expected an integer from 0 to 2147483647)")


def _check_texts(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} must be a string (got {type(value).__name__})")
