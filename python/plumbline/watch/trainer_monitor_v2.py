"""TrainerMonitorV2: the monitor's second form of later upstream releases, on the same engine."""

from __future__ import annotations

import atexit
import importlib
import os
from typing import Any

from plumbline import _core
from plumbline.watch.communication import check_lines
from plumbline.watch.monitor_parts import MonitorParts
from plumbline.watch.trainer_mon import Session


class TrainerMonitorV2:
    """Watches a model, with or without its training: one csv file per part and block of steps.

    Args:
        config_path: the configuration (docs/reference/monitor-v2.md).
        fr: "pytorch" or "mindspore"; counts in place of the configuration's `framework`.

    Raises:
        ValueError: the configuration is wrong; one line for every fault.
        FileNotFoundError: there is none.

    Example:
        >>> monitor = TrainerMonitorV2("config.json", fr="pytorch")      # doctest: +SKIP
        >>> monitor.start(model=model, optimizer=optimizer)              # doctest: +SKIP
        >>> ...                                                          # doctest: +SKIP
        >>> monitor.stop()                                               # doctest: +SKIP
    """

    _parts: MonitorParts
    is_dynamic = False
    prefers_main_grad = True
    process_group: Any = None

    def __init__(self, config_path: str, fr: str | None = None) -> None:
        self.config_path = os.fspath(config_path)
        self.config = _core.read_second_form(self.config_path, fr or "")
        check_lines(self.config_path, self.config)
        for warning in self.config.warnings:
            _core.log_warning(f"{self.config_path}: {warning}")
        self.framework = self.config.second.framework
        self.output = self.config.second.output
        self._parts = _parts_of(self.framework)
        self._session: _Session | None = None
        self._directory = ""
        self._step = 0
        self._is_told = False
        atexit.register(self.stop)

    @property
    def current_step(self) -> int:
        """The number of the step under way, from 0 on."""
        return self._step if self._session is None else self._session.current_step

    def start(self, model: Any = None, optimizer: Any = None, **context: Any) -> None:
        """Begins to watch. A second call without `stop()` changes nothing.

        Args:
            model: the module, or a list of modules (chunks of a virtual pipeline).
            optimizer: whose `step()` ends a step, unless `patch_optimizer_step` says otherwise.
            context: `grad_acc_steps` or `micro_batch_number`: micro-batches per step, where the
                configuration has no such number.

        Raises:
            ValueError: a part that is enabled needs the model or the optimizer.
        """
        if self._session is not None:
            return
        model = context.get("model") if model is None else model
        optimizer = context.get("optimizer") if optimizer is None else optimizer
        if isinstance(model, (list, tuple)) and not any(one is not None for one in model):
            model = None
        self._check(model, optimizer)
        second = self.config.second
        second.micro_batches = second.micro_batches or _natural(
            context.get("micro_batch_number"), context.get("grad_acc_steps"))
        self._session = _Session(self, model, optimizer, self.current_step)
        self._session.begin()

    def step(self) -> None:
        """Ends a step; where the optimizer's `step()` does so, this does nothing."""
        if self._session is None:
            return
        if self._session.follows_optimizer:
            if not self._is_told:
                _core.log_warning("TrainerMonitorV2.step(): the optimizer's step ends a step "
                                  "already, this call changes nothing (to end steps yourself: "
                                  '"patch_optimizer_step": false)')
            self._is_told = True
            return
        self._session.advance()

    def stop(self) -> None:
        """Takes every hook away and writes what is left. Nothing stays on the user's objects."""
        if self._session is None:
            return
        self._step = self.current_step
        self._session.end()
        self._directory = self._session.directory or self._directory
        self._session = None

    @property
    def directory(self) -> str:
        """Where files are written; empty until the first step that is collected."""
        session = self._session
        return (session.directory if session is not None else "") or self._directory

    # ---- what the session asks for

    def first_directory(self) -> str:
        """Where an earlier start() wrote."""
        return self._directory

    def changes(self) -> int:
        """The configuration is read once."""
        return 0

    def own_name(self, session: Session, stage: int, name: str) -> str:
        """There is one session."""
        return name

    def switch_off(self, session: Session) -> None:
        """Nothing is written back."""

    def _check(self, model: Any, optimizer: Any) -> None:
        config, missing = self.config, []
        needs_model = {"module": config.activations, "optimizer": config.moments,
                       "param": config.parameters}
        needs_optimizer = {"weight_grad": config.gradients, "optimizer": config.moments,
                           "param": config.parameters}
        for word, value, needs in (("model", model, needs_model),
                                   ("optimizer", optimizer, needs_optimizer)):
            parts = [part for part, is_wanted in needs.items() if is_wanted]
            if value is None and parts:
                missing.append(f"{word} is None (monitors.{', monitors.'.join(parts)} need it)")
        models = model if isinstance(model, (list, tuple)) else [model]
        for one in [one for one in models if one is not None]:
            if not self._parts.is_model(one):
                missing.append(f"model is of type {type(one).__name__} (expected a module)")
        if optimizer is not None and not self._parts.is_optimizer(optimizer):
            missing.append(f"optimizer is of type {type(optimizer).__name__} (expected an "
                           "optimizer)")
        if missing:
            raise ValueError(f"TrainerMonitorV2.start: {'; '.join(missing)}")


def _parts_of(framework: str) -> MonitorParts:
    # Known only now, and most often the other framework is not installed.
    parts: MonitorParts = importlib.import_module(f"plumbline.{framework}").TrainerMon._parts
    return parts


def _natural(*candidates: Any) -> int:
    """The first one that is an integer above 0, else 1."""
    for value in candidates:
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        if value is not None:
            _core.log_warning(f"TrainerMonitorV2.start: {value!r} micro-batches are not possible "
                              "(expected an integer of at least 1)")
    return 1


class _Session(Session):
    """Names, modules and the end of a step as the second form has them."""

    def __init__(self, owner: TrainerMonitorV2, model: Any, optimizer: Any, step: int) -> None:
        is_list = isinstance(model, (list, tuple))
        models = list(model) if is_list else [model]
        stages = [stage for stage, one in enumerate(models) if one is not None]
        super().__init__(owner, [models[stage] for stage in stages], optimizer,
                         owner.config.second.micro_batches, step)
        self._stages = stages if is_list else [-1] * len(stages)
        follows = owner.config.second.follows_optimizer
        self.follows_optimizer = optimizer is not None and (follows is None or follows)

    @property
    def current_step(self) -> int:
        return self._step

    def begin(self) -> None:
        """Begins to watch."""
        if self._optimizer is not None:
            after = self._after if self.follows_optimizer else _nothing
            self._steps = self._parts.watch_steps(self._optimizer, self._before, after)
        self._guarded(self._arm)

    def advance(self) -> None:
        """Ends a step."""
        self._after()

    def _write_names(self) -> None:
        """Rows have the full names."""

    def _open_communication(self) -> None:
        ranks = self._config.second.communication_ranks
        if not ranks or (self._parts.rank() or 0) in ranks:
            super()._open_communication()

    def _stop_after_log(self, communication: Any) -> None:
        """The training goes on; _commit() tells the stacks."""

    def _commit(self) -> None:
        super()._commit()
        if self._communication is not None and self._config.logs_communication:
            self._communication.log()
            self._disarm()
            self._communication = None

    def _name_all_parameters(self) -> int:
        if self._models:
            group = 0
            for stage, model in zip(self._stages, self._models, strict=True):
                group = self._name_parameters(
                    self._parts.parameters(model, with_frozen=True), stage, group)
            return group
        groups = getattr(self._optimizer, "param_groups", [])
        parameters = [one for group in groups for one in group["params"]]
        named = [(f"param_{number}", one) for number, one in enumerate(parameters)]
        return self._name_parameters(named, -1, 0)

    def _selects_parameter(self, name: str, printed: str, stage: int) -> bool:
        return True

    def _target_of(self, name: str, printed: str, stage: int) -> str | None:
        whole = name if stage < 0 else f"{stage}:{name}"
        return name if any(target in whole for target in self._config.targets) else None


def _nothing() -> None:
    """The caller ends steps."""
