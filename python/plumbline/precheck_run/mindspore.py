"""Runs the calls of a pre-check with MindSpore, or with MindTorch, which is PyTorch's names on it.

They are the side under test: the benchmark of a MindSpore call is PyTorch on the CPU, in executors
of its own. Calls run in PyNative mode. A gradient is that of MindSpore's own GradOperation, of
every argument that needs one, with the recorded gradients of the outputs.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import mint, ops

from plumbline.precheck_run import native_torch
from plumbline.precheck_run.executor import Framework, Place, Runner, Slot, one_line
from plumbline.precheck_run.values import BadArgumentError, decode, encode, leaves

# Types of elements by their plain names, and the NumPy type of the same bits.
_BITS: dict[str, str] = {
    "bool": "bool", "uint8": "uint8", "int8": "int8", "int16": "int16", "int32": "int32",
    "int64": "int64", "float16": "float16", "bfloat16": "uint16", "float32": "float32",
    "float64": "float64", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
    "complex64": "complex64", "complex128": "complex128",
}
_DTYPES: dict[str, Any] = {
    name: getattr(ms, "bool_" if name == "bool" else name)
    for name in _BITS
    if hasattr(ms, "bool_" if name == "bool" else name)
}
_NAMES: dict[Any, str] = {dtype: name for name, dtype in _DTYPES.items()}
_OWNERS: dict[str, Any] = {
    "Mint": mint, "MintFunctional": mint.nn.functional, "Tensor": ms.Tensor, "Functional": ops,
}
# MindSpore's names of devices by the names that plumb's users give.
_TARGETS = {"cpu": "CPU", "npu": "Ascend", "ascend": "Ascend", "cuda": "GPU", "gpu": "GPU"}
_DEVICES = {"CPU": "cpu", "Ascend": "npu", "GPU": "cuda"}
_OUT_OF_MEMORY = re.compile(r"out of memory|memory (isn't|is not) enough|alloc\w* memory", re.I)


class MindSporeFramework:
    """MindSpore under test, and PyTorch as its benchmark; see executor.Framework.

    Args:
        load_owners: finds what calls are looked up in, by their types.
        load_bench: finds PyTorch.
    """

    def __init__(
        self, load_owners: Callable[[], dict[str, Any]], load_bench: Callable[[], Framework]
    ) -> None:
        self.version = str(ms.__version__)
        self._load_owners = load_owners
        self._load_bench = load_bench

    def usable_device(self, device: str) -> str:
        """The name of the device: "auto" is the one that this MindSpore was built for."""
        if device == "auto":
            target = str(ms.get_context("device_target"))
            device = _DEVICES.get(target, target.lower())
        _take_device(device)
        return device

    def device_name(self, device: str) -> str:
        """MindSpore says it of some devices only, and of each by another function."""
        return ""

    def missing(self, inventory: Iterable[str]) -> list[str]:
        """Those of "Mint.add", ... that this MindSpore does not have."""
        return [name for name in inventory if not self._has(name)]

    def _has(self, name: str) -> bool:
        kind, _, api = name.partition(".")
        try:
            find_api(self._load_owners(), kind, api)
        except LookupError:
            return False
        return True

    def open(self, place: Place) -> Runner:
        """In a new executor: takes the device."""
        if place.is_bench:
            return self._load_bench().open(place)
        owners = self._load_owners()
        _take_device(place.device)
        # The results of each call are read at once: operators may as well run when they are called.
        # Said before the first operator, and only by versions that have it.
        launch_blocking = getattr(getattr(ms, "runtime", None), "launch_blocking", None)
        if launch_blocking is not None:
            launch_blocking()
        return MindSporeRunner(place, owners)


def load(device: str) -> MindSporeFramework:
    """MindSpore and PyTorch, once for all executors; which devices there are is found out later."""
    bench = native_torch.load("cpu")
    return MindSporeFramework(lambda: _OWNERS, lambda: bench)


def _take_device(name: str) -> None:
    """The device becomes this process's own, and holds a tensor.

    Raises:
        RuntimeError: MindSpore has no such device here.
    """
    kind, _, number = name.partition(":")
    target = _TARGETS.get(kind.lower())
    if target is None:
        expected = ", ".join(_TARGETS)
        raise RuntimeError(f"device {name}: MindSpore has none of this name (expected {expected})")
    ms.set_context(mode=ms.PYNATIVE_MODE)
    if hasattr(ms, "set_device"):  # since MindSpore 2.5
        ms.set_device(target, int(number) if number and target != "CPU" else None)
    elif number and target != "CPU":
        ms.set_context(device_target=target, device_id=int(number))
    else:
        ms.set_context(device_target=target)
    if (ms.Tensor(np.ones(1, np.float32)) + 0).asnumpy().item() != 1:
        raise RuntimeError(f"device {name}: a tensor does not come back from it")


def find_api(owners: dict[str, Any], kind: str, api: str) -> Callable[..., Any]:
    """What `api` of `kind` ("Mint", "MintFunctional", "Tensor", ...) names here.

    Raises:
        LookupError: nothing; says where it was looked for.
    """
    if kind not in owners:
        raise LookupError(f"calls of the type {kind} are not known")
    found = owners[kind]
    for part in api.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise LookupError(f"MindSpore {ms.__version__} has no {kind}.{api}")
    if not callable(found):
        raise LookupError(f"{kind}.{api} of MindSpore {ms.__version__} cannot be called")
    return found  # type: ignore[no-any-return]


class MindSporeRunner:
    """Runs calls in one executor; see executor.Runner."""

    def __init__(self, place: Place, owners: dict[str, Any]) -> None:
        self.is_broken = False
        self.bytes_seen = 0
        self._is_cpu = place.device.partition(":")[0] == "cpu"
        self._owners = owners
        self._slots = [Slot(place, index) for index in range(place.slots)]

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Forward and, if gradients come, backward; either may be skipped for a reason."""
        slot = self._slots[request["slot"]]
        slot.begin_results()
        call = _Call(request, slot)
        results = _Results(slot)
        answer: dict[str, Any] = {"backward": None}
        function, output = None, None
        try:
            function = find_api(self._owners, request["type"], request["api"])
            output = call.forward(function)
            answer["forward"] = {"value": results.of(output)}
        except Exception as error:  # it may appear only when results are read
            answer["forward"], output = {"skip": self._cause(error)}, None
        if request["grads"] is not None:
            answer["backward"] = self._backward(call, function, output, results)
        self.bytes_seen += call.bytes_read + results.bytes_written
        return answer

    def _backward(
        self, call: _Call, function: Callable[..., Any] | None, output: Any, results: _Results
    ) -> dict[str, Any]:
        if function is None or output is None:
            return {"skip": ["backward-skipped", "the forward gave nothing"]}
        try:
            return {"value": results.of(call.backward(function, output))}
        except _NoBackward as reason:
            return {"skip": ["backward-skipped", str(reason)]}
        except Exception as error:
            return {"skip": self._cause(error)}

    def _cause(self, error: Exception) -> list[str]:
        """[cause, text] of an exception, by the words of the result files."""
        if isinstance(error, BadArgumentError):
            return ["bad-argument", str(error)]
        if type(error) is LookupError:
            return ["not-in-inventory", str(error)]
        text = one_line(error)
        if not self._is_cpu:
            self._look_after_device()
        if isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(text):
            return ["out-of-memory", text]
        return ["device-failed", text]

    def _look_after_device(self) -> None:
        """Finds out whether the device still works."""
        try:
            self.is_broken = (ms.Tensor(np.ones(1, np.float32)) + 0).asnumpy().item() != 1
        except Exception:
            self.is_broken = True


class _NoBackward(Exception):
    """Why there is no backward to run."""


class _Call:
    """One request: its arguments, forward and backward."""

    def __init__(self, request: dict[str, Any], slot: Slot) -> None:
        self._request = request
        self._slot = slot
        # Per tensor among the arguments: the one that stands in for it in a backward, and whether
        # its gradient is wanted.
        self._tensors: list[Any] = []
        self._wanted: list[bool] = []
        self._replacements: Iterator[Any] | None = None
        self._makers: dict[str, Callable[[Any], Any]] = {
            "tensor": self._argument, "dtype": _make_dtype, "size": tuple,
        }
        self.bytes_read = 0

    def forward(self, function: Callable[..., Any]) -> Any:
        """What the call returns."""
        self._tensors, self._wanted = [], []
        args, kwargs = self._arguments()
        return function(*args, **kwargs)

    def backward(self, function: Callable[..., Any], output: Any) -> list[Any]:
        """Per tensor among the arguments its gradient, None where none is wanted."""
        # The forward may have changed them in place.
        self._tensors, self._wanted = [], []
        self._arguments()
        tensors, wanted = self._tensors, self._wanted
        if not any(wanted):
            raise _NoBackward("no argument needs a gradient")
        incoming = [self._plain(leaf["tensor"]) if isinstance(leaf, dict) else None
                    for value in self._request["grads"] for leaf in leaves(value)]
        sens = _incoming(list(_tensors_in(output)), incoming)

        def call(*given: Any) -> Any:
            values = iter(given)
            self._replacements = iter(
                [next(values) if is_wanted else tensor
                 for tensor, is_wanted in zip(tensors, wanted, strict=True)]
            )
            try:
                args, kwargs = self._arguments()
            finally:
                self._replacements = None
            found = tuple(_tensors_in(function(*args, **kwargs)))
            return found if len(found) != 1 else found[0]

        given = [tensor for tensor, is_wanted in zip(tensors, wanted, strict=True) if is_wanted]
        gradient = ops.GradOperation(get_all=True, sens_param=True)(call)
        found = gradient(*given, sens[0] if len(sens) == 1 else tuple(sens))
        gradients = iter(found if isinstance(found, (tuple, list)) else (found,))
        return [next(gradients) if is_wanted else None for is_wanted in wanted]

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        request, makers = self._request, self._makers
        args = [decode(value, makers) for value in request["args"]]
        return args, {name: decode(value, makers) for name, value in request["kwargs"]}

    def _argument(self, body: list[Any]) -> Any:
        if self._replacements is not None:
            return next(self._replacements)
        tensor = self._plain(body)
        self._tensors.append(tensor)
        self._wanted.append(bool(body[3]))
        return tensor

    def _plain(self, body: list[Any]) -> Any:
        """A copy of the tensor at a place in the slot's memory."""
        name, shape, offset = body[:3]
        if name not in _DTYPES:
            raise BadArgumentError(
                f"MindSpore {ms.__version__} has no elements of the type {name}"
            )
        bits = np.dtype(_BITS[name])
        count = math.prod(shape)
        array = np.empty(shape, bits)
        if count:
            size = count * bits.itemsize
            self.bytes_read += size
            memory = self._slot.inputs(offset + size)
            array[...] = np.frombuffer(memory, bits, count, offset).reshape(shape)
        if name == "bfloat16":  # the upper half of a float32
            array = (array.astype(np.uint32) << 16).view(np.float32)
            return ms.Tensor(array, dtype=ms.bfloat16)
        return ms.Tensor(array)


def _make_dtype(text: str) -> Any:
    """mindspore.float16 of "torch.float16", PyTorch's name, or of MindSpore's own."""
    found = _DTYPES.get(text.rpartition(".")[2].lower().removesuffix("_"))
    if found is None:
        raise BadArgumentError(f"MindSpore {ms.__version__} has no dtype {text}")
    return found


def _is_floating(tensor: Any) -> bool:
    return "float" in _NAMES.get(tensor.dtype, "")


def _tensors_in(value: Any) -> Iterable[Any]:
    """The tensors in a result, depth first."""
    if isinstance(value, ms.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)


def _incoming(outputs: list[Any], gradients: list[Any]) -> list[Any]:
    """One gradient per output: the recorded one at its place, else of its shape; else zeros.

    A recording has one per output, or leaves out outputs without a gradient, as of indices.
    """
    if not outputs:
        raise _NoBackward("no output is a tensor")
    recorded = [gradient for gradient in gradients if gradient is not None]
    if not recorded:
        raise _NoBackward("no gradient was recorded")
    fits = len(gradients) == len(outputs) and all(
        gradient is None or gradient.shape == output.shape
        for gradient, output in zip(gradients, outputs, strict=True)
    )
    if not fits:
        gradients = []
        rest = iter(recorded)
        following = next(rest)
        for output in outputs:
            taken = (following is not None and _is_floating(output)
                     and following.shape == output.shape)
            gradients.append(following if taken else None)
            following = next(rest, None) if taken else following
        if following is not None:
            raise _NoBackward(f"a gradient of shape {tuple(following.shape)} fits no output")
    return [
        _zeros(output) if gradient is None else gradient
        for gradient, output in zip(gradients, outputs, strict=True)
    ]


def _zeros(output: Any) -> Any:
    shape = tuple(output.shape)
    return ms.Tensor(np.zeros(shape, np.float32), dtype=output.dtype)


class _Results:
    """Writes results into the memory of a slot, and says what they are."""

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self.bytes_written = 0

    def of(self, value: Any) -> Any:
        """JSON of what a direction returned."""
        return encode(value, self._tensor, self._special)

    def _tensor(self, value: Any) -> dict[str, Any] | None:
        if isinstance(value, np.ndarray):
            known = value.dtype.name in _DTYPES
            return self._write(value.dtype.name, value) if known else None
        if not isinstance(value, ms.Tensor):
            return None
        name = _NAMES.get(value.dtype)
        if name is None:
            return {"other": f"tensor of {value.dtype}"}
        if name != "bfloat16":
            return self._write(name, value.asnumpy())
        wide = np.ascontiguousarray(value.astype(ms.float32).asnumpy())
        bits = (wide.view(np.uint32) >> 16).astype(np.uint16).reshape(wide.shape)
        return self._write(name, bits)

    def _write(self, name: str, array: Any) -> dict[str, Any]:
        """The elements of an array, as those of the type `name`."""
        offset = 0
        if array.size:
            self.bytes_written += array.nbytes
            memory, offset = self._slot.take(array.nbytes)
            target = np.frombuffer(memory, array.dtype, array.size, offset)
            target.reshape(array.shape)[...] = array
        return {"tensor": [name, [operator.index(size) for size in array.shape], offset, False,
                           None]}

    def _special(self, value: Any) -> dict[str, Any] | None:
        name = _NAMES.get(value) if isinstance(value, ms.Type) else None
        return {"dtype": f"torch.{name}"} if name else None
