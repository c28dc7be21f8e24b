"""Recording of calls: what a PrecisionDebugger does between `start()` and `stop()`."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from plumbline import _core
from plumbline.adapter import Adapter
from plumbline.config_watch import ConfigWatch
from plumbline.custom_apis import CustomApis
from plumbline.custom_ops_file import CustomOpsFile
from plumbline.launch import RecordedRank
from plumbline.operator_window import OperatorWindow
from plumbline.token_window import TokenWindow

_MODULE_LEVELS = ("L0", "mix")
_API_LEVELS = ("L1", "mix", "L2")  # at L2 they tell outermost calls


# config_path, task, dump_path, level and step (as JSON) of a PrecisionDebugger, where they were
# given; they win over config.json.
Settings = tuple[str | None, str | None, str | None, str | None, str | None]


class Window:
    """What a PrecisionDebugger opens and closes: one way of recording, chosen when it is made.

    The methods are those of the debugger, which checks arguments and holds `lock`. A way of
    recording derives from this class; what it has not says so.
    """

    without = "on static graphs"
    """Where what this class itself does has no effect, for warnings."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._warned: set[str] = set()

    def start(self, model: Any, tokens: tuple[int, int] | None, rank_id: int | None) -> None: ...
    def use_batch(self, scheduled_tokens: Any) -> None:
        """The next `start()` is for a batch of these tokens; None: no more is known."""
        if scheduled_tokens is not None:
            self.warn_once(f"start(): scheduled_tokens has no effect {self.without}")

    def stop(self) -> None: ...
    def step(self) -> None: ...
    def set_init_step(self, step: int) -> None: ...

    def register_custom_api(self, module: Any, api: str, api_prefix: str | None) -> None:
        self.warn_once(f"register_custom_api(): has no effect {self.without}")

    def restore_custom_api(self, module: Any, api: str) -> None: ...

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        self.warn_once(f"save(): has no effect {self.without}")

    def monitor(self, model: Any) -> None:
        """Nothing: task grad_probe has a window of its own."""

    def dump_one_module(self, module: Any, name: str) -> None:
        """Records only `module`, under `name`, until called with None."""
        self.warn_once(f"module_dump(): has no effect {self.without}")

    @property
    def run_directory(self) -> str:
        return ""

    def close(self) -> None:
        """The process ends; without `lock`."""

    def warn_once(self, text: str) -> None:
        """Logs a warning unless it was logged before."""
        if text not in self._warned:
            self._warned.add(text)
            _core.log_warning(text)


class CallWindow(Window):
    """Hooks the framework while the window is open, through the adapter."""

    def __init__(self, settings: Settings, adapter: Adapter, model: Any = None) -> None:
        super().__init__()
        self._settings = settings
        self._adapter = adapter
        self._rank = RecordedRank(adapter.rank)
        self._use_config(_core.load_config(*self._settings))
        self._check_version()
        self._watch = None
        if self._config.dump_enable is not None and settings[0]:
            self._watch = ConfigWatch(settings[0])
        self._enabled = self._config.dump_enable is not False
        self._next_config: _core.Config | None = None
        self._custom_apis = CustomApis()
        self._custom_ops = CustomOpsFile(settings[0])
        if self._config.level in _API_LEVELS:
            self._custom_ops.register(self._recorder, self._custom_apis)
        self._tokens: TokenWindow | None = None
        self._rank_id: int | None = None
        self._scheduled_tokens: Any = None
        self._model = model
        self._modules: list[tuple[str, Any]] = []
        self._pid = os.getpid()
        self._in_batch = False
        if self._config.enable_dataloader:
            adapter.install_batches(self._end_batch, self._begin_batch)

    def start(self, model: Any, tokens: tuple[int, int] | None, rank_id: int | None) -> None:
        if self._config.enable_dataloader:
            self._model = self._model if model is None else model
            return
        self._rank_id = rank_id
        self._reload()
        if not self._enabled:
            return
        if self._recorder.use_batch(self._scheduled_tokens):
            self._start(model, tokens)
        else:
            self._stop()

    def use_batch(self, scheduled_tokens: Any) -> None:
        self._scheduled_tokens = scheduled_tokens

    def stop(self) -> None:
        if not self._config.enable_dataloader:
            self._stop()
            self._reload()

    def step(self) -> None:
        if not self._config.enable_dataloader:
            self._step()
            self._reload()

    def set_init_step(self, step: int) -> None:
        if self._recorder.is_step_open:
            self._step()
        self._recorder.set_step(step)

    def register_custom_api(self, module: Any, api: str, api_prefix: str | None) -> None:
        self._custom_apis.register(self._recorder, module, api, api_prefix)

    def restore_custom_api(self, module: Any, api: str) -> None:
        self._custom_apis.restore(module, api)

    def save(self, variable: Any, name: Any, save_backward: Any) -> None:
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
            self.warn_once(f"save(): {wrong}")
            return
        if not self._enabled:
            return
        if not self._recorder.is_step_open:
            self._guarded(lambda: self._recorder.start(self._rank()))
            if not self._recorder.is_step_open:
                return
        if not self._recorder.save_variable(name, variable, save_backward):
            self.warn_once(f"save(): {name} is {type(variable).__name__} (expected a tensor, an "
                           "array, a number, a text, or a list, tuple or dict of such). Skipped")

    def dump_one_module(self, module: Any, name: str) -> None:
        if not self._recorder.is_collecting:
            return
        self._uninstall()
        if module is None:
            self._install()
        else:
            prefix = f"{self._adapter.module_prefix}.{name}.{type(module).__name__}"
            self._adapter.install_modules(
                self._recorder, [(prefix, module)], self._config.wants_backward)

    @property
    def run_directory(self) -> str:
        return str(self._recorder.run_directory)

    def close(self) -> None:
        self._adapter.uninstall_batches()
        self._close_recorder()

    def _use_config(self, config: _core.Config) -> None:
        if config.traces_frames:
            raise _core.UnsupportedError(
                f'overflow_check.mode: is "trace", which {self._adapter.name} does not have here '
                '(expected "record")')
        for warning in config.warnings:
            _core.log_warning(warning)
        self._config = config
        parts = {"name": self._adapter.name, **self._adapter.framework_parts()}
        self._recorder = _core.new_recorder(config, parts)
        self._adapter.use_recorder(self._recorder)
        self._recorder.set_own_directory(str(Path(__file__).parent) + os.sep)
        self._operators: OperatorWindow | None = None
        if config.level == "L2":
            self._operators = OperatorWindow(
                self._recorder, config.listed[0], self._adapter, self._rank)

    def _check_version(self) -> None:
        version, since = self._adapter.version(), self._adapter.modules_since
        if self._config.level in _MODULE_LEVELS and version < since:
            raise _core.UnsupportedError(
                f"level: {self._config.level} needs {self._adapter.name} "
                f"{'.'.join(map(str, since))} (got {'.'.join(map(str, version))}). Use level L1")

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
            config = _core.load_config(*self._settings)
        except (ValueError, OSError, _core.UnsupportedError, _core.CorruptDataError) as error:
            self._enabled = False
            _core.log_warning(f"{error}. Recording is switched off until the file changes again")
            return
        if config.dump_enable is not None:
            self._enabled = config.dump_enable
        if not watch.accept():
            return
        if "debug" in (config.level, self._config.level):
            _core.log_warning("config.json has changed; at level debug, which has one file for "
                              "the whole run, only dump_enable is taken over")
            return
        self._next_config = config

    def _begin_batch(self) -> None:
        with self.lock:
            self._reload()
            if self._enabled:
                self._start(self._model, None)
            self._in_batch = True

    def _end_batch(self) -> None:
        with self.lock:
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
        with self.lock:
            self._uninstall()
            self._guarded(self._recorder.stop)

    def _open(self) -> None:
        rank = self._rank() if self._rank_id is None else self._rank_id
        # A directory that cannot be written is said, and the step is "not selected".
        outcome = self._recorder.start(rank)
        if outcome == "finished":
            _core.log_info("****************************************")
            _core.log_info("*      plumbline ends successfully.    *")
            _core.log_info("****************************************")
        if outcome != "collecting":
            return
        _core.log_info(f"Dump switch is turned on at step {self._recorder.current_step}. ")
        if directory := self._recorder.run_directory:  # else it is sent to another machine
            _core.log_info(f"Dump data will be saved in {directory}.")
        self._install()

    def _use_model(self, model: Any) -> None:
        """Lists the modules to hook; again only when the model is another object."""
        if model is None:
            raise ValueError(f"start(): the model is missing. At level {self._config.level} and "
                             "with token_range call start(model=your_module).")
        is_list = isinstance(model, (list, tuple))
        models = list(model) if is_list else [model]
        if not models or not all(self._adapter.is_module(one) for one in models):
            raise ValueError("start(): model must be a module or a list of modules "
                             f"(got {type(model).__name__})")
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
            wants_backward = self._config.wants_backward
            self._adapter.install_modules(self._recorder, self._modules, wants_backward)
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
            self._adapter.send_values()
            action()

    def _close_recorder(self) -> None:
        self._uninstall()
        if os.getpid() == self._pid:
            self._adapter.send_values()
            self._adapter.receive_values()
        self._guarded(self._recorder.close)
