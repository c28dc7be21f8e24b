"""Adapter for MindSpore in PyNative mode: what plumbline.debugger needs to know about it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import mindspore as ms
from mindspore.communication import management

from plumbline import _core
from plumbline.adapter import HookedAdapter, version_numbers
from plumbline.mindspore import graph_mode, mindtorch
from plumbline.mindspore.api_hooks import ApiHooks, wrapped_apis
from plumbline.mindspore.cell_hooks import CellHooks
from plumbline.mindspore.dropout import remove_dropout as without_dropout
from plumbline.mindspore.gradients import OptimizerGradients
from plumbline.mindspore.graph_gradients import GraphGradients
from plumbline.mindspore.jit import JitCalls
from plumbline.mindspore.late_copies import LateCopies
from plumbline.mindspore.perturbation import MindSporeRuns
from plumbline.mindspore.values import DTYPES, describe, describe_tensor, to_host
from plumbline.random_calls import seed_process


class MindSporeAdapter(HookedAdapter):
    """`plumbline.adapter.Adapter` for MindSpore."""

    modules_since: tuple[int, ...] = (2, 10)  # tensors know the nodes of their autograd graph

    def __init__(self) -> None:
        jit = JitCalls()
        apis = ApiHooks(jit)
        super().__init__(apis, CellHooks(jit))
        self._use_cells = apis.use_cells
        self._late = LateCopies()

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
        return version_numbers(ms.__version__)

    def rank(self) -> int | None:
        """Rank of the world group; None without one."""
        try:
            return management.get_rank() if management.GlobalComm.INITED else None
        except (RuntimeError, ValueError):
            return None

    def is_module(self, value: object) -> bool:
        """Whether `value` is a mindspore.nn.Cell, or a module of MindTorch."""
        return isinstance(value, (ms.nn.Cell, mindtorch.module_type() or ms.nn.Cell))

    def framework_parts(self) -> dict[str, Any]:
        """Types and callables for `_core.new_recorder`."""
        return {
            "tensor": ms.Tensor,
            "dtype": ms.Type,
            "describe": describe,
            "to_host": to_host,
            "describe_tensor": describe_tensor,
            "reduce_on_device": self._late.copy,
            "copy_from_device": self._late.copy,
            "parameter": ms.Parameter,
            "dtypes": DTYPES,
            "requires_grad_name": "_requires_grad",
            "grad_node_name": "_grad_node",
            "output_number_name": "_output_index",
            "parameters_name": "_parameters" if mindtorch.module_type() else "_params",
            "node_id_name": "_unique_id",
        }

    def use_recorder(self, recorder: _core.Recorder) -> None:
        """Elements of tensors on devices go there, with `async_dump`."""
        self._late.use(recorder)

    def receive_values(self) -> None:
        """Waits for those that are under way."""
        self._late.receive()

    def apis(self) -> Iterable[tuple[str, str, object, str]]:
        """Wrapped APIs of this MindSpore version."""
        return wrapped_apis()

    def use_model(self, models: Iterable[ms.nn.Cell]) -> None:
        """The primitives that the cells of `models` hold are recorded as APIs, too."""
        self._use_cells(cell for model in models if isinstance(model, ms.nn.Cell)
                        for _, cell in model.cells_and_names())

    def operator_records(self, recorder: _core.Recorder) -> Any:
        raise _core.UnsupportedError("level: L2 needs the library of a device. Use level L1 or mix")

    def second_runs(self) -> MindSporeRuns:
        """For the perturbation check."""
        return MindSporeRuns()

    def next_node_number(self) -> int:
        """No node has a smaller one yet than that of a product which is made to ask."""
        node = (ms.Parameter(ms.Tensor([1.0])) * 1)._grad_node
        return 2**64 - 1 if node is None else int(node._sequence_nr())

    def kernel_dump_device(self) -> Any:
        """CANN's dump, through upstream's library; None where that is not installed."""
        try:
            adump = importlib.import_module("msprobe.lib._msprobe_c")
        except ImportError:
            return None
        return SimpleNamespace(
            synchronize=ms.runtime.synchronize, init_dump=adump.init_dump,
            set_dump=adump.set_dump, finalize_dump=adump.finalize_dump)

    def new_gradients(self) -> OptimizerGradients | GraphGradients:
        """Those that optimizers are called with, in Python or in a graph."""
        if graph_mode.execution_mode() == "pynative":
            return OptimizerGradients()
        return GraphGradients()

    def install_batches(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        """Nothing: `enable_dataloader` concerns PyTorch; MsprobeStep is MindSpore's way."""
        _core.log_warning("enable_dataloader: PyTorch only. Use the callback MsprobeStep")

    def uninstall_batches(self) -> None:
        """Nothing was installed."""

    def module_tree(self, model: ms.nn.Cell) -> Iterable[tuple[str, ms.nn.Cell]]:
        """cells_and_names() without the root; named_modules() of a module of MindTorch."""
        if not isinstance(model, ms.nn.Cell):
            return [(name, module) for name, module in model.named_modules() if module is not model]
        cells = [(name, cell) for name, cell in model.cells_and_names() if cell is not model]
        # What MindSpore puts around a cell to compute it again calls the cell itself.
        return [(name, cell) for name, cell in cells if "_recompute_cell" not in name.split(".")]

    def seed(self, seed: int, deterministic: bool, remove_dropout: bool) -> None:
        """Seeds Python, NumPy and MindSpore."""
        seed_process(seed, deterministic)
        ms.set_seed(seed)
        ms.set_context(deterministic="ON" if deterministic else "OFF")
        if remove_dropout:
            without_dropout()
