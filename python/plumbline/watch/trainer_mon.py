"""TrainerMon: statistics of activations, gradients, weights and moments of a training by step.

Size caps: the constructor and `set_monitor` have upstream's arguments.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from plumbline import _core
from plumbline.watch.call_stacks import ModuleStacks
from plumbline.watch.communication import Communication, check_lines
from plumbline.watch.config_file import ConfigFile
from plumbline.watch.module_structure import ModuleStructure
from plumbline.watch.monitor_parts import Handle, MonitorParts
from plumbline.watch.step_calls import StepCalls

_OUTPUT_VARIABLE, _DYNAMIC_VARIABLE = "MONITOR_OUTPUT_DIR", "DYNAMIC_MONITOR"
_SHOWN_ALERTS = 8  # of one step on the console
_SHOWN_PARAMETERS = 8  # without a gradient, of one step
_NEVER = 1 << 62  # a step


class StopTraining(Exception):
    """Raised on purpose, as upstream does: the structure of the modules is written."""


class TrainerMonBase:
    """Watches a training: one row of statistics per watched tensor and step.

    Args:
        config_file_path: monitor_config.json (docs/reference/monitor.md).
        process_group: the group of the pipeline, for alerts over ranks.
        params_have_main_grad: read `parameter.main_grad` where there is one, instead of `.grad`.
        opt_ty: accepted and ignored, as upstream does.

    Raises:
        ValueError: the configuration is wrong; one line for every fault.
        FileNotFoundError: there is none.

    Example:
        >>> monitor = TrainerMon("monitor_config.json")                       # doctest: +SKIP
        >>> monitor.set_monitor(model, optimizer=optimizer, grad_acc_steps=1) # doctest: +SKIP
    """

    _parts: MonitorParts

    def __init__(
        self,
        config_file_path: str,
        process_group: Any = None,
        params_have_main_grad: bool = True,
        opt_ty: Any = None,
    ) -> None:
        self._file = ConfigFile(config_file_path)
        self.config = self._file.read()
        check_lines(self._file.path, self.config)
        self.is_dynamic = os.environ.get(_DYNAMIC_VARIABLE, "").lower() == "true"
        self.output = os.environ.get(_OUTPUT_VARIABLE) or "./monitor_output"
        self.process_group = process_group
        self.prefers_main_grad = params_have_main_grad
        self._sessions: list[Session] = []
        self._names: dict[tuple[int, str], int] = {}
        self._changes = 0
        self._log_warnings()
        atexit.register(self.stop)

    @property
    def ops(self) -> list[str]:
        """The statistics; can be set until `set_monitor()`."""
        return self.config.ops

    @ops.setter
    def ops(self, names: list[str]) -> None:
        self.config.set_ops(list(names))

    def set_monitor(
        self,
        model: Any,
        grad_acc_steps: Any = 1,
        optimizer: Any = None,
        tp_group: Any = None,
        dp_group: Any = None,
        start_iteration: int = 0,
    ) -> None:
        """Begins to watch; call it when model and optimizer are there, before the loop.

        Args:
            model: the module, or a list of modules (chunks of a virtual pipeline).
            grad_acc_steps: micro-batches per step; the optimizer may stand here and the number in
                its place, as newer releases have them.
            optimizer: whose `step()` ends a step.
            tp_group, dp_group: ranks that hold the same parameters: only the first one writes
                their reduced gradients.
            start_iteration: number of the first step, of a training that is resumed.

        Raises:
            ValueError: there is no optimizer.
        """
        if not isinstance(grad_acc_steps, int) or isinstance(grad_acc_steps, bool):
            newer_order = optimizer if isinstance(optimizer, int) else 1
            grad_acc_steps, optimizer = newer_order, grad_acc_steps
        if optimizer is None:
            raise ValueError("set_monitor: optimizer is None (expected the optimizer whose step() "
                             "ends a step)")
        models = list(model) if isinstance(model, (list, tuple)) else [model]
        session = Session(self, models, optimizer, _at_least(grad_acc_steps, 1, "grad_acc_steps"),
                           _at_least(start_iteration, 0, "start_iteration"))
        session.groups = (tp_group, dp_group)
        self._sessions.append(session)
        session.begin()

    def monitor_gnorm_with_ad(
        self, model: Any, optimizer: Any = None, grad_acc_steps: int = 1, tp_group: Any = None,
        dp_group: Any = None, start_iteration: int = 0,
    ) -> None:
        """Newer releases' old name of `set_monitor()`."""
        chosen = optimizer if optimizer is not None else getattr(self, "_optimizer", None)
        self.set_monitor(model, grad_acc_steps, chosen, tp_group, dp_group, start_iteration)

    def set_wrapped_optimizer(self, optimizer: Any) -> None:
        """The optimizer for `monitor_gnorm_with_ad()`."""
        self._optimizer = optimizer

    def generate_wgrad_metrics(self, post_grad_dict: Any = None) -> tuple[Any, Any]:
        """Reduced and unreduced gradients of this step: {tag: {statistic: tensor}}."""
        if not self.config.gradients:
            return {}, {}
        return self._metrics("grad_reduced"), self._metrics("grad_unreduced")

    def generate_xy_metrics(self) -> tuple[Any, Any]:
        """Activations and their gradients of this step: {tag: {statistic: tensor}}."""
        return self._metrics("actv"), self._metrics("actv_grad")

    def reload_xy(self, xy_distribution: bool = False) -> None:
        """Deprecated upstream: edit the configuration with `DYNAMIC_MONITOR=True` instead."""
        _core.log_warning("reload_xy is deprecated: set DYNAMIC_MONITOR=True and edit the "
                          "configuration")

    def adhoc_check(
        self, target_tensor: Any, module_name: str, tensor_name: str, rank_list: list[int],
        ops_list: list[str] | None = None,
    ) -> None:
        """A row for a tensor of your own, named `{module_name}.{tensor_name}`, in this step."""
        rank = self._parts.rank() or 0
        for session in self._sessions if not rank_list or rank in rank_list else []:
            session.add(f"{module_name}.{tensor_name}", target_tensor)

    def stop(self) -> None:
        """Takes every hook away and writes what is left. Nothing stays on the user's objects."""
        for session in self._sessions:
            session.end()
        self._sessions = []

    @property
    def directories(self) -> list[str]:
        """Where files are written."""
        return [session.directory for session in self._sessions if session.directory]

    def first_directory(self) -> str:
        """The one that further optimizers write to as well."""
        return next(iter(self.directories), "")

    def changes(self) -> int:
        """How many times the configuration was changed and switched on; looks at the file."""
        config = self._file.read_if_changed()
        if config is not None and config.dynamic_on:
            self.config = config
            self._changes += 1
            self._log_warnings()
        return self._changes

    def own_name(self, session: Session, stage: int, name: str) -> str:
        """`name`, or one that no other session has: two optimizers write into the same files."""
        number = self._sessions.index(session)
        while self._names.setdefault((stage, name), number) != number:
            name = f"model{number}.{name}"
        return name

    def switch_off(self, session: Session) -> None:
        """The last step is written: says so in the configuration (the lowest rank does)."""
        ranks = self.config.ranks or [0]
        if session.is_behind(self._changes):
            return  # the file holds what is still to be applied
        if self.is_dynamic and (self._parts.rank() or 0) == min(ranks):
            self._file.switch_off()

    def _metrics(self, kind: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for session in self._sessions:
            for tag, values in session.metrics(kind).items():
                found[tag] = {op: self._parts.scalar(value) for op, value in values.items()}
        return found

    def _log_warnings(self) -> None:
        for warning in self.config.warnings:
            _core.log_warning(f"{self._file.path}: {warning}")


def _matrix_of(module: Any) -> Any:
    """The weight of a linear layer or of a router; None: an embedding, or another module."""
    if any(hasattr(module, name) for name in ("num_embeddings", "vocab_start_index",
                                              "embedding_table")):
        return None
    weights = (getattr(module, name, None) for name in ("weight", "wg"))
    return next((one for one in weights if len(getattr(one, "shape", ())) == 2), None)


def _at_least(value: Any, least: int, name: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    _core.log_warning(f"{name}: is {value!r} (expected an integer of at least {least}); "
                      f"{least} is taken")
    return least


def _is_trained(parameter: Any) -> bool:
    return bool(getattr(parameter, "requires_grad", True))


class SessionOwner(Protocol):
    """What a session asks of the monitor that it belongs to."""

    _parts: MonitorParts
    config: _core.MonitorConfig
    output: str
    process_group: Any
    prefers_main_grad: bool
    is_dynamic: bool

    def first_directory(self) -> str:
        """A directory to write to as well; empty: one of its own is made."""

    def changes(self) -> int:
        """How many times the configuration was changed."""

    def own_name(self, session: Session, stage: int, name: str) -> str:
        """`name`, or another that no other session has."""

    def switch_off(self, session: Session) -> None:
        """The last step is written."""


class Session:
    """One model with its optimizer. Hooks are there only while a step is collected."""

    def __init__(
        self, owner: SessionOwner, models: list[Any], optimizer: Any, micro_batches: int,
        step: int,
    ) -> None:
        self._owner, self._parts = owner, owner._parts
        self._models, self._optimizer = models, optimizer
        self._stages = list(range(len(models)))
        self._micro_batches, self._step = micro_batches, step
        self.groups: tuple[Any, Any] = (None, None)
        self._config = owner.config
        self._live: _core.LiveMonitor | None = None
        self._first_step = step
        self._written = 0
        self._is_on = not owner.is_dynamic
        self._start_step = owner.config.start_step
        self._idle_until = 0  # before that step nothing has to be looked at
        self._steps: Handle | None = None
        self._calls = StepCalls(self._tell_of_calls)
        self._counting: list[Handle] = []
        self._handles: list[Handle] = []
        self._parameters: list[tuple[Any, _core.WatchedName]] = []
        self._structure: ModuleStructure | None = None
        self._told: set[str] = set()
        self._changes = 0
        self._stacks: ModuleStacks | None = None
        self._communication: Communication | None = None
        self.directory = ""

    # ---- from outside

    def begin(self) -> None:
        """Follows the optimizer from here on."""
        if self._config.print_struct:
            self._structure = ModuleStructure(self._parts, self._models, self._printed)
        self._steps = self._parts.watch_steps(self._optimizer, self._before, self._after)
        self._counting = self._parts.count_calls(self._models[0], self._calls.hook)
        if not self._owner.is_dynamic:  # else the file is looked at behind every step
            self._guarded(self._arm)

    def end(self) -> None:
        """Takes everything away."""
        self._disarm()
        if self._steps is not None:
            self._steps.remove()
            self._steps = None
            for handle in self._counting:
                handle.remove()
            self._calls.close()
            if self._calls.too_many and not self._calls.is_told:
                self._warn(self._calls.sentence(self._step))
        if self._live is not None:
            self._live.close()
            self._tell()
            self._live = None

    def metrics(self, kind: str) -> dict[str, dict[str, float]]:
        """Rows of this step, or of the last one."""
        rank = self._parts.rank() or 0
        return {} if self._live is None else self._live.metrics(kind, self._config, rank)

    def add(self, name: str, value: Any) -> None:
        """A row of the user's."""
        if self._handles and self._live is not None:
            self._live.add("other", self._live.name(name), value)

    def is_behind(self, changes: int) -> bool:
        """Whether a change of the configuration is still to be applied."""
        return self._changes != changes

    # ---- around the optimizer's step

    def _before(self) -> None:
        if self._structure is not None and self._structure.is_complete:
            structure, self._structure = self._structure, None
            structure.write(self._owner.output, self._parts.rank(), self._config)
            self.end()
            raise StopTraining("exit after first monitor step when print model struct")
        if self._communication is not None and self._step > self._first_step:
            self._stop_after_log(self._communication)
        if self._handles:
            self._guarded(self._take)

    def _stop_after_log(self, communication: Communication) -> None:
        if not self._config.logs_communication:
            return
        if (self._parts.rank() or 0) == min(self._config.ranks or [0]):
            communication.log()
        self.end()
        raise StopTraining("exit after first step when print cc stack")

    def _after(self) -> None:
        if self._handles:
            self._guarded(self._commit)
        self._calls.end_step()
        self._step += 1
        if self._step >= self._idle_until:
            self._guarded(self._arm)

    def _tell_of_calls(self) -> None:
        self._warn(self._calls.sentence(self._step))

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # a monitor never stops a training
            self._warn("the monitor stops watching after an error of its own: "
                       f"{type(error).__name__}: {error}")
            self._is_on = False
            self._idle_until = 0 if self._owner.is_dynamic else _NEVER
            self._disarm()

    def _next_collected(self) -> int:
        """The first step from this one on that selected ranks collect."""
        config = self._config
        if not self._is_on or self._written >= config.collect_times:
            return _NEVER
        collected = self._start_step
        if self._step > collected:
            collected = self._step + -(self._step - collected) % config.step_interval
        return collected if collected < config.stop_step else _NEVER

    def _arm(self) -> None:
        """Makes ready for the step that comes."""
        if self._owner.is_dynamic and self.is_behind(self._owner.changes()):
            if self._step >= self._owner.config.apply_at_step:
                self._restart()
        collected = self._next_collected()
        ranks = self._config.ranks  # asked each time: the process group may come later
        wants = collected == self._step and (not ranks or (self._parts.rank() or 0) in ranks)
        self._idle_until = 0 if self._owner.is_dynamic else collected
        if wants and not self._handles:
            self._install()
        elif not wants and self._handles:
            self._disarm()
        elif wants and self._live is not None:
            self._tell()

    def _restart(self) -> None:
        self._changes = self._owner.changes()
        self._disarm()
        self._config = self._owner.config
        if self._live is not None:
            self._live.close()
            self._live = None
        self._written, self._is_on = 0, True
        self._start_step = self._step if self._config.is_latest else self._config.start_step
        if 0 < self._config.apply_at_step < self._step:
            self._warn(f"apply_at_step: {self._config.apply_at_step} is over; step {self._step} "
                       "is the first one with the new configuration")
        _core.log_info(f"config is updated at step{self._step - 1}, will start new hook at "
                       f"step{self._step}.")

    def _disarm(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._communication is not None:
            self._communication.forget()
        if self._live is not None:
            self._live.drop()

    # ---- what is watched

    def _install(self) -> None:
        if self._live is None:
            self._open()
        assert self._live is not None
        handles: list[Handle] = [_Nothing()]
        autograd = self._autograd
        for watch, module in self._modules:
            handles += self._parts.watch_module(module, watch)
        if self._config.gradients:
            batches = (self._micro_batches, self._config.micro_batch_gradients)
            trained = [(parameter, name) for parameter, name in self._parameters
                       if _is_trained(parameter)]
            handles += self._parts.watch_gradients(
                self._models, trained, self._live, autograd, batches)
        if self._stacks is not None:
            handles += self._stacks.watch()
        if self._communication is not None:
            handles += self._communication.watch()
        self._handles = handles

    def _open(self) -> None:
        place = _core.MonitorPlace(
            self._owner.output, self._parts.rank(),
            self._parts.group_place(self._owner.process_group), self._step, bool(self.directory))
        parts = {**self._parts.framework_parts(), "name": "monitor"}
        self._live = _core.new_live_monitor(
            parts, self._config, place, self.directory or self._owner.first_directory())
        self.directory = self._live.directory
        self._autograd = self._parts.autograd()
        self._full_names: list[tuple[str, str, str]] = []
        self._parameters = []
        self._modules: list[tuple[_core.ModuleWatch, Any]] = []
        group = self._name_all_parameters()
        self._matrices: list[tuple[str, _core.WatchedName, Any]] = []
        if self._config.activations or self._config.features:
            for stage, model in zip(self._stages, self._models, strict=True):
                group = self._name_modules(model, stage, group)
        self._write_names()
        if self._config.stack_info:
            self._stacks = ModuleStacks(self._parts, self._models, self._printed)
        self._open_communication()
        self._tell()

    def _open_communication(self) -> None:
        self._communication = None
        if not self._config.communication:
            return
        if self._parts.rank() is None:
            self._warn("cc_distribution: ignored, there is no process group")
            return
        assert self._live is not None
        self._communication = Communication(self._parts, self._live, self._config)

    def _printed(self, name: str, taken: set[str]) -> str:
        """The short name, or the full one where another has the short one already."""
        short = self._config.printed_name(name)
        if short in taken and name:
            short = name
        taken.add(short)
        return short

    def _write_names(self) -> None:
        assert self._live is not None
        if self._config.format in ("csv", "sqlite"):
            self._live.write_names(self._full_names, self._config)

    def _name_all_parameters(self) -> int:
        group = 0
        for stage, model in zip(self._stages, self._models, strict=True):
            group = self._name_parameters(self._parts.parameters(model), stage, group)
        return group

    def _name_parameters(
        self, parameters: Iterable[tuple[str, Any]], stage: int, group: int
    ) -> int:
        assert self._live is not None
        taken: set[str] = set()
        for name, parameter in parameters:
            printed = self._printed(name, taken)
            if not self._selects_parameter(name, printed, stage):
                continue
            group += 1
            printed = self._owner.own_name(self, stage, printed)
            self._parameters.append((parameter, self._live.name(printed, stage, group)))
            self._full_names.append(("parameter", f"{stage}:{printed}", name))
        return group

    def _selects_parameter(self, name: str, printed: str, stage: int) -> bool:
        targets = self._config.targets
        if not targets:
            return True
        for target in targets:
            chunk, _, rest = target.rpartition(":")
            if chunk and chunk != str(stage):
                continue
            for one in (name, printed):
                if rest.endswith("*") and one.startswith(rest[:-1]):
                    return True
                if one == rest or one.startswith(f"{rest}."):
                    return True
        return False

    def _name_modules(self, model: Any, stage: int, group: int) -> int:
        assert self._live is not None
        batches = _core.MicroBatches()
        taken: set[str] = set()
        watched = 0
        for name, module in self._parts.modules(model):
            printed = self._printed(name, taken)
            target = self._target_of(name, printed, stage)
            is_watched = self._config.activations and (
                target is not None or self._config.watches_all_modules)
            features = self._config.features_of(stage, [printed, name])
            if not is_watched and not features and name:
                continue
            group += 1
            shown = printed if target is None or self._config.watches_all_modules else (
                target.rpartition(":")[2])
            if is_watched:
                shown = self._owner.own_name(self, stage, shown)
            watch = _core.ModuleWatch(
                self._live, self._autograd, self._parts.is_recomputing(), self._config, shown,
                target or "", (stage, group), batches, not name, is_watched)
            self._add_features(features, watch, module, (printed, stage, group))
            self._modules.append((watch, module))
            if is_watched:
                watched += 1
                self._full_names.append(("module", f"{stage}:{shown}", name))
        _core.log_info(f"> {watched} modules are monitored.")
        return group

    def _add_features(self, kinds: list[str], watch: _core.ModuleWatch, module: Any,
                      place: tuple[str, int, int]) -> None:
        live = self._live
        assert live is not None
        printed, stage, group = place
        for kind in kinds:
            part = kind.removesuffix("_hook")
            part = "moe_router" if part.startswith("moe_router") else part
            name = live.name(f"{self._owner.own_name(self, stage, printed)}.{part}", stage, group)
            if kind in ("attention_hook", "moe_router_logit_hook"):
                watch.add_feature(kind, name)
            elif _matrix_of(module) is not None:
                self._matrices.append((kind, name, module))

    def _target_of(self, name: str, printed: str, stage: int) -> str | None:
        for target in self._config.targets:
            chunk, _, rest = target.rpartition(":")
            if (not chunk or chunk == str(stage)) and rest in (name, printed):
                return target
        return None

    # ---- values

    def _take(self) -> None:
        """At the entry of the optimizer's step."""
        live, config = self._live, self._config
        assert live is not None
        names = [name for _, name in self._parameters]
        gradients = [self._gradient(parameter) for parameter, _ in self._parameters]
        if config.gradients:
            tp_group, dp_group = self.groups
            kept = [None if self._parts.is_duplicate(parameter, tp_group, dp_group) else gradient
                    for (parameter, _), gradient in zip(self._parameters, gradients, strict=True)]
            live.add_all("grad_reduced", names, kept)
            self._tell_missing([
                name.text for (parameter, name), gradient
                in zip(self._parameters, gradients, strict=True)
                if gradient is None and _is_trained(parameter)])
        moments = []
        adds_moments = config.moments and not config.moments_after
        if config.directions or config.adam_updates or adds_moments:
            moments = self._moments()
        if adds_moments:
            self._add_moments(moments)
        if config.parameters:
            kind = "param_origin" if config.updated_parameters else "param"
            live.add_all(kind, names, [parameter for parameter, _ in self._parameters])
        if config.directions:
            self._take_directions(gradients, [first for first, _ in moments])
        if config.adam_updates:
            self._take_adam(moments)
        for kind, name, module in self._matrices:
            if module.training:
                live.add_feature(kind, name, _matrix_of(module))

    def _moments(self) -> list[tuple[Any, Any]]:
        return [self._parts.moments(parameter, self._optimizer)
                for parameter, _ in self._parameters]

    def _add_moments(self, moments: list[tuple[Any, Any]]) -> None:
        assert self._live is not None
        names = [name for _, name in self._parameters]
        self._live.add_all("exp_avg", names, [first for first, _ in moments])
        self._live.add_all("exp_avg_sq", names, [second for _, second in moments])

    def _tell_missing(self, names: list[str]) -> None:
        for name in names[:_SHOWN_PARAMETERS]:
            self._warn(f"grad is None: {name}, maybe something wrong happened.")
        if len(names) > _SHOWN_PARAMETERS:
            self._warn(f"grad is None: and {len(names) - _SHOWN_PARAMETERS} more parameters")

    def _gradient(self, parameter: Any) -> Any:
        return self._parts.gradient(parameter, self._optimizer, self._owner.prefers_main_grad)

    def _take_directions(self, gradients: list[Any], moments: list[Any]) -> None:
        live = self._live
        assert live is not None
        for (_, name), gradient, moment in zip(self._parameters, gradients, moments, strict=True):
            if self._step == 0:
                live.add("mg_direction", name, 1.0)
            elif gradient is not None and not live.add_direction(name, gradient, moment):
                self._warn(f"mg_direction: {name.text} has no first moment; it gets no row")

    def _take_adam(self, moments: list[tuple[Any, Any]]) -> None:
        live = self._live
        assert live is not None
        rules = self._parts.adam_rules([one for one, _ in self._parameters], self._optimizer)
        missing = [
            name.text
            for (_, name), pair, rule in zip(self._parameters, moments, rules, strict=True)
            if rule is None or not live.add_adam(name, *pair, rule)]
        # Before its first step an optimizer has no moments.
        if missing and self._step > self._first_step:
            self._warn_once("ur_distribution", f"ur_distribution: no picture of {missing[0]} and "
                            f"{len(missing) - 1} more (expected the moments, betas, eps and step "
                            "of Adam in the optimizer)")

    def _commit(self) -> None:
        live = self._live
        assert live is not None
        if self._config.parameters and self._config.updated_parameters:
            live.add_all("param_updated", [name for _, name in self._parameters],
                         [parameter for parameter, _ in self._parameters])
        if self._config.moments and self._config.moments_after:
            self._add_moments(self._moments())
        if self._communication is not None:
            self._communication.end_step()
        if self._stacks is not None:
            stacks, self._stacks = self._stacks, None
            live.write_rows("stack_info.csv", stacks.rows())
        live.commit(self._step)
        self._written += 1
        if self._written >= self._config.collect_times:
            self._is_on = False
            live.flush()
            self._owner.switch_off(self)

    def _tell(self) -> None:
        if self._live is None:
            return
        messages = self._live.take_messages()
        alerts = [message for message in messages if message.startswith("Rule ")]
        for alert in alerts[:_SHOWN_ALERTS]:
            _core.log_info(f"> {alert}")
        if len(alerts) > _SHOWN_ALERTS:
            _core.log_info(f"> and {len(alerts) - _SHOWN_ALERTS} more alerts; \"dump\": true in "
                           "\"alert\" writes all of them to anomaly.json")
        for message in messages:
            if message.startswith("watch: "):
                _core.log_info(f"> {message}")
            elif message not in alerts:
                self._warn(message)

    def _warn(self, text: str) -> None:
        self._warn_once(text, text)

    def _warn_once(self, subject: str, text: str) -> None:
        if subject not in self._told:
            self._told.add(subject)
            _core.log_warning(text)


class _Nothing:
    """Stands for hooks of steps alone: values are read in the optimizer's step."""

    def remove(self) -> None:
        """There is none."""
