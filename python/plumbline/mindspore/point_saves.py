"""`save()` and `save_grad()`: values inside a network, written by MindSpore's TensorDump.

Both are compiled with the network that calls them. MindSpore counts the steps; for a CPU, where it
does not and no compiled network has TensorDump, they are counted here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
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
    """Where to write in `save_dir`: a writer when it is called, in a graph the path before keys."""

    def __init__(self) -> None:
        super().__init__("plumbline_place")
        self.set_const_prim(True)
        self.add_prim_attr("constexpr_prim", True)

    def __call__(self, save_dir: str | os.PathLike[str], name: str, end: str) -> _Writer:
        place, name = _place_in(save_dir), _inside(name)
        return _Writer(os.fspath(save_dir), place, place + name + end)

    def __infer__(self, save_dir: Any, name: Any, end: Any) -> dict[str, Any]:
        if _is_on_cpu():
            raise _core.UnsupportedError(
                "save(): MindSpore has no TensorDump in networks that it compiles for a CPU. Use "
                "PYNATIVE_MODE without jit")
        path = _place_in(save_dir["value"]) + _inside(name["value"]) + end["value"]
        return {"dtype": None, "shape": None, "value": path}


class _Key(PrimitiveWithInfer):  # type: ignore[misc]
    """The path of what a container in a graph has under a key."""

    def __init__(self) -> None:
        super().__init__("plumbline_key")
        self.set_const_prim(True)
        self.add_prim_attr("constexpr_prim", True)

    def __call__(self, path: str, key: Any) -> str:
        return f"{path}.{_inside(str(key))}"

    def __infer__(self, path: Any, key: Any) -> dict[str, Any]:
        return {"dtype": None, "shape": None, "value": self(path["value"], key["value"])}


def _place_in(save_dir: Any) -> str:
    if not isinstance(save_dir, (str, os.PathLike)) or not str(save_dir):
        raise ValueError(f"save(): save_dir is {save_dir!r} (expected a directory)")
    if not _is_on_cpu():
        return os.path.join(save_dir, "{step}", "{rank}", "")
    rank = management.get_rank() if management.GlobalComm.INITED else 0
    return os.path.join(save_dir, f"step{_steps[0]}", f"rank{rank}", "")


def _inside(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"save(): name is {name!r} (expected a text)")
    if ".." in name.split("/") or "\0" in name:
        raise ValueError(f"save(): {name!r} leaves the directory of the step")
    return name


class _Writer:
    """Writes values where no graph is compiled. What cannot be written is told, once a directory.

    Args:
        save_dir: as the user gave it.
        place: its directory of the step and the rank.
        path: of the files, without what MindSpore puts at the end.
    """

    def __init__(self, save_dir: str, place: str, path: str) -> None:
        self._save_dir, self._place, self._path = save_dir, place, path

    def write(self, data: Any) -> None:
        found = list(self._tensors(self._path, data, ()))  # refused before anything is written
        try:
            os.makedirs(self._place if _is_on_cpu() else self._save_dir, exist_ok=True)
            for path, tensor in found:
                ops.TensorDump()(path, _of_a_file(tensor))
        except (OSError, RuntimeError) as error:
            if self._save_dir not in _unwritable:
                _unwritable.add(self._save_dir)
                reason = error.strerror if isinstance(error, OSError) else str(error)
                _core.log_warning(
                    f"save(): {self._place}: {reason}. Values of this directory that cannot be "
                    "written are left out")

    def _tensors(self, path: str, data: Any, around: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
        if isinstance(data, (dict, list, tuple)):
            if id(data) in around:
                raise ValueError("save(): a container that holds itself")
            items = data.items() if isinstance(data, dict) else enumerate(data)
            for key, value in items:
                yield from self._tensors(_key(path, key), value, (*around, id(data)))
        elif isinstance(data, ms.Tensor):
            yield path, data
        elif data is not None:
            raise TypeError(
                f"save(): {type(data)} is no tensor, nor a list, tuple or dict of such")


_place, _key = _Place(), _Key()
_unwritable: set[str] = set()  # that were told


def _of_a_file(tensor: Any) -> Any:
    return tensor.astype(ms.float32) if tensor.dtype == ms.bfloat16 else tensor


def _dump(path: str, data: Any) -> None:  # MindSpore's compiler takes texts of one line alone
    if isinstance(data, dict):
        for key, value in data.items():
            _dump(_key(path, key), value)
    elif isinstance(data, (list, tuple)):
        for key, value in enumerate(data):
            _dump(_key(path, key), value)
    elif isinstance(data, ms.Tensor):
        ops.TensorDump()(path, _of_a_file(data))
    elif data is not None:
        raise TypeError(f"save(): {type(data)} is no tensor, nor a list, tuple or dict of such")


def _save(place: Any, data: Any) -> None:
    if isinstance(place, str):  # in a graph
        _dump(place, data)
    else:
        place.write(data)


def save(save_dir: str | os.PathLike[str], name: str, data: Any) -> None:
    """Writes a tensor of a network to `{save_dir}/step{N}/rank{R}/{name}_{dtype}_{number}.npy`.

    What cannot be written is left out, with one warning a directory, and the training goes on.

    Args:
        save_dir: output directory.
        name: of the value; a tensor in a container has its keys besides, "hidden.0". It may hold
            directories, but stays inside of that of the step.
        data: a tensor, or a list, tuple or dict of such; None is left out. bfloat16 is written as
            float32.

    Raises:
        TypeError: data is something else, or the name is no text.
        ValueError: no directory, a name that leaves it, or a container that holds itself.

    Example:
        >>> save("./points", "hidden", hidden)  # doctest: +SKIP
    """
    _save(_place(save_dir, name, ""), data)


def save_grad(save_dir: str | os.PathLike[str], name: str, data: Any) -> Any:
    """The same of the gradient of a tensor, as `{name}_grad`: `x = save_grad("./points", "x", x)`.

    Returns:
        The tensor to go on with.
    """
    if not isinstance(data, ms.Tensor):
        raise TypeError(f"save_grad(): {type(data)} is no tensor")
    place = _place(save_dir, name, "_grad")

    def dump(gradient: Any) -> Any:
        _save(place, gradient)
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
