"""Second runs of calls in PyTorch: `plumbline.watch.perturbation.SecondRuns`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils import _python_dispatch as dispatch

_NARROW = tuple(getattr(torch, name) for name in (
    "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
) if hasattr(torch, name))
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class TorchRuns:
    """Everything is called inside `quiet()`, but for the gradient hook."""

    has_backward_hooks = True

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, torch.Tensor)

    def is_floating(self, tensor: torch.Tensor) -> bool:
        return tensor.is_floating_point()

    def is_narrow(self, tensor: torch.Tensor) -> bool:
        return tensor.dtype in _NARROW

    def is_double(self, tensor: torch.Tensor) -> bool:
        return tensor.dtype is torch.float64

    def elements(self, tensor: torch.Tensor) -> int:
        return tensor.numel()

    def needs_grad(self, tensor: torch.Tensor) -> bool:
        return tensor.requires_grad

    def version(self, tensor: torch.Tensor) -> int:
        return 0 if tensor.is_inference() else tensor._version

    def may_be_written(self, api: str, tensor: torch.Tensor) -> bool:
        """Arguments and names say it."""
        return False

    def memory(self, tensor: torch.Tensor) -> int:
        return int(tensor.untyped_storage()._cdata)

    def obstacle(self, api: str, tensors: list[torch.Tensor]) -> str:
        for tensor in tensors:
            if type(tensor) not in _PLAIN:
                return f"an input is of class {type(tensor).__name__}"
            if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
                return "an input has no plain memory"
            if tensor.device.type != "cpu" and _generator_of(tensor.device) is None:
                return f"the random generator of {tensor.device} is not known"
            if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
                return "a graph is being captured"
        if torch._C._get_tracing_state() is not None:
            return "it is being traced"
        is_transformed = torch._C._functorch.peek_interpreter_stack() is not None
        return "it is inside a transform of torch.func" if is_transformed else ""

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        had_grad = torch.is_grad_enabled()
        with torch._C.DisableTorchFunction(), contextlib.ExitStack() as stack:
            if torch._C._len_torch_dispatch_stack() > 0:
                stack.enter_context(dispatch._disable_current_modes())
            torch._C._set_grad_enabled(False)
            try:
                yield
            finally:
                torch._C._set_grad_enabled(had_grad)

    def random(self, tensors: list[torch.Tensor], values: Iterable[Any]) -> list[Any]:
        generators = [torch.default_generator]
        for device in {tensor.device for tensor in tensors if tensor.device.type != "cpu"}:
            generators.append(_generator_of(device))
        generators += [value for value in values if isinstance(value, torch.Generator)]
        return [(generator, generator.get_state()) for generator in generators]

    def same_random(self, one: list[Any], other: list[Any]) -> bool:
        return all(torch.equal(a[1], b[1]) for a, b in zip(one, other, strict=True))

    def set_random(self, state: list[Any]) -> None:
        for generator, values in state:
            generator.set_state(values)

    @contextlib.contextmanager
    def precise(self, is_precise: bool) -> Iterator[None]:
        """Autocast keeps no copy made here, which would have no gradient."""
        had_cache = torch.is_autocast_cache_enabled()
        torch.set_autocast_cache_enabled(False)
        try:
            with contextlib.ExitStack() as stack:
                for kind in _cast_devices() if is_precise else ():
                    stack.enter_context(torch.autocast(kind, enabled=False))
                yield
        finally:
            torch.set_autocast_cache_enabled(had_cache)

    def rounds_by_itself(self) -> bool:
        return bool(_cast_devices())

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone()

    def detached(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach()

    def perturbed(
        self, tensor: torch.Tensor, change: Callable[[Any, Any], str]
    ) -> tuple[torch.Tensor, str]:
        host = tensor.detach().cpu()
        target = torch.empty_like(host)
        if not host.is_contiguous() and 0 not in host.stride():
            target = torch.empty_strided(host.shape, host.stride(), dtype=host.dtype)
        obstacle = change(host, target)
        return target.to(tensor.device), obstacle

    def single(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().float()

    def double(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().double()

    def cast_as(self, tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(other.dtype)

    def on_cpu(self, tensor: torch.Tensor) -> torch.Tensor:
        host = tensor.detach().cpu()
        return host.float() if host.dtype in _NARROW else host

    def replaced(
        self, output: torch.Tensor, second: torch.Tensor, aliases: str
    ) -> torch.Tensor:
        """`output` itself: the graph stays that of the first run, with the values that it saved."""
        values = second.detach().to(output.device, output.dtype)
        if aliases == "written":
            output.data.copy_(values)
        elif not aliases:
            output.data = values
        return output

    def gradient_hook(self, output: Any, run: Callable[[Any], None]) -> list[int]:
        tensors = list(_flat(output))
        node = next((one.grad_fn for one in tensors if one.grad_fn is not None), None)
        if node is None:
            return []
        mine = [(at, one.output_nr) for at, one in enumerate(tensors) if one.grad_fn is node]
        node.register_prehook(lambda gradients: run([gradients[number] for _, number in mine]))
        return [at for at, _ in mine]

    def gradients(
        self, run: Callable[[list[Any]], list[Any]], leaves: list[torch.Tensor], cotangents: Any
    ) -> list[Any]:
        inputs = [leaf.detach().requires_grad_() for leaf in leaves]
        plain = torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one)
        with torch.enable_grad(), plain:
            outputs = run(inputs)
        pairs = [(one, seed.to(one.device, one.dtype))
                 for one, seed in zip(outputs, cotangents, strict=True) if seed is not None]
        return list(torch.autograd.grad([one for one, _ in pairs], inputs,
                                        [seed for _, seed in pairs], allow_unused=True))


def _generator_of(device: torch.device) -> Any:
    """The default one of an accelerator; None if it does not tell."""
    module = getattr(sys.modules.get(f"torch_{device.type}", torch), device.type, None)
    generators = getattr(module, "default_generators", ())
    at = device.index or 0
    return generators[at] if at < len(generators) else None


def _cast_devices() -> list[str]:
    """Kinds of devices whose operators autocast changes now."""
    found = ["cpu"] if torch.is_autocast_cpu_enabled() else []
    if torch.is_autocast_enabled():
        found.append("cuda")
    return found


def _flat(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _flat(item)
