"""Gradients of the parameters of modules, when optimizers step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.optim.optimizer as optimizers

from plumbline import _core


class ParameterGradients:
    """`plumbline.watch.grad_probe.Gradients` for PyTorch."""

    def __init__(self) -> None:
        self._parameters: list[torch.nn.Parameter] = []
        self._numbers: dict[int, int] = {}  # by id; the list keeps the parameters alive
        self._handle: Any = None

    def add(self, model: Any) -> list[str]:
        """Parameters as `named_parameters()` names them, of a list of modules `{index}.{name}`."""
        is_list = isinstance(model, (list, tuple))
        models = list(model) if is_list else [model]
        if not models or not all(isinstance(one, torch.nn.Module) for one in models):
            raise ValueError("monitor(): model must be a module or a list of modules "
                             f"(got {type(model).__name__})")
        names = []
        for index, one in enumerate(models):
            for name, parameter in one.named_parameters():
                if id(parameter) not in self._numbers:
                    self._numbers[id(parameter)] = len(self._parameters)
                    self._parameters.append(parameter)
                    names.append(f"{index}.{name}" if is_list else name)
        return names

    def watch(self, before_step: Callable[[Any, Any], None]) -> None:
        """Of every optimizer of the process."""
        if self._handle is not None:
            return
        register = getattr(optimizers, "register_optimizer_step_pre_hook", None)
        if register is None:
            raise _core.UnsupportedError(
                f"task: grad_probe needs PyTorch 2.0 (got {torch.__version__})")

        def before(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            before_step(optimizer, None)

        vars(before)["_torchdynamo_disable"] = True  # not compiled along with an optimizer's step
        self._handle = register(before)

    def unwatch(self) -> None:
        """Removes the hook."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def of(self, numbers: Sequence[int], _given: Any) -> list[Any]:
        """`main_grad`, in which Megatron accumulates, where a parameter has it."""
        parameters = [self._parameters[number] for number in numbers]
        return [one.main_grad if hasattr(one, "main_grad") else one.grad for one in parameters]

    def held_by(self, optimizer: Any) -> list[int]:
        """Those in its groups."""
        held = (one for group in optimizer.param_groups for one in group["params"])
        return [self._numbers[id(one)] for one in held if id(one) in self._numbers]
