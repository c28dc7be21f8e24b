"""One recorded call taken out of its run: its tensors, its arguments on one or two sides, and how
it is made again.

Nothing here reads or writes a file.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from plumbline.precheck_run.pytorch import DTYPES, find_api, make_dtype, make_memory_format
from plumbline.precheck_run.values import BadArgumentError, Makers, decode

# In front of the names of tensors that only the golden run has.
GOLDEN = "golden_"
# In front of the names of arguments that a call changed and did not return.
CHANGED = "changed "
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True)
class TensorName:
    """Stands in the arguments for a tensor of `Case.tensors`."""

    name: str


@dataclass(frozen=True)
class Side:
    """What one run passed to the call; tensors by name."""

    args: list[Any]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A call that can be made again."""

    type: str  # "Functional"
    api: str  # "softmax"
    target: Side
    golden: Side | None  # None: the recording stands by itself
    grads: list[TensorName | None]  # that come into the backward; empty: none was recorded
    tensors: dict[str, torch.Tensor]
    wants_grad: frozenset[str]  # names of tensors whose gradients are judged
    autocast: torch.dtype | None = None  # recorded inside a region of mixed precision
    # By name: the type that a tensor has where precision is raised.
    raised: dict[str, torch.dtype] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Of all tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors.values())

    @property
    def right(self) -> Side:
        """The side whose results are expected."""
        return self.golden or self.target


def load(request: dict[str, Any], target: memoryview, golden: memoryview) -> Case:
    """The case of a request of the program that plans calls.

    Args:
        request: {"target": REQUEST, "golden": REQUEST or None}, as executors get them.
        target, golden: the memories that their tensors lie in.

    A tensor that both sides have at the same place is the target's: only what differs otherwise,
    an argument or a type, is left to tell them apart.
    """
    tensors: dict[str, torch.Tensor] = {}
    wanted: set[str] = set()
    types: dict[str, torch.dtype] = {}
    ours = request["target"]
    loader = _Loader(target, tensors, wanted, types)
    side = _side(ours, loader)
    grads = _grads(ours, loader)
    theirs = request.get("golden")
    other = _side(theirs, _GoldenLoader(golden, tensors, wanted, types)) if theirs else None
    autocast = DTYPES[ours["autocast"]] if ours.get("autocast") else None
    return Case(ours["type"], ours["api"], side, other, grads, tensors, frozenset(wanted), autocast,
                types)


class _Loader:
    """Makes tensors of their places in memory, named after where they stand."""

    def __init__(self, memory: memoryview, tensors: dict[str, torch.Tensor], wanted: set[str],
                 types: dict[str, torch.dtype]) -> None:
        self._memory, self._tensors, self._wanted = memory, tensors, wanted
        self._types = types
        self._base, self._count = "", 0

    def value(self, base: str, value: Any) -> Any:
        """The argument `value`; the tensors in it are called `base`, `base_1`, ..."""
        self._base, self._count = base, 0
        makers: Makers = {
            "tensor": self._tensor, "dtype": make_dtype, "memory_format": make_memory_format,
            "device": lambda text: torch.device("meta" if str(text) == "meta" else "cpu"),
            "size": torch.Size,
        }
        return decode(value, makers)

    def _tensor(self, body: list[Any]) -> TensorName:
        name = self._base if self._count == 0 else f"{self._base}_{self._count}"
        self._count += 1
        return self._add(name, body)

    def _add(self, name: str, body: list[Any]) -> TensorName:
        dtype = DTYPES[body[0]]
        self._tensors[name] = self._read(body)
        self._types[name] = DTYPES[body[4]] if body[4] else dtype
        if body[3] and (dtype.is_floating_point or dtype.is_complex):
            self._wanted.add(name)
        return TensorName(name)

    def _read(self, body: list[Any]) -> torch.Tensor:
        dtype_name, shape, offset = body[:3]
        dtype, count = DTYPES[dtype_name], math.prod(shape)
        tensor = torch.empty(shape, dtype=dtype)
        if count:
            tensor.copy_(torch.frombuffer(self._memory, dtype=dtype, count=count, offset=offset)
                         .view(shape))
        return tensor


class _GoldenLoader(_Loader):
    """The golden run's tensors: the target's own where they have the same place and shape, in the
    golden run's type."""

    def _add(self, name: str, body: list[Any]) -> TensorName:
        known, dtype = self._tensors.get(name), DTYPES[body[0]]
        is_same = known is not None and list(known.shape) == list(body[1])
        if known is not None and is_same and known.dtype == dtype:
            return TensorName(name)
        added = super()._add(GOLDEN + name, body)
        if known is not None and is_same and known.is_floating_point() and dtype.is_floating_point:
            self._tensors[added.name] = known.to(dtype)
        return added


def _side(request: dict[str, Any], loader: _Loader) -> Side:
    args = [loader.value(f"arg{i}", value) for i, value in enumerate(request["args"])]
    for name, _ in request["kwargs"]:
        # Names come out of a file and go into a program.
        if not name.isidentifier() or keyword.iskeyword(name):
            raise BadArgumentError(f"{name!r} is no name of an argument")
    kwargs = {name: loader.value(name, value) for name, value in request["kwargs"]}
    if request["type"] == "Tensor" and request["api"] in ("__getitem__", "__setitem__"):
        if len(args) > 1 and type(args[1]) is list:  # what was a tuple is a list in a recording
            args[1] = tuple(args[1])
    return Side(args, kwargs)


def _grads(request: dict[str, Any], loader: _Loader) -> list[TensorName | None]:
    return [None if value is None else loader.value(f"grad{i}", value)
            for i, value in enumerate(request["grads"] or [])]


def names_in(value: Any) -> Iterator[str]:
    """Names of the tensors in an argument, depth first."""
    if isinstance(value, TensorName):
        yield value.name
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from names_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from names_in(item)


def used_names(case: Case) -> set[str]:
    """Names of the tensors that some side passes, and of the gradients that come in."""
    sides = [case.target] + ([case.golden] if case.golden else [])
    used = {name for side in sides for name in names_in([side.args, side.kwargs])}
    return used | {grad.name for grad in case.grads if grad is not None}


@dataclass(frozen=True)
class Setting:
    """How a call is made: where, and of which type its floating tensors are."""

    device: str = "cpu"
    dtype: torch.dtype | None = None  # None: as recorded


@dataclass(frozen=True)
class Made:
    """What came of a call."""

    # On the CPU, by name: "output.0", "gradient of arg0", "changed arg3" (in place).
    results: dict[str, torch.Tensor]
    is_in_place: bool  # it returned nothing: its first argument, which it changed, is the output
    is_random: bool  # it drew random numbers (known on the CPU alone)


def run(case: Case, side: Side, setting: Setting) -> Made:
    """Makes the call. Raises whatever it raises."""
    given: dict[str, torch.Tensor] = {}
    leaves: dict[str, torch.Tensor] = {}

    def make(name: str) -> torch.Tensor:
        if name not in given:
            tensor = raised(case.tensors[name], setting.dtype).to(setting.device, copy=True)
            if case.grads and name in case.wants_grad:
                leaves[name] = tensor.requires_grad_()
                tensor = tensor.clone()
            given[name] = tensor
        return given[name]

    args = [_filled(value, make, setting) for value in side.args]
    kwargs = {name: _filled(value, make, setting) for name, value in side.kwargs.items()}
    torch.manual_seed(0)
    state = torch.get_rng_state()
    is_mixed = case.autocast is not None and setting.dtype is None
    with torch.autocast(torch.device(setting.device).type, case.autocast, enabled=is_mixed):
        output = find_api(case.type, case.api)(*args, **kwargs)
    is_random = not torch.equal(state, torch.get_rng_state())
    is_in_place = output is None and bool(args)
    outputs = list(_tensors(args[0] if is_in_place else output))
    results = {f"output.{i}": tensor.detach().cpu() for i, tensor in enumerate(outputs)}
    results |= {f"{CHANGED}{name.removeprefix(GOLDEN)}": tensor.detach().cpu()
                for name, tensor in given.items() if not any(tensor is one for one in outputs)
                and _is_changed(tensor, raised(case.tensors[name], setting.dtype))}
    if case.grads and leaves:
        pairs = [(tensor, raised(case.tensors[grad.name], setting.dtype).to(setting.device))
                 for tensor, grad in zip(outputs, case.grads, strict=False)
                 if grad is not None and tensor.requires_grad]
        found = torch.autograd.grad([tensor for tensor, _ in pairs], list(leaves.values()),
                                    [grad.to(tensor.dtype) for tensor, grad in pairs],
                                    allow_unused=True)
        results |= {f"gradient of {name.removeprefix(GOLDEN)}": grad.detach().cpu()
                    for name, grad in zip(leaves, found, strict=True) if grad is not None}
    return Made(results, is_in_place, is_random)


def _is_changed(tensor: torch.Tensor, before: torch.Tensor) -> bool:
    """By its elements: running statistics are written behind the back of autograd's versions."""
    after = tensor.detach().cpu()
    is_same = (after == before) | ((after != after) & (before != before))
    return not bool(is_same.all())


def raised(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """The tensor in `dtype`, if both are floating; complex ones in complex128 then."""
    if dtype is None:
        return tensor
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _filled(value: Any, make: Any, setting: Setting) -> Any:
    """An argument with its tensors; devices and floating types are those of the setting."""
    if isinstance(value, TensorName):
        return make(value.name)
    if isinstance(value, torch.device):
        return value if value.type == "meta" else torch.device(setting.device)
    if setting.dtype is not None and isinstance(value, torch.dtype) and value in _FLOATS:
        return setting.dtype
    if type(value) in (list, tuple):
        return type(value)(_filled(item, make, setting) for item in value)
    if type(value) is dict:
        return {key: _filled(item, make, setting) for key, item in value.items()}
    return value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (bool, int, float)):
        yield torch.tensor(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def with_sides(case: Case, change: Any) -> Case:
    """The case with `change(side)` in the place of each side."""
    golden = change(case.golden) if case.golden else None
    return replace(case, target=change(case.target), golden=golden)
