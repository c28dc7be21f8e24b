"""PrecisionDebugger: the window a training script opens, written once for every framework.

Size caps: the constructor has upstream's six arguments.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from pathlib import Path
from typing import Any

from plumbline import _core
from plumbline.adapter import Adapter
from plumbline.config_watch import ConfigWatch
from plumbline.custom_apis import CustomApis
from plumbline.custom_ops_file import CustomOpsFile
from plumbline.operator_window import OperatorWindow
from plumbline.token_window import TokenWindow, check_token_range

_MODULE_LEVELS = ("L0", "mix")
_API_LEVELS = ("L1", "mix", "L2")  # at L2 they tell outermost calls


class DebuggerBase:
    """Records the calls between `start()` and `stop()`, one output directory per step and rank.

    One per process, as upstream: constructing it again returns the first one. A framework's
    package derives its `PrecisionDebugger` from this class and sets `_adapter`.

    Args:
        config_path: config.json; without it the defaults with the arguments below.
        task: "statistics", "tensor", "structure", "overflow_check" or "nan_check"; wins over the
            file.
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
    _arguments: tuple[Any, ...]

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        model: Any = None,
        step: list[int | str] | None = None,
    ) -> None:
        arguments = (config_path, task, dump_path, level, step)
        if self._ready:
            if arguments != self._arguments:
                _core.log_warning(
                    "PrecisionDebugger exists already; the arguments of this second construction "
                    "are ignored"
                )
            return
        _check_texts(config_path=config_path, task=task, dump_path=dump_path, level=level)
        self._arguments = arguments
        self._use_config(self._load_config())
        self._check_version()
        self._watch = None
        if self._config.dump_enable is not None and config_path:
            self._watch = ConfigWatch(config_path)
        self._enabled = self._config.dump_enable is not False
        self._next_config: _core.Config | None = None
        self._custom_apis = CustomApis()
        self._custom_ops = CustomOpsFile(config_path)
        if self._config.level in _API_LEVELS:
            self._custom_ops.register(self._recorder, self._custom_apis)
        self._tokens: TokenWindow | None = None
        self._rank_id: int | None = None
        self._model = model
        self._modules: list[tuple[str, Any]] = []
        self._pid = os.getpid()
        self._warned: set[str] = set()
        self._lock = threading.RLock()
        if model is not None:
            _core.log_warning("the argument `model` is deprecated: pass it to start(model=...)")
        atexit.register(self._close)
        self._ready = True
        DebuggerBase._instance = self
        self._in_batch = False
        if self._config.enable_dataloader:
            self._adapter.install_batches(self._end_batch, self._begin_batch)

    @classmethod
    def start(
        cls,
        model: Any = None,
        token_range: list[int] | tuple[int, int] | None = None,
        rank_id: int | None = None,
    ) -> None:
        """Opens the window for the current step.

        Args:
            model: module, or list or tuple of modules; required at levels L0 and mix.
            token_range: first and last call of the model to record, counted from 0 since here:
                for generation, where each call makes a token. Needs `model`.
            rank_id: takes the place of the rank of the process group, in the directory and for
                the rank filter.

        Raises:
            ValueError: the model is missing or of the wrong type; token_range is not two integers
                0 <= first <= last; rank_id is negative.
        """
        self = cls._get()
        tokens = None if token_range is None else check_token_range(token_range)
        if rank_id is not None:
            _check_count("start(): rank_id", rank_id)
        with self._lock:
            if self._config.enable_dataloader:
                self._model = self._model if model is None else model
                return
            self._rank_id = rank_id
            self._reload()
            if self._enabled:
                self._start(model, tokens)

    @classmethod
    def stop(cls) -> None:
        """Closes the window and writes the step's files. Nothing stays patched."""
        self = cls._get()
        with self._lock:
            if not self._config.enable_dataloader:
                self._stop()
                self._reload()

    @classmethod
    def forward_backward_dump_end(cls) -> None:
        """The same as `stop()`, under the name older scripts use."""
        cls.stop()

    @classmethod
    def step(cls) -> None:
        """Ends the current step: call numbers start at 0 again."""
        self = cls._get()
        with self._lock:
            if not self._config.enable_dataloader:
                self._step()
                self._reload()

    @classmethod
    def set_init_step(cls, step: int) -> None:
        """Numbers the next step `step`: call it before the loop of a resumed training.

        Raises:
            ValueError: step is not an integer of at least 0.
        """
        self = cls._get()
        _check_count("set_init_step: step", step)
        with self._lock:
            if self._recorder.is_step_open:
                self._step()
            self._recorder.set_step(step)

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
        self = cls._get()
        with self._lock:
            self._custom_apis.register(self._recorder, module, api, api_prefix)

    @classmethod
    def restore_custom_api(cls, module: Any, api: str) -> None:
        """Undoes `register_custom_api()`.

        Raises:
            ValueError: no such function.
        """
        self = cls._get()
        with self._lock:
            self._custom_apis.restore(module, api)

    @classmethod
    def monitor(cls, model: Any) -> None:
        """Accepted for scripts written for upstream; acts with task grad_probe only."""
        cls._get()

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
        self = cls._get()
        with self._lock:
            self._save(variable, name, save_backward)

    def dump_one_module(self, module: Any, name: str) -> None:
        """Records only `module`, under `name`, until called with None (see module_dump)."""
        with self._lock:
            if not self._recorder.is_collecting:
                return
            self._uninstall()
            if module is None:
                self._install()
            else:
                prefix = f"{self._adapter.module_prefix}.{name}.{type(module).__name__}"
                self._adapter.install_modules(
                    self._recorder, [(prefix, module)], self._config.wants_backward
                )

    @property
    def run_directory(self) -> str:
        """Directory of the current step and rank; empty before the first `start()`."""
        return str(self._recorder.run_directory)

    @classmethod
    def _get(cls) -> Any:
        if DebuggerBase._instance is None:
            raise RuntimeError("PrecisionDebugger instance is not created.")
        return DebuggerBase._instance

    def _load_config(self) -> _core.Config:
        config_path, task, dump_path, level, step = self._arguments
        step_json = None if step is None else json.dumps(step, default=str)
        return _core.load_config(
            config_path, task or None, dump_path or None, level or None, step_json
        )

    def _use_config(self, config: _core.Config) -> None:
        for warning in config.warnings:
            _core.log_warning(warning)
        self._config = config
        self._recorder = _core.new_recorder(
            config, {"name": self._adapter.name, **self._adapter.framework_parts()}
        )
        self._recorder.set_own_directory(str(Path(__file__).parent) + os.sep)
        self._operators: OperatorWindow | None = None
        if config.level == "L2":
            self._operators = OperatorWindow(self._recorder, config.listed[0], self._adapter)

    def _check_version(self) -> None:
        version, since = self._adapter.version(), self._adapter.modules_since
        if self._config.level in _MODULE_LEVELS and version < since:
            raise _core.UnsupportedError(
                f"level: {self._config.level} needs {self._adapter.name} "
                f"{'.'.join(map(str, since))} (got {'.'.join(map(str, version))}). Use level L1"
            )

    def _reload(self) -> None:
        """Reads a changed config.json, when `dump_enable` asks for it."""
        if self._watch is None or os.getpid() != self._pid:
            return
        if self._watch.has_changed(self._enabled):
            was_enabled = self._enabled
            self._read_changed_config(self._watch)
            if was_enabled and not self._enabled:
                self._stop()
            if was_enabled != self._enabled:
                _core.log_info(f"dump_enable: recording is {'on' if self._enabled else 'off'}")
        # A step that is open keeps its settings: its files hold them in their header.
        if self._next_config is None or self._recorder.is_step_open:
            return
        step = self._recorder.current_step
        self._close_recorder()
        self._use_config(self._next_config)
        self._recorder.set_step(step)
        self._custom_apis.move_to(self._recorder)
        self._next_config = None

    def _read_changed_config(self, watch: ConfigWatch) -> None:
        try:
            config = self._load_config()
        except (ValueError, OSError, _core.UnsupportedError, _core.CorruptDataError) as error:
            self._enabled = False
            _core.log_warning(f"{error}. Recording is switched off until the file changes again")
            return
        if config.dump_enable is not None:
            self._enabled = config.dump_enable
        if not watch.accept():
            return
        if "debug" in (config.level, self._config.level):
            _core.log_warning(
                "config.json has changed; at level debug, which has one file for the whole run, "
                "only dump_enable is taken over"
            )
            return
        self._next_config = config

    def _begin_batch(self) -> None:
        with self._lock:
            self._reload()
            if self._enabled:
                self._start(self._model, None)
            self._in_batch = True

    def _end_batch(self) -> None:
        with self._lock:
            if self._in_batch:
                self._in_batch = False
                self._stop()
                self._step()

    def _stop(self) -> None:
        if self._tokens is not None:
            self._tokens.remove()
            self._tokens = None
        self._uninstall()
        self._guarded(self._recorder.stop)

    def _step(self) -> None:
        self._uninstall()
        if self._operators is not None and self._recorder.is_step_open:
            self._operators.end_step()
        self._guarded(self._recorder.step)
        self._adapter.end_step()

    def _start(self, model: Any, tokens: tuple[int, int] | None) -> None:
        if os.getpid() != self._pid:
            return
        if self._config.level in _API_LEVELS:
            self._custom_ops.register(self._recorder, self._custom_apis)
        model = self._model = self._model if model is None else model
        if self._config.level in _MODULE_LEVELS or tokens is not None:
            self._use_model(model)
        elif self._adapter.is_module(model):
            self._adapter.use_model([model])
        if tokens is None:
            self._open()
            return
        if self._tokens is not None:
            self._tokens.remove()
        self._tokens = TokenWindow(*tokens, self._open, self._pause)
        first = model[0] if isinstance(model, (list, tuple)) else model
        self._tokens.watch(self._adapter.watch_calls(first, self._tokens.before_call))

    def _pause(self) -> None:
        with self._lock:
            self._uninstall()
            self._guarded(self._recorder.stop)

    def _open(self) -> None:
        rank = self._adapter.rank() if self._rank_id is None else self._rank_id
        # A directory that cannot be written is said, and the step is "not selected".
        outcome = self._recorder.start(rank)
        if outcome == "finished":
            _core.log_info("****************************************")
            _core.log_info("*      plumbline ends successfully.    *")
            _core.log_info("****************************************")
        if outcome != "collecting":
            return
        _core.log_info(f"Dump switch is turned on at step {self._recorder.current_step}. ")
        _core.log_info(f"Dump data will be saved in {self._recorder.run_directory}.")
        self._install()

    def _save(self, variable: Any, name: Any, save_backward: Any) -> None:
        if os.getpid() != self._pid:
            return
        wrong = ""
        if self._config.level != "debug":
            wrong = f'nothing is saved at level {self._config.level} (expected level "debug")'
        elif not isinstance(name, str):
            wrong = f"name is {name!r} (expected a string). Skipped"
        elif not isinstance(save_backward, bool):
            wrong = f"save_backward is {save_backward!r} (expected True or False). Skipped"
        if wrong:
            self._warn_once(f"save(): {wrong}")
            return
        if not self._enabled:
            return
        if not self._recorder.is_step_open:
            self._guarded(lambda: self._recorder.start(self._adapter.rank()))
            if not self._recorder.is_step_open:
                return
        if not self._recorder.save_variable(name, variable, save_backward):
            self._warn_once(
                f"save(): {name} is {type(variable).__name__} (expected a tensor, an array, a "
                "number, a text, or a list, tuple or dict of such). Skipped"
            )

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _core.log_warning(text)

    def _use_model(self, model: Any) -> None:
        """Lists the modules to hook; again only when the model is another object."""
        if model is None:
            raise ValueError(
                f"start(): the model is missing. At level {self._config.level} and with "
                "token_range call start(model=your_module)."
            )
        is_list = isinstance(model, (list, tuple))
        models = list(model) if is_list else [model]
        if not models or not all(self._adapter.is_module(one) for one in models):
            raise ValueError(
                "start(): model must be a module or a list of modules "
                f"(got {type(model).__name__})"
            )
        self._adapter.use_model(models)
        modules = []
        for index, one in enumerate(models):
            kind = self._adapter.module_prefix
            prefix = f"{kind}.{index}." if is_list else f"{kind}."
            for name, module in self._adapter.module_tree(one):
                modules.append((f"{prefix}{name}.{type(module).__name__}", module))
        self._modules = modules

    def _install(self) -> None:
        level = self._config.level
        if self._operators is not None:
            self._operators.install()
        if level in _MODULE_LEVELS:
            self._adapter.install_modules(
                self._recorder, self._modules, self._config.wants_backward
            )
        if level in _API_LEVELS:
            self._adapter.install_apis(self._recorder, with_regions=level == "mix")

    def _uninstall(self) -> None:
        self._adapter.uninstall_apis()
        self._adapter.uninstall_modules()
        if self._operators is not None:
            self._operators.uninstall()

    def _guarded(self, action: Any) -> None:
        """Runs a window call, in the process that owns the recorder only."""
        if os.getpid() == self._pid:
            action()

    def _close(self) -> None:
        self._adapter.uninstall_batches()
        self._close_recorder()

    def _close_recorder(self) -> None:
        self._uninstall()
        self._guarded(self._recorder.close)


def _check_count(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"{what} is {value!r} (expected an integer from 0 to 2147483647)")


def _check_texts(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} must be a string (got {type(value).__name__})")
