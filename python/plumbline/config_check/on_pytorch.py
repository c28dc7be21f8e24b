"""What plumbline.config_check.checker needs to know about PyTorch."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib._bootstrap
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _python_dispatch as dispatch

from plumbline import _core
from plumbline.config_check.pack import RandomStacks
from plumbline.pytorch.values import describe_tensor

MODEL_TYPE = "torch.nn.Module"

_aten = torch.ops.aten


def is_module(value: object) -> bool:
    """Whether `value` is a model."""
    return isinstance(value, torch.nn.Module)


def unseen_calls() -> str:
    """Which calls of a model `watch` cannot see; empty: none."""
    return ""


def is_compiling() -> bool:
    """Whether torch.compile is reading the caller instead of running it."""
    return torch.compiler.is_compiling()


def watch(model: torch.nn.Module, before: Callable[..., None]) -> Any:
    """Calls `before(model, args, kwargs)` ahead of every call; `remove()` of the result ends it."""
    return model.register_forward_pre_hook(before, with_kwargs=True)


def parameters(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """Parameters with their names."""
    return model.named_parameters()


def rank() -> int:
    """Global rank; 0 where there is only one."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    text = os.environ.get("RANK", "")
    return int(text) if text.isdigit() else 0


def random_owners() -> dict[str, Any]:
    """Where the random functions are."""
    return {"torch": torch, "torch.Tensor": torch.Tensor}


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Neither modes nor recorders of the user see what is done inside."""
    with torch.no_grad(), torch._C.DisableTorchFunction(), dispatch._disable_current_modes():
        yield


def step_aside(stacks: RandomStacks) -> None:
    """Gives the compilers the originals, which they know by identity."""
    jit: Any = torch.jit._script
    bootstrap: Any = importlib._bootstrap
    script, find, compile = jit._script_impl, bootstrap._find_and_load, torch.compile
    patches = _core.PatchSet()

    def without(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        stacks.suspend()
        try:
            return original(*args, **kwargs)
        finally:
            stacks.resume()

    @functools.wraps(script)
    def scripted(*args: Any, **kwargs: Any) -> Any:
        return without(script, *args, **kwargs)

    def found(name: str, *args: Any) -> Any:
        if name.startswith("torch."):  # its modules make tables of functions
            return without(find, name, *args)
        return find(name, *args)

    def begins(_: object) -> None:
        stacks.finish()
        patches.restore()

    @functools.wraps(compile)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        callbacks: Any = importlib.import_module("torch._dynamo.callback")
        callbacks.callback_handler.register_start_callback(begins)
        return without(compile, *args, **kwargs)

    patches.add(jit, "_script_impl", scripted)
    patches.add(bootstrap, "_find_and_load", found)
    patches.add(torch, "compile", compiled)
    patches.apply()


def _plain(value: Any) -> torch.Tensor | None:
    """The values of a tensor of any class as a dense tensor; of a distributed one this rank's."""
    if not isinstance(value, torch.Tensor):
        return None
    source = describe_tensor(value, False)[4]
    return None if source is None else _aten.detach.default(source)


def statistics(value: Any, widen: bool = False) -> Any:
    """max, min, mean and norm as upstream computes them; "" where there are none."""
    tensor = _plain(value)
    if tensor is None or tensor.numel() == 0 or tensor.is_complex():
        return ""
    is_native = tensor.is_floating_point() and tensor.dtype != torch.float64
    if not is_native or (widen and tensor.dtype != torch.float32):
        tensor = _aten._to_copy.default(tensor, dtype=torch.float32)
    numbers = {
        "max": _aten.max.default(tensor),
        "min": _aten.min.default(tensor),
        "mean": _aten.mean.default(tensor),
        "norm": _aten.linalg_vector_norm.default(tensor),
    }
    return {name: float(_aten._local_scalar_dense.default(x)) for name, x in numbers.items()}


def digest(value: Any) -> str:
    """dtype, shape and CRC-32 of the elements."""
    tensor = _plain(value)
    if tensor is None:
        return ""
    if tensor.device.type != "cpu":
        tensor = _aten._to_copy.default(tensor, device="cpu")
    tensor = _aten.clone.default(tensor, memory_format=torch.contiguous_format)
    size = tensor.numel() * tensor.element_size()
    crc = zlib.crc32((ctypes.c_ubyte * size).from_address(tensor.data_ptr())) if size else 0
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}:{crc:08x}"
