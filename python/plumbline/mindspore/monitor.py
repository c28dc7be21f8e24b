"""What MindSpore in PyNative mode provides for the training monitor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import mindspore as ms
from mindspore.communication import management

from plumbline import _core
from plumbline.guards import CopyableHook
from plumbline.mindspore.adapter import MindSporeAdapter
from plumbline.mindspore.cell_hooks import new_autograd, register_after
from plumbline.mindspore.distributed import MonitoredCommunication
from plumbline.watch.monitor_parts import AdamRule, CommunicationHooks, Handle

# How the optimizers call their copies of the parameters: "moment1.fc.weight".
_FIRST_MOMENTS, _SECOND_MOMENTS = ("exp_avg", "moment1", "moments"), ("exp_avg_sq", "moment2")


class MindSporeMonitorParts:
    """`plumbline.watch.monitor_parts.MonitorParts` for MindSpore."""

    def __init__(self, adapter: MindSporeAdapter) -> None:
        self._adapter = adapter
        self._gradients: dict[str, Any] = {}  # by parameter, of the optimizer's call under way

    def rank(self) -> int | None:
        return self._adapter.rank()

    def framework_parts(self) -> dict[str, Any]:
        return self._adapter.framework_parts()

    def group_place(self, group: Any) -> tuple[int, list[int]]:
        rank = self.rank()
        return (0, [0]) if rank is None else (rank, list(range(management.get_group_size())))

    def autograd(self) -> _core.Autograd:
        return new_autograd()

    def is_recomputing(self) -> Callable[[], bool] | None:
        return None

    def is_model(self, value: Any) -> bool:
        return isinstance(value, ms.nn.Cell)

    def is_optimizer(self, value: Any) -> bool:
        return isinstance(value, ms.nn.Cell)

    def modules(self, model: ms.nn.Cell) -> Iterable[tuple[str, ms.nn.Cell]]:
        return [("", model), *self._adapter.module_tree(model)]

    def parameters(self, model: ms.nn.Cell, with_frozen: bool = False) -> list[tuple[str, Any]]:
        return [(p.name, p) for p in model.get_parameters() if with_frozen or p.requires_grad]

    def watch_module(self, module: ms.nn.Cell, watch: _core.ModuleWatch) -> list[Handle]:
        before, after = CopyableHook(watch.before), CopyableHook(watch.after)
        return [
            module.register_forward_pre_hook(before, with_kwargs=True),
            register_after(module, after),
        ]

    def count_calls(self, model: ms.nn.Cell, hook: Callable[..., None]) -> list[Handle]:
        return []  # a hook of a cell that is compiled would compile it anew

    def watch_calls(self, module: ms.nn.Cell, hook: Callable[..., None]) -> Handle:
        handle: Handle = module.register_forward_pre_hook(CopyableHook(hook))
        return handle

    def communication_hooks(
        self, live: _core.LiveMonitor, before: bool, is_wanted: Callable[[str], bool]
    ) -> CommunicationHooks | None:
        return MonitoredCommunication(live, before, is_wanted)

    def watch_gradients(
        self, models: list[Any], parameters: list[tuple[Any, _core.WatchedName]],
        live: _core.LiveMonitor, autograd: _core.Autograd, batches: tuple[int, bool],
    ) -> list[Handle]:
        handles: list[Handle] = []
        for parameter, name in parameters:
            hook: Any = live.parameter_hook(autograd, name, *batches, False, None)
            handles.append(parameter.register_hook(CopyableHook(hook)))
        return handles

    def watch_steps(
        self, optimizer: Any, before: Callable[[], None], after: Callable[[], None]
    ) -> Handle:
        return _StepHooks(optimizer, self._gradients, before, after)

    def gradient(self, parameter: Any, optimizer: Any, prefers_main: bool) -> Any:
        return self._gradients.get(parameter.name)

    def moments(self, parameter: Any, optimizer: Any) -> tuple[Any, Any]:
        own = {one.name: one for one in optimizer.get_parameters()}
        first, second = (
            next((own[name] for name in (f"{prefix}.{parameter.name}" for prefix in prefixes)
                  if name in own), None)
            for prefixes in (_FIRST_MOMENTS, _SECOND_MOMENTS))
        return first, second

    def adam_rules(self, parameters: list[Any], optimizer: Any) -> list[AdamRule | None]:
        steps = getattr(optimizer, "state_step", getattr(optimizer, "global_step", None))
        step = 0.0 if steps is None else _number(steps)
        groups = {one.name: group for group in getattr(optimizer, "param_groups", ())
                  for one in group["params"]}
        rules: list[AdamRule | None] = []
        for parameter in parameters:
            group = groups.get(parameter.name, {})
            first, second = group.get("betas") or (getattr(optimizer, "beta1", None),
                                                   getattr(optimizer, "beta2", None))
            eps = group.get("eps", getattr(optimizer, "eps", None))
            has_all = step >= 1 and all(one is not None for one in (first, second, eps))
            rules.append((_number(first), _number(second), _number(eps), step)
                         if has_all else None)
        return rules

    def is_duplicate(self, parameter: Any, tp_group: Any, dp_group: Any) -> bool:
        groups = [group for group in (tp_group, dp_group) if group is not None]
        return any(management.get_rank(group) != 0 for group in groups)

    def scalar(self, number: float) -> Any:
        return ms.Tensor(number, ms.float64)


def _number(value: Any) -> float:
    """Of a number, or of a tensor with one element."""
    return float(value.asnumpy().reshape(-1)[0]) if isinstance(value, ms.Tensor) else float(value)


class _StepHooks:
    """Hooks around the call of one optimizer, whose argument are the gradients."""

    def __init__(self, optimizer: Any, gradients: dict[str, Any], before: Callable[[], None],
                 after: Callable[[], None]) -> None:
        def begin(_: Any, inputs: Any) -> None:
            given = inputs[0] if inputs else ()
            gradients.update(zip((one.name for one in optimizer.parameters), given, strict=False))
            before()

        def end(*_: Any) -> None:
            gradients.clear()
            after()

        self._handles = [optimizer.register_forward_pre_hook(CopyableHook(begin)),
                         optimizer.register_forward_hook(CopyableHook(end))]

    def remove(self) -> None:
        """Takes them away."""
        for handle in self._handles:
            handle.remove()
