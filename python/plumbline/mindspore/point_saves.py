"""`save()` and `save_grad()`: values inside a network, written by MindSpore's TensorDump.

Both are compiled with the network that calls them. MindSpore counts the steps; for a CPU, where it
does not and no compiled network has TensorDump, they are counted here.
"""

from __future__ import annotations

import os
from typing import Any

import mindspore as ms
from mindspore import ops
from mindspore.communication import management
from mindspore.ops.primitive import PrimitiveWithInfer, _run_op

from plumbline import _core

_NEXT_STEP = "<tensordump-update-step>"
_steps = [0]  # that step() has ended


def _is_on_cpu() -> bool:
    return bool(ms.get_context("device_target") == "CPU")


class _Place(PrimitiveWithInfer):  # type: ignore[misc]
    """Directory of a step and a rank in `save_dir`: when it is called, or in a graph."""

    def __init__(self) -> None:
        super().__init__("plumbline_place")
        self.set_const_prim(True)
        self.add_prim_attr("constexpr_prim", True)

    def __call__(self, save_dir: str) -> str:
        if not isinstance(save_dir, str) or not save_dir:
            raise ValueError(f"save(): save_dir is {save_dir!r} (expected a directory)")
        if not _is_on_cpu():
            return os.path.join(save_dir, "{step}", "{rank}", "")
        rank = management.get_rank() if management.GlobalComm.INITED else 0
        return os.path.join(save_dir, f"step{_steps[0]}", f"rank{rank}", "")

    def __infer__(self, save_dir: Any) -> dict[str, Any]:
        if _is_on_cpu():
            raise _core.UnsupportedError(
                "save(): MindSpore has no TensorDump in networks that it compiles for a CPU. Use "
                "PYNATIVE_MODE without jit")
        return {"dtype": None, "shape": None, "value": self(save_dir["value"])}


_place = _Place()


def _dump(path: str, data: Any) -> None:  # MindSpore's compiler takes texts of one line alone
    if isinstance(data, dict):
        for key, value in data.items():
            _dump(f"{path}.{key}", value)
    elif isinstance(data, (list, tuple)):
        for key, value in enumerate(data):
            _dump(f"{path}.{key}", value)
    elif isinstance(data, ms.Tensor):
        ops.TensorDump()(path, data.astype(ms.float32) if data.dtype == ms.bfloat16 else data)
    elif data is not None:
        raise TypeError(f"save(): {type(data)} is no tensor, nor a list, tuple or dict of such")


def save(save_dir: str, name: str, data: Any) -> None:
    """Writes a tensor of a network to `{save_dir}/step{N}/rank{R}/{name}_{dtype}_{number}.npy`.

    Args:
        save_dir: output directory.
        name: of the value; a tensor in a container has its keys besides, "hidden.0".
        data: a tensor, or a list, tuple or dict of such; None is left out. bfloat16 is written as
            float32.

    Raises:
        TypeError: data is something else.

    Example:
        >>> save("./points", "hidden", hidden)  # doctest: +SKIP
    """
    _dump(_place(save_dir) + name, data)


def save_grad(save_dir: str, name: str, data: Any) -> Any:
    """The same of the gradient of a tensor, as `{name}_grad`: `x = save_grad("./points", "x", x)`.

    Returns:
        The tensor to go on with.
    """
    if not isinstance(data, ms.Tensor):
        raise TypeError(f"save_grad(): {type(data)} is no tensor")
    path = _place(save_dir) + name + "_grad"

    def dump(gradient: Any) -> Any:
        _dump(path, gradient)
        return gradient

    return ops.InsertGradientOf(dump)(data)


def step() -> None:
    """Ends the step: what `save()` and `save_grad()` write from here on belongs to the next one."""
    _steps[0] += 1
    if _is_on_cpu():
        return
    ms.runtime.synchronize()  # operators and graphs count for themselves
    mark = ms.Tensor([1], dtype=ms.float32)
    _run_op(ops.TensorDump(), "TensorDump", (_NEXT_STEP, mark))
    ops.tensordump(_NEXT_STEP, mark)
    ms.runtime.synchronize()
