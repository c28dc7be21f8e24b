"""Recording API calls: probes in place of the functions named in apis.json, while a window is open.

What is replaced are attributes; a reference taken before the window opened is not seen. Outside
the window nothing is replaced.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import mindspore as ms
from mindspore import mint, ops
from mindspore.ops import Primitive

from plumbline import _core
from plumbline.api_hooks import ApiHooksBase
from plumbline.api_list import present_apis, read_api_list
from plumbline.mindspore import mindtorch
from plumbline.mindspore.distributed import DistributedHooks
from plumbline.mindspore.jit import JitCalls


def wrapped_apis() -> Iterator[tuple[str, str, object, str]]:
    """Yields (prefix, name, owner, attribute) for each listed API that this MindSpore has."""
    if mindtorch.is_there():
        yield from mindtorch.apis()
        return
    owners = [
        ("ops", "Functional", ops),
        ("tensor", "Tensor", ms.Tensor),
        ("mint.ops", "Mint", mint),
        ("mint.nn.functional", "MintFunctional", mint.nn.functional),
    ]
    for prefix, name, owner, attribute in present_apis(read_api_list(__file__), owners):
        yield prefix, name.rpartition(".")[2], owner, attribute


def _is_tensor_class(owner: object) -> bool:
    return isinstance(owner, type) and issubclass(owner, ms.Tensor)


class ApiHooks(ApiHooksBase):
    """The probes of one process and the places where they are installed."""

    def __init__(self, jit: JitCalls) -> None:
        super().__init__()
        self._jit = jit
        self._primitives = _core.PatchSet()
        self._cells: list[Any] = []

    def use_cells(self, cells: Iterable[Any]) -> None:
        """From the next `install` on, the primitives that `cells` hold are recorded."""
        if self._is_installed:
            return
        self._cells = list(cells)
        self._primitives = _core.PatchSet()

    def _begin(self, recorder: _core.Recorder, with_regions: bool) -> None:
        """MindSpore has no hooks around the optimizer, and so no regions."""
        if len(self._primitives) == 0:
            self._find_primitives(recorder)
        self._jit.join(self, recorder)

    def _end(self) -> None:
        self._jit.leave(self)

    def _build(self, recorder: _core.Recorder) -> None:
        self._primitives = _core.PatchSet()
        self._others = [DistributedHooks(recorder)]
        for prefix, name, owner, attribute in wrapped_apis():
            static: Any = inspect.getattr_static(owner, attribute)
            full, original = f"{prefix}.{name}", getattr(owner, attribute)
            if isinstance(static, staticmethod):
                function: Any = recorder.probe(original, full, False)
                probe: Any = staticmethod(function)
            else:
                probe = recorder.probe(original, full, _is_tensor_class(owner))
            self._patches.add(owner, attribute, probe)

    def _find_primitives(self, recorder: _core.Recorder) -> None:
        """Every attribute of a cell that is a primitive: `Primitive.{attribute}.{Class}`."""
        for cell in self._cells:
            for attribute, value in list(vars(cell).items()):
                if isinstance(value, Primitive):
                    name = f"Primitive.{attribute}.{type(value).__name__}"
                    self._primitives.add(cell, attribute, recorder.probe(value, name, False))

    def _put(self) -> None:
        super()._put()
        self._primitives.apply()

    def _take(self) -> None:
        self._primitives.restore()
        super()._take()
