"""What PyTorch provides for the training monitor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from plumbline import _core
from plumbline.guards import CopyableHook
from plumbline.pytorch.adapter import TorchAdapter
from plumbline.pytorch.module_hooks import new_autograd
from plumbline.watch.monitor_parts import AdamRule, Handle
from plumbline.watch.on_pytorch.communication import MonitoredCommunication

# Attributes of Megatron's optimizers: parameters in low precision, and what the state belongs to.
_OWNERS = (
    ("float16_groups", "fp32_from_float16_groups"),
    ("model_float16_groups", "shard_fp32_from_float16_groups"),
)


def is_recomputing() -> bool:
    """Whether a backward pass is running: a module that is called then is computed again."""
    return torch._C._current_graph_task_id() != -1


class TorchMonitorParts:
    """`plumbline.watch.monitor_parts.MonitorParts` for PyTorch."""

    def __init__(self, adapter: TorchAdapter) -> None:
        self._adapter = adapter

    def rank(self) -> int | None:
        return self._adapter.rank()

    def framework_parts(self) -> dict[str, Any]:
        return self._adapter.framework_parts()

    def group_place(self, group: Any) -> tuple[int, list[int]]:
        if not (dist.is_available() and dist.is_initialized()):
            return 0, [0]
        group = group if isinstance(group, dist.ProcessGroup) else dist.group.WORLD
        return dist.get_rank(group), dist.get_process_group_ranks(group)

    def autograd(self) -> _core.Autograd:
        return new_autograd()

    def is_recomputing(self) -> Callable[[], bool] | None:
        return is_recomputing

    def is_model(self, value: Any) -> bool:
        return isinstance(value, torch.nn.Module)

    def is_optimizer(self, value: Any) -> bool:
        return callable(getattr(value, "step", None)) and hasattr(value, "__dict__")

    def modules(self, model: torch.nn.Module) -> Iterable[tuple[str, torch.nn.Module]]:
        return list(model.named_modules())

    def parameters(
        self, model: torch.nn.Module, with_frozen: bool = False
    ) -> Iterable[tuple[str, torch.nn.Parameter]]:
        return [(name, one) for name, one in model.named_parameters()
                if with_frozen or one.requires_grad]

    def watch_module(self, module: torch.nn.Module, watch: _core.ModuleWatch) -> list[Handle]:
        before, after = CopyableHook(watch.before), CopyableHook(watch.after)
        return [
            module.register_forward_pre_hook(before, with_kwargs=True),
            module.register_forward_hook(after, with_kwargs=True, always_call=True),
        ]

    def count_calls(self, model: torch.nn.Module, hook: Callable[..., None]) -> list[Handle]:
        return [self.watch_calls(model, hook)]

    def watch_calls(self, module: torch.nn.Module, hook: Callable[..., None]) -> Handle:
        return module.register_forward_pre_hook(CopyableHook(hook))

    def communication_hooks(
        self, live: _core.LiveMonitor, before: bool, is_wanted: Callable[[str], bool]
    ) -> MonitoredCommunication | None:
        return MonitoredCommunication(live, before, is_wanted) if dist.is_available() else None

    def watch_gradients(
        self, models: list[Any], parameters: list[tuple[Any, _core.WatchedName]],
        live: _core.LiveMonitor, autograd: _core.Autograd, batches: tuple[int, bool],
    ) -> list[Handle]:
        # Ranks combine gradients where they are added up: there the arriving one is read instead.
        reduces = any(isinstance(module, DistributedDataParallel)
                      for model in models for module in model.modules())
        handles: list[Handle] = []
        for parameter, name in parameters:
            count, takes_every = batches
            hook: Any = live.parameter_hook(
                autograd, name, count, takes_every, not reduces, parameter if reduces else None)
            register = (parameter.register_hook if reduces
                        else parameter.register_post_accumulate_grad_hook)
            handles.append(register(CopyableHook(hook)))
        return handles

    def watch_steps(
        self, optimizer: Any, before: Callable[[], None], after: Callable[[], None]
    ) -> Handle:
        has_hooks = (isinstance(optimizer, torch.optim.Optimizer)
                     and hasattr(optimizer, "_optimizer_step_pre_hooks")
                     and getattr(type(optimizer).step, "hooked", False))
        if not has_hooks:
            return _WrappedStep(optimizer, before, after)
        return _StepHooks(optimizer, before, after)

    def gradient(self, parameter: Any, optimizer: Any, prefers_main: bool) -> Any:
        main = getattr(parameter, "main_grad", None) if prefers_main else None
        return parameter.grad if main is None else main

    def moments(self, parameter: Any, optimizer: Any) -> tuple[Any, Any]:
        _, state = _state_of(parameter, optimizer)
        return state.get("exp_avg"), state.get("exp_avg_sq")

    def adam_rules(self, parameters: list[Any], optimizer: Any) -> list[AdamRule | None]:
        groups = {id(one): group for member in _members(optimizer)
                  for group in getattr(member, "param_groups", ()) for one in group["params"]}
        return [_adam_rule(one, optimizer, groups) for one in parameters]

    def is_duplicate(self, parameter: Any, tp_group: Any, dp_group: Any) -> bool:
        if dp_group is not None and dist.get_rank(dp_group) != 0:
            return True
        is_split = getattr(parameter, "tensor_model_parallel", False)
        return tp_group is not None and not is_split and dist.get_rank(tp_group) != 0

    def scalar(self, number: float) -> torch.Tensor:
        return torch.tensor(number, dtype=torch.float64)


def _members(optimizer: Any) -> list[Any]:
    """The optimizers whose states are looked at: Megatron's wrap one and chain several."""
    chained = getattr(optimizer, "chained_optimizers", [optimizer])
    return [one if getattr(one, "state", None) else getattr(one, "optimizer", one)
            for one in chained]


def _state_of(parameter: Any, optimizer: Any) -> tuple[Any, dict[str, Any]]:
    """What the optimizer keeps for a parameter, and what it keeps it by; empty: nothing yet."""
    chained = getattr(optimizer, "chained_optimizers", [optimizer])
    for outer, member in zip(chained, _members(optimizer), strict=True):
        owner = _state_owner(parameter, outer)
        state = getattr(member, "state", {}).get(owner)
        if state:
            return owner, state
    return parameter, {}


def _adam_rule(parameter: Any, optimizer: Any, groups: dict[int, Any]) -> AdamRule | None:
    owner, state = _state_of(parameter, optimizer)
    group = groups.get(id(owner), {})
    step, betas, eps = state.get("step", group.get("step")), group.get("betas"), group.get("eps")
    if step is None or betas is None or eps is None or step < 1:
        return None
    return float(betas[0]), float(betas[1]), float(eps), float(step)


def _state_owner(parameter: Any, optimizer: Any) -> Any:
    for low, high in _OWNERS:
        groups = zip(getattr(optimizer, low, ()), getattr(optimizer, high, ()), strict=False)
        pairs = (pair for group in groups for pair in zip(*group, strict=False))
        for one, owner in pairs:
            if one is parameter:
                return owner
    return parameter


class _StepHooks:
    """Hooks of one optimizer, which nothing is set on."""

    def __init__(self, optimizer: torch.optim.Optimizer, before: Callable[[], None],
                 after: Callable[[], None]) -> None:
        self._handles = [
            optimizer.register_step_pre_hook(CopyableHook(_before_step, before)),
            optimizer.register_step_post_hook(CopyableHook(_called, after)),
        ]

    def remove(self) -> None:
        """Takes them away."""
        for handle in self._handles:
            handle.remove()


def _called(action: Callable[[], None], *_: Any) -> None:
    action()


def _before_step(before: Callable[[], None], _: Any, args: Any, kwargs: Any) -> Any:
    """Calls `before` when the gradients are there: where the optimizer is given a closure that
    computes them (Lightning does so), after its first evaluation.
    """
    if len(args) > 1 and callable(args[1]):
        return (args[0], _then(args[1], before), *args[2:]), kwargs
    if callable(kwargs.get("closure")):
        return args, {**kwargs, "closure": _then(kwargs["closure"], before)}
    before()
    return None


def _then(closure: Callable[[], Any], action: Callable[[], None]) -> Callable[[], Any]:
    """A closure like `closure`, with `action` after its first call."""
    waiting = [action]

    @functools.wraps(closure)
    def evaluated() -> Any:
        result = closure()
        if waiting:
            waiting.pop()()
        return result

    return evaluated


class _WrappedStep:
    """`step` of an optimizer that has no hooks, wrapped on the object alone."""

    def __init__(self, optimizer: Any, before: Callable[[], None],
                 after: Callable[[], None]) -> None:
        self._optimizer = optimizer
        self._had_own = "step" in vars(optimizer)
        self._step = optimizer.step
        step = self._step

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            changed = _before_step(before, optimizer, (optimizer, *args), kwargs)
            if changed is not None:
                (_, *args), kwargs = changed
            result = step(*args, **kwargs)
            after()
            return result

        self._wrapped = wrapped
        optimizer.step = wrapped

    def remove(self) -> None:
        """Puts back what was there, unless somebody has put something else there."""
        if vars(self._optimizer).get("step") is not self._wrapped:
            return
        if self._had_own:
            self._optimizer.step = self._step
        else:
            del self._optimizer.step
