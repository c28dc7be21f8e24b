"""Recording for PyTorch: the same names as upstream's `msprobe.pytorch`."""

from __future__ import annotations

from typing import Any

from plumbline.debugger import DebuggerBase
from plumbline.pytorch.adapter import TorchAdapter
from plumbline.pytorch.module_dump import module_dump, module_dump_end

__all__ = ["PrecisionDebugger", "module_dump", "module_dump_end", "seed_all"]

_adapter = TorchAdapter()


class PrecisionDebugger(DebuggerBase):
    __doc__ = DebuggerBase.__doc__

    _adapter = _adapter


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
    _check_seed(seed, mode, rm_dropout)
    _adapter.seed(seed, mode, rm_dropout)


def _check_seed(seed: Any, mode: Any, rm_dropout: Any) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= 4294967295:
        raise ValueError(f"seed must be an integer from 0 to 4294967295 (got {seed!r})")
    for name, value in (("mode", mode), ("rm_dropout", rm_dropout)):
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False (got {value!r})")
