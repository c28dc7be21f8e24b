"""Adapter for PyTorch: what plumbline.debugger needs to know about it."""

from __future__ import annotations

import dataclasses
import os
import random
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist

from plumbline import _core
from plumbline.pytorch.api_hooks import ApiHooks, wrapped_apis
from plumbline.pytorch.batches import BatchHooks
from plumbline.pytorch.module_hooks import ModuleHooks


class TorchAdapter:
    """`plumbline.adapter.Adapter` for PyTorch."""

    name = "pytorch"

    def __init__(self) -> None:
        self._apis = ApiHooks()
        self._modules = ModuleHooks()
        self._batches = BatchHooks()

    def version(self) -> tuple[int, ...]:
        """(2, 13, 0) of "2.13.0+cpu"."""
        return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:3])

    def rank(self) -> int | None:
        """Rank of the default process group; None without one."""
        if dist.is_available() and dist.is_initialized():
            return dist.get_rank()
        return None

    def is_module(self, value: object) -> bool:
        """Whether `value` is a torch.nn.Module."""
        return isinstance(value, torch.nn.Module)

    def framework_parts(self) -> dict[str, Any]:
        """Types and callables for `_core.new_recorder`."""
        return {
            "tensor": torch.Tensor,
            "dtype": torch.dtype,
            "device": torch.device,
            "size": torch.Size,
            "memory_format": torch.memory_format,
            "describe": describe,
            "to_host": to_host,
            "describe_tensor": describe_tensor,
            "mode_depth": torch._C._len_torch_function_stack,
            "mode_at": torch._C._get_function_stack_at,
            "pop_mode": torch._C._pop_torch_function_stack,
            "push_mode": torch._C._push_on_torch_function_stack,
            "parameter": torch.nn.Parameter,
            "no_override": torch._C.DisableTorchFunction,
        }

    def apis(self) -> Iterable[tuple[str, str, object, str]]:
        """Wrapped APIs of this PyTorch version."""
        return wrapped_apis()

    def install_apis(self, recorder: _core.Recorder, with_regions: bool) -> None:
        """Starts recording API calls."""
        self._apis.install(recorder, with_regions)

    def uninstall_apis(self) -> None:
        """Restores every replaced attribute."""
        self._apis.uninstall()

    def install_modules(
        self, recorder: _core.Recorder, modules: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Hooks modules."""
        self._modules.install(recorder, modules, wants_backward)

    def uninstall_modules(self) -> None:
        """Removes the module hooks."""
        self._modules.uninstall()

    def watch_calls(self, module: torch.nn.Module, callback: Callable[..., None]) -> Any:
        """A forward pre hook."""
        return module.register_forward_pre_hook(callback)

    def install_batches(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        """Wraps DataLoader iterators."""
        self._batches.install(before, after)

    def uninstall_batches(self) -> None:
        """Restores DataLoader iterators."""
        self._batches.uninstall()

    def end_step(self) -> None:
        """Removes the parameter hooks of the step."""
        self._modules.end_step()

    def module_tree(self, model: torch.nn.Module) -> Iterable[tuple[str, torch.nn.Module]]:
        """named_modules() without the root."""
        return [(name, module) for name, module in model.named_modules() if module is not model]

    def seed(self, seed: int, deterministic: bool, remove_dropout: bool) -> None:
        """Seeds Python, NumPy (when loaded) and PyTorch on every device."""
        random.seed(seed)
        os.environ["PYTHONHASHSEED"] = str(seed)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(seed)
        os.environ["HCCL_DETERMINISTIC"] = str(deterministic)
        if torch.version.cuda is not None:
            os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
            torch.backends.cudnn.deterministic = True
            torch.backends.cudnn.benchmark = False
        torch.manual_seed(seed)  # every device's generator
        torch.use_deterministic_algorithms(deterministic)
        if remove_dropout:
            _remove_dropout()


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A plain CPU tensor with the values of `tensor`; lazy conjugation and negation carried out."""
    with torch.no_grad():
        return tensor.detach().cpu().resolve_conj().resolve_neg()


def describe_tensor(tensor: torch.Tensor) -> tuple[str, str, tuple[int, ...], bool]:
    """Type, dtype, shape and requires_grad of a tensor whose memory cannot be read."""
    kind = type(tensor)
    text = "torch.Tensor"
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        text = f"{kind.__module__}.{kind.__qualname__}"
    with torch._C.DisableTorchFunctionSubclass():
        shape = tuple(size if isinstance(size, int) else -1 for size in tensor.shape)
        return text, str(tensor.dtype), shape, bool(tensor.requires_grad)


def describe(value: Any) -> tuple[Any, ...] | None:
    """What a value is that is neither tensor nor plain scalar, list or dict.

    Returns:
        ("map", [(key, value), ...]) or ("list", [value, ...]), whose values are described in turn;
        ("array", tensor, dtype text) for a NumPy array; ("value", json) for anything else.
    """
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "map", [(field, getattr(value, field)) for field in value._fields]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "map", [(field, getattr(value, field)) for field in value.__dataclass_fields__]
    if isinstance(value, (list, tuple)):
        return "list", list(value)
    if isinstance(value, dict):
        return "map", list(value.items())
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _describe_array(value)
    if numpy is not None and isinstance(value, numpy.generic):
        item = value.item()
        item = item if isinstance(item, (bool, int, float, str)) else str(item)
        return "value", {"type": type(value).__name__, "value": item}
    if isinstance(value, float):
        return "value", {"type": type(value).__name__, "value": float(value)}
    if dist.is_available():
        described = _describe_distributed(value)
        if described is not None:
            return "value", described
    # Upstream writes null here, which cannot be told from None.
    return "value", {"type": f"{type(value).__module__}.{type(value).__qualname__}", "value": None}


def _describe_array(array: Any) -> tuple[Any, ...]:
    try:
        return "array", torch.from_numpy(array), str(array.dtype)
    except (TypeError, ValueError):
        # No tensor has this dtype (text, objects) or these strides: described without values.
        null = {"Max": None, "Min": None, "Mean": None, "Norm": None}
        shape = list(array.shape)
        return "value", {"type": "numpy.ndarray", "dtype": str(array.dtype), "shape": shape, **null}


def _describe_distributed(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dist.ReduceOp):
        return {"type": "torch.distributed.ReduceOp", "value": str(value)}
    if isinstance(value, dist.ProcessGroup):
        return {"type": "torch.ProcessGroup", "group_ranks": dist.get_process_group_ranks(value)}
    return None


def _remove_dropout() -> None:
    """Replaces the functional dropouts by versions that keep every element."""
    functional: Any = torch.nn.functional

    def without(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def dropout(
            input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
        ) -> torch.Tensor:
            if not 0.0 <= p <= 1.0:
                raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
            return original(input, 0.0, training, inplace)

        dropout.__name__ = original.__name__
        dropout.__doc__ = original.__doc__
        return dropout

    for name in ("dropout", "dropout2d", "dropout3d"):
        original = getattr(functional, name)
        if original.__module__ == "torch.nn.functional":  # not replaced yet
            setattr(functional, name, without(original))
