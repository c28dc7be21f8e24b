"""Adapter for MindSpore in PyNative mode: what plumbline.debugger needs to know about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import mindspore as ms
from mindspore.communication import management

from plumbline import _core
from plumbline.mindspore import mindtorch
from plumbline.mindspore.api_hooks import ApiHooks, wrapped_apis
from plumbline.mindspore.cell_hooks import CellHooks
from plumbline.mindspore.dropout import remove_dropout as without_dropout
from plumbline.mindspore.jit import JitCalls
from plumbline.mindspore.values import DTYPES, describe, describe_tensor, to_host
from plumbline.random_calls import seed_interpreter


class MindSporeAdapter:
    """`plumbline.adapter.Adapter` for MindSpore."""

    modules_since: tuple[int, ...] = (2, 10)  # tensors know the nodes of their autograd graph

    def __init__(self) -> None:
        jit = JitCalls()
        self._apis = ApiHooks(jit)
        self._cells = CellHooks(jit)

    @property
    def name(self) -> str:
        """Also "mindtorch": where `torch` is that; it may be imported later than this package."""
        return "mindtorch" if mindtorch.is_there() else "mindspore"

    @property
    def module_prefix(self) -> str:
        """First part of the names of cells' entries."""
        return "Module" if mindtorch.is_there() else "Cell"

    def version(self) -> tuple[int, ...]:
        """(2, 10, 0) of "2.10.0"."""
        return tuple(int(part) for part in ms.__version__.split(".")[:3] if part.isdigit())

    def rank(self) -> int | None:
        """Rank of the world group; None without one."""
        try:
            return management.get_rank() if management.GlobalComm.INITED else None
        except (RuntimeError, ValueError):
            return None

    def is_module(self, value: object) -> bool:
        """Whether `value` is a mindspore.nn.Cell."""
        return isinstance(value, ms.nn.Cell)

    def framework_parts(self) -> dict[str, Any]:
        """Types and callables for `_core.new_recorder`."""
        return {
            "tensor": ms.Tensor,
            "dtype": ms.Type,
            "describe": describe,
            "to_host": to_host,
            "describe_tensor": describe_tensor,
            "parameter": ms.Parameter,
            "dtypes": DTYPES,
            "requires_grad_name": "_requires_grad",
            "grad_node_name": "_grad_node",
            "output_number_name": "_output_index",
            "parameters_name": "_params",
            "node_id_name": "_unique_id",
        }

    def apis(self) -> Iterable[tuple[str, str, object, str]]:
        """Wrapped APIs of this MindSpore version."""
        return wrapped_apis()

    def use_model(self, models: Iterable[ms.nn.Cell]) -> None:
        """The primitives that the cells of `models` hold are recorded as APIs, too."""
        self._apis.use_cells(cell for model in models for _, cell in model.cells_and_names())

    def install_apis(self, recorder: _core.Recorder, with_regions: bool) -> None:
        """Starts recording API calls."""
        self._apis.install(recorder, with_regions)

    def uninstall_apis(self) -> None:
        """Restores every replaced attribute."""
        self._apis.uninstall()

    def install_modules(
        self, recorder: _core.Recorder, modules: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        """Hooks cells."""
        self._cells.install(recorder, modules, wants_backward)

    def uninstall_modules(self) -> None:
        """Removes the hooks of cells."""
        self._cells.uninstall()

    def operator_records(self, recorder: _core.Recorder) -> Any:
        raise _core.UnsupportedError(
            "level: L2 is not there for MindSpore in PyNative mode. Use level L1 or mix"
        )

    def next_node_number(self) -> int:
        raise _core.UnsupportedError("level: L2 is not there for MindSpore in PyNative mode")

    def kernel_dump_device(self) -> Any:
        """None: level L2 is not there."""
        return None

    def watch_calls(self, module: ms.nn.Cell, callback: Callable[..., None]) -> Any:
        """A forward pre hook."""
        return module.register_forward_pre_hook(callback)

    def install_batches(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        """Nothing: `enable_dataloader` concerns PyTorch; MsprobeStep is MindSpore's way."""
        _core.log_warning("enable_dataloader: PyTorch only. Use the callback MsprobeStep")

    def uninstall_batches(self) -> None:
        """Nothing was installed."""

    def end_step(self) -> None:
        """Removes the parameter hooks of the step."""
        self._cells.end_step()

    def module_tree(self, model: ms.nn.Cell) -> Iterable[tuple[str, ms.nn.Cell]]:
        """cells_and_names() without the root."""
        cells = [(name, cell) for name, cell in model.cells_and_names() if cell is not model]
        # What MindSpore puts around a cell to compute it again calls the cell itself.
        return [(name, cell) for name, cell in cells if "_recompute_cell" not in name.split(".")]

    def seed(self, seed: int, deterministic: bool, remove_dropout: bool) -> None:
        """Seeds Python, NumPy and MindSpore."""
        seed_interpreter(seed)
        os.environ["HCCL_DETERMINISTIC"] = str(deterministic)
        ms.set_seed(seed)
        ms.set_context(deterministic="ON" if deterministic else "OFF")
        if remove_dropout:
            without_dropout()
