"""OverflowTracer for PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

from plumbline.pytorch.adapter import TorchAdapter
from plumbline.pytorch.values import read_together
from plumbline.watch.overflow_tracer import OverflowTracerBase


class _TracedTorch:
    """`plumbline.watch.overflow_tracer.TracedFramework` for PyTorch."""

    def __init__(self) -> None:
        self._adapter = TorchAdapter()
        compiler = getattr(torch, "compiler", None)
        self.is_compiling = getattr(compiler, "is_compiling", lambda: False)

    def parts(self) -> dict[str, Any]:
        return {"name": self._adapter.name, **self._adapter.framework_parts(),
                "magnitudes": self._magnitudes, "read": read_together}

    def named_modules(self, model: torch.nn.Module) -> Iterable[tuple[str, torch.nn.Module]]:
        """Without modules that are compiled: their hooks would be compiled with them."""
        return [(name, module) for name, module in model.named_modules()
                if getattr(module, "_compiled_call_impl", None) is None]

    def is_module(self, value: object) -> bool:
        return self._adapter.is_module(value)

    def rank(self) -> int | None:
        return self._adapter.rank()

    def is_alone(self) -> bool:
        return self._adapter.rank() is None or dist.get_world_size() == 1

    def _magnitudes(self, tensor: torch.Tensor) -> torch.Tensor:
        """One pass for each, without a copy of the tensor."""
        # Modes, transforms and autograd of the user see nothing of this.
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), \
                torch._C._DisableFuncTorch(), torch.no_grad():
            values = tensor.detach()
            if not (values.is_floating_point() or values.is_complex()):
                values = values.to(torch.float32)
            norm = torch.linalg.vector_norm
            pair = torch.stack((norm(values, -math.inf), norm(values, math.inf)))
            return pair.to(torch.promote_types(pair.dtype, torch.float32))


class OverflowTracer(OverflowTracerBase):
    __doc__ = OverflowTracerBase.__doc__
    _framework = _TracedTorch()
