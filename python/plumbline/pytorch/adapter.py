"""Adapter for PyTorch: what plumbline.debugger needs to know about it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist

from plumbline import _core
from plumbline.adapter import HookedAdapter, version_numbers
from plumbline.dropout import remove_functional_dropout
from plumbline.pytorch.api_hooks import ApiHooks, wrapped_apis
from plumbline.pytorch.batches import BatchHooks
from plumbline.pytorch.compiled import CompiledRegions
from plumbline.pytorch.device.late_values import LateValues
from plumbline.pytorch.gradients import ParameterGradients
from plumbline.pytorch.module_hooks import ModuleHooks
from plumbline.pytorch.operators import OperatorRecords
from plumbline.pytorch.perturbation import TorchRuns
from plumbline.pytorch.values import describe, describe_tensor, part_of, read_together, to_host
from plumbline.random_calls import seed_process

# What the libraries of an NPU read besides: fixed order of sums in communication and products.
_NPU_DETERMINISTIC = {
    "LCCL_DETERMINISTIC": "1", "CLOSE_MATMUL_K_SHIFT": "1", "ATB_LLM_LCOC_ENABLE": "0"}


class TorchAdapter(HookedAdapter):
    """`plumbline.adapter.Adapter` for PyTorch."""

    name = "pytorch"
    module_prefix = "Module"
    modules_since: tuple[int, ...] = (2, 2)  # torch.autograd.graph.get_gradient_edge

    def __init__(self) -> None:
        compiled = CompiledRegions()
        self._api_hooks = ApiHooks(compiled)
        super().__init__(self._api_hooks, ModuleHooks(compiled))
        self._batches = BatchHooks()
        self._late = LateValues()

    def version(self) -> tuple[int, ...]:
        """(2, 13, 0) of "2.13.0+cpu"."""
        return version_numbers(torch.__version__)

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
            "read_together": read_together,
            "reduce_on_device": self._late.reduce,
            "copy_from_device": self._late.copy,
            "part_of": part_of,
            "mode_depth": torch._C._len_torch_function_stack,
            "mode_at": torch._C._get_function_stack_at,
            "pop_mode": torch._C._pop_torch_function_stack,
            "push_mode": torch._C._push_on_torch_function_stack,
            "parameter": torch.nn.Parameter,
            "no_override": torch._C.DisableTorchFunction,
        }

    def use_recorder(self, recorder: _core.Recorder) -> None:
        """Values of devices go there."""
        self._late.use(recorder)

    def send_values(self) -> None:
        """Sends for the statistics that are on devices, without waiting."""
        self._late.send()

    def receive_values(self) -> None:
        """Waits for those that were sent for."""
        self._late.receive()

    def apis(self) -> Iterable[tuple[str, str, object, str]]:
        """Wrapped APIs of this PyTorch version."""
        return wrapped_apis()

    def use_model(self, models: Iterable[torch.nn.Module]) -> None:
        """They name what optimizers update; their parts are hooked as modules."""
        self._api_hooks.models = list(models)

    def operator_records(self, recorder: _core.Recorder) -> OperatorRecords:
        """A dispatch mode."""
        return OperatorRecords(recorder)

    def second_runs(self) -> TorchRuns:
        """For the perturbation check."""
        if self.version() < (2, 0):
            raise _core.UnsupportedError("task: free_benchmark needs PyTorch 2.0 or later (got "
                                         f"{torch.__version__})")
        return TorchRuns()

    def next_node_number(self) -> int:
        return torch._C._autograd._get_sequence_nr()

    def kernel_dump_device(self) -> Any:
        """torch_npu.npu, where that is loaded."""
        return getattr(sys.modules.get("torch_npu"), "npu", None)

    def new_gradients(self) -> ParameterGradients:
        """Of modules' parameters, before any optimizer steps."""
        return ParameterGradients()

    def install_batches(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        self._batches.install(before, after)

    def uninstall_batches(self) -> None:
        self._batches.uninstall()

    def module_tree(self, model: torch.nn.Module) -> Iterable[tuple[str, torch.nn.Module]]:
        """named_modules() without the root."""
        return [(name, module) for name, module in model.named_modules() if module is not model]

    def seed(self, seed: int, deterministic: bool, remove_dropout: bool) -> None:
        """Seeds Python, NumPy (when loaded) and PyTorch on every device."""
        seed_process(seed, deterministic)
        if torch.version.cuda is not None:
            os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
            torch.backends.cudnn.deterministic = True
            torch.backends.cudnn.benchmark = False
        if deterministic and "torch_npu" in sys.modules:
            os.environ.update(_NPU_DETERMINISTIC)
        torch.manual_seed(seed)  # every device's generator
        torch.use_deterministic_algorithms(deterministic)
        if remove_dropout:
            remove_functional_dropout(torch.nn.functional)
