"""Recording for PyTorch: the same names as upstream's `msprobe.pytorch`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import torch

from plumbline import _core
from plumbline.call_window import Settings, Window
from plumbline.debugger import DebuggerBase
from plumbline.module_dump import module_dump, module_dump_end
from plumbline.pytorch.adapter import TorchAdapter
from plumbline.pytorch.operator_dump import dumper as dumper
from plumbline.random_calls import RandomCalls, check_seed, start_random_table
from plumbline.trace_window import TraceWindow

if TYPE_CHECKING:
    from plumbline.watch.on_pytorch.black_box import black_box
    from plumbline.watch.on_pytorch.overflow_tracer import OverflowTracer
    from plumbline.watch.on_pytorch.trainer_mon import TrainerMon

__all__ = [
    "OverflowTracer", "PrecisionDebugger", "TrainerMon", "black_box", "module_dump",
    "module_dump_end", "random_save", "seed_all",
]  # fmt: skip

_adapter = TorchAdapter()

# Name -> the module that has it, loaded when it is first asked for.
_LAZY = {
    "OverflowTracer": "plumbline.watch.on_pytorch.overflow_tracer",
    "TrainerMon": "plumbline.watch.on_pytorch.trainer_mon",
    "black_box": "plumbline.watch.on_pytorch.black_box",
}


def __getattr__(name: str) -> Any:
    """What watches a training is loaded where it is used."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


class PrecisionDebugger(DebuggerBase):
    __doc__ = DebuggerBase.__doc__
    _adapter = _adapter

    def _window_for(self, config: _core.Config, settings: Settings, model: Any) -> Window:
        if config.traces_frames:
            return TraceWindow(config, __getattr__("OverflowTracer"), self._adapter.rank, model)
        return super()._window_for(config, settings, model)


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = True) -> None:
    """Fixes the random generators of Python, NumPy and PyTorch.

    Args:
        seed: 0 to 4294967295.
        mode: also demand deterministic algorithms.
        rm_dropout: make `torch.nn.functional.dropout`, `dropout2d` and `dropout3d` keep everything
            (p = 0) from now on, so that two runs are comparable.

    Raises:
        ValueError: an argument is of the wrong type or out of range.

    Example:
        >>> seed_all(1234)
    """
    check_seed(seed, mode, rm_dropout)
    _adapter.seed(seed, mode, rm_dropout)


_random_calls: RandomCalls | None = None


def random_save(output_path: str = "./output") -> None:
    """Writes a row for every call of a random function of Python, NumPy and PyTorch from now on.

    The table is `random_rank{R}_{time}.csv` (`random_proc{pid}_{time}.csv` until the rank is
    known), with the columns `api_name` (`{library}.{function}.{n}`) and `stack`. Calls from one
    random function to another are not listed. A second call does nothing.

    Args:
        output_path: directory of the table; made when missing.

    Raises:
        ValueError: output_path is not a string.
        OSError: the table cannot be made.

    Example:
        >>> random_save("./output")  # doctest: +SKIP
    """
    global _random_calls
    owners = {"torch_random": torch, "tensor_random": torch.Tensor}
    _random_calls = _random_calls or start_random_table(output_path, _adapter.rank, owners)
