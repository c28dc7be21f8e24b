"""Runs the calls of a pre-check with PyTorch: on the device under test, or raised on the CPU.

Every argument is a copy of its own, because calls change arguments in place. A tensor that needs a
gradient is a clone that autograd sees, so that it may be changed in place too, and what is returned
is the gradient of what it was cloned from. Nothing is detached: metadata of a detached tensor
cannot be changed, which set_() and transpose_() do.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import operator
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from plumbline.precheck_run.executor import Place, Slot, one_line
from plumbline.precheck_run.values import BadArgumentError, Makers, decode, encode, leaves

# Types of elements that the other side knows, by their plain names; older versions lack some.
DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
        "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
        "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    )
    if hasattr(torch, name)
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
# dtype.itemsize came with 2.1.
_SIZES = {dtype: torch.empty((), dtype=dtype).element_size() for dtype in _NAMES}
_OWNERS: dict[str, Any] = {
    "Functional": torch.nn.functional, "Tensor": torch.Tensor, "Torch": torch,
    # MindSpore's functions of the same names, to which this is the benchmark.
    "Mint": torch, "MintFunctional": torch.nn.functional,
}
# What a kernel without int32 complains of; such a call is run once more with int64.
_WANTS_INT64 = re.compile(r"Long|\bInt\b|\blong\b|int64|int32")
_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|cannot allocate memory", re.I)
# Functions that write running statistics, arguments of one dimension, behind autograd's back: no
# version counts it.
_WRITES_UNCOUNTED = frozenset({
    "batch_norm", "instance_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm",
    "batch_norm_update_stats", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts",
})
# A gradient that embedding(sparse=True) gives is made dense up to this size.
_DENSE_LIMIT_BYTES = 1 << 30


class TorchFramework:
    """PyTorch with the backend that one device needs; see executor.Framework."""

    def __init__(self) -> None:
        self.version = str(torch.__version__).split("+")[0]

    def usable_device(self, device: str) -> str:
        """The name of the device: "auto" is an NPU, else a CUDA device, else the CPU."""
        if device == "auto":
            for name in ("npu", "cuda"):
                backend = getattr(torch, name, None)
                if backend is not None and backend.is_available():
                    return name
            return "cpu"
        _take_device(device)
        return device

    def device_name(self, device: str) -> str:
        """As the backend says it."""
        backend = getattr(torch, torch.device(device).type, None)
        name = getattr(backend, "get_device_name", None)
        if name is None or device == "cpu":
            return ""
        try:
            return str(name())
        except (RuntimeError, TypeError, NotImplementedError):
            return ""  # of a backend that says it otherwise or not at all

    def missing(self, inventory: Iterable[str]) -> list[str]:
        """Those of "Functional.conv2d", ... that this PyTorch does not have."""
        absent = []
        for name in inventory:
            kind, _, api = name.partition(".")
            try:
                find_api(kind, api)
            except LookupError:
                absent.append(name)
        return absent

    def open(self, place: Place) -> TorchRunner:
        """In a new executor: takes the device."""
        torch.set_num_threads(place.threads)
        warnings.simplefilter("ignore")  # a call under test warns whom it likes
        return TorchRunner(place, _take_device("cpu" if place.is_bench else place.device))


def load(device: str) -> TorchFramework:
    """PyTorch, and what brings the backend of `device`.

    Raises:
        RuntimeError: there is no such backend.
    """
    if device in ("auto", "npu") or device.startswith("npu:"):
        try:
            importlib.import_module("torch_npu")
        except ImportError as error:
            if device != "auto":
                raise RuntimeError(f"device {device}: torch_npu cannot be imported "
                                   f"({error})") from error
    elif device.partition(":")[0] != "cpu":
        _import_backend(device)
    return TorchFramework()


def _import_backend(device: str) -> None:
    """Makes torch know the type of a device; a module torch_NAME may bring it."""
    name = device.partition(":")[0]
    with contextlib.suppress(RuntimeError):
        torch.device(device)
        return
    try:
        importlib.import_module(f"torch_{name}")
    except ImportError as error:
        raise RuntimeError(f"device {device}: PyTorch {torch.__version__} has no such backend, and "
                           f"torch_{name} cannot be imported ({error})") from error


def _take_device(name: str) -> torch.device:
    """The device, current in this process and proved to hold a tensor."""
    device = torch.device(name)
    if device.type != "cpu":
        set_device = getattr(getattr(torch, device.type, None), "set_device", None)
        if device.index is not None and set_device is not None:
            set_device(device)
        set_compile_mode = getattr(getattr(torch, device.type, None), "set_compile_mode", None)
        if set_compile_mode is not None:  # of an NPU, where the default depends on the model
            set_compile_mode(jit_compile="plumbline_jit_compile" in sys._xoptions)
        if torch.ones(1, device=device).cpu().item() != 1:
            raise RuntimeError("a tensor does not come back from it")
    return device


def find_api(kind: str, api: str) -> Callable[..., Any]:
    """What `api` of `kind` ("Functional", "Tensor", "Torch", "Aten", "NPU") names here.

    Raises:
        LookupError: nothing; says where it was looked for.
    """
    if kind in ("Aten", "NPU"):
        return _find_operator(kind, api)
    if kind == "Functional" and api == "flash_attention_score":
        # MindSpore's returns the attention alone, the reference function also its maxima and sums.
        attention = _find_operator("NPU", api)
        return lambda *args, **kwargs: attention(*args, **kwargs)[0]
    found: Any = torch._VF if kind == "VF" else _OWNERS.get(kind)
    if found is None:
        raise LookupError(f"calls of the type {kind} are not known")
    for part in api.split("."):
        found = getattr(found, part, None)
        # Modules that a module of torch has imported are not its own.
        module = getattr(found, "__spec__", None)
        if found is None or (module is not None and module.name.split(".")[0] != "torch"):
            raise LookupError(f"PyTorch {torch.__version__} has no {kind}.{api}")
    if not callable(found):
        raise LookupError(f"{kind}.{api} of PyTorch {torch.__version__} cannot be called")
    return found  # type: ignore[no-any-return]


def _find_operator(kind: str, api: str) -> Callable[..., Any]:
    """An ATen operator or a vendor's, by the reference functions first."""
    reference = references()
    found: Callable[..., Any] | None = None if reference is None else reference.find(api)
    if found is not None:
        return found
    if kind == "NPU":
        raise LookupError(f"there is no reference function for {api}")
    return _operator_of("aten", api)


def _operator_of(namespace: str, api: str) -> Callable[..., Any]:
    found: Any = getattr(torch.ops, namespace)
    for part in api.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise LookupError(f"torch.ops.{namespace} has no {api}")
    return found  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=1)
def references() -> Any:
    """plumbline.precheck_run.reference; None in a package without its native part."""
    try:
        return importlib.import_module("plumbline.precheck_run.reference")
    except ImportError:
        return None


class TorchRunner:
    """Runs calls in one executor; see executor.Runner."""

    def __init__(self, place: Place, device: torch.device) -> None:
        self.is_broken = False
        self.bytes_seen = 0
        self._is_bench = place.is_bench
        self._device = device
        self._slots = [Slot(place, index) for index in range(place.slots)]
        self._threads = place.threads
        self._apis: dict[tuple[str, str], _Api] = {}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Forward and, if gradients come, backward; either may be skipped for a reason."""
        slot = self._slots[request["slot"]]
        slot.begin_results()
        results = _Results(slot)
        grads = None if request.get("only_forward") else request["grads"]
        # Whatever draws random numbers draws the same ones on every machine and in any order.
        _seed(zlib.crc32(request["name"].encode()), self._device)
        answer: dict[str, Any] = {"forward": None, "backward": None}
        try:
            api = self._find(request["type"], request["api"])
            side = _Side(self._is_bench, torch.device("cpu") if api.is_on_host else self._device)
            call = _Call(request, slot, side, wants_grad=grads is not None)
            output = call.forward(api)
            answer["forward"] = results.of(call.compared(api, output))
            arguments = call.arguments_after(api, output, results)
            if arguments is not None:
                answer["arguments"] = arguments
        except Exception as error:
            answer["forward"] = {"skip": self._cause(error)}
            if grads is not None:
                answer["backward"] = {"skip": ["backward-skipped", "the forward failed"]}
            return answer
        if grads is not None:
            answer["backward"] = self._backward(call, grads, output, results)
        if call.note:
            answer["note"] = call.note
        if request.get("report_overflow"):
            answer["overflow"] = {
                direction: _has_overflow(answer[direction], slot)
                for direction in ("forward", "backward")
            }
        self.bytes_seen += call.bytes_read + results.bytes_written
        return answer

    def _backward(
        self, call: _Call, grads: list[Any], output: Any, results: _Results
    ) -> dict[str, Any]:
        try:
            if call.wants_node_gradients:
                return results.of(call.node_gradients(output, grads))
            return results.of(call.backward(output, grads))
        except _NoBackward as reason:
            return {"skip": ["backward-skipped", str(reason)]}
        except Exception as error:
            return {"skip": self._cause(error)}

    def _find(self, kind: str, name: str) -> _Api:
        found = self._apis.get((kind, name))
        if found is None:
            is_npu = self._device.type == "npu" and not self._is_bench
            function = _vendor_operator(kind, name) if is_npu else None
            if function is None:
                function = find_api(kind, name)
            found = self._apis[kind, name] = _Api(kind, name, function)
            if found.is_on_host:
                references().set_threads(self._threads)
        return found

    def _cause(self, error: Exception) -> list[str]:
        """[cause, text] of an exception, by the words of the result files."""
        text = one_line(error)
        if isinstance(error, BadArgumentError):
            return ["bad-argument", str(error)]
        if isinstance(error, LookupError) and type(error) is LookupError:
            return ["not-in-inventory", str(error)]
        is_memory = isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(text) is not None
        if self._device.type != "cpu" and not self._is_bench:
            self._look_after_device(is_memory)
        if is_memory:
            return ["out-of-memory", text]
        return ["cpu-failed" if self._is_bench else "device-failed", text]

    def _look_after_device(self, is_memory: bool) -> None:
        """Gives cached memory back, and finds out whether the device still works."""
        empty_cache = getattr(getattr(torch, self._device.type, None), "empty_cache", None)
        try:
            if is_memory and empty_cache is not None:
                empty_cache()
            torch.ones(1, device=self._device).cpu()
        except Exception:
            self.is_broken = True


def _vendor_operator(kind: str, api: str) -> Callable[..., Any] | None:
    """On an NPU: the vendor's own operator, if this is one."""
    if kind == "NPU":
        found = getattr(importlib.import_module("torch_npu"), api, None)
        return found or _operator_of("npu", api)
    if kind == "Aten" and hasattr(torch.ops.npu, api):
        return getattr(torch.ops.npu, api)  # type: ignore[no-any-return]
    return None


def _seed(seed: int, device: torch.device) -> None:
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


class _Api:
    """A function by its name in recordings."""

    def __init__(self, kind: str, name: str, function: Callable[..., Any]) -> None:
        self.kind = kind
        self.name = name
        self.function = function
        is_operator = kind in ("NPU", "Aten") and references() is not None
        # A reference function stands in for an operator, and takes tensors of the host only.
        self.is_on_host = is_operator and function is references().find(name)


class _NoBackward(Exception):
    """Why there is no backward to run."""


class _Side:
    """Which copies of the arguments are made."""

    def __init__(self, is_bench: bool, device: torch.device) -> None:
        self.is_bench = is_bench
        self.device = device
        self.is_cpu = device.type == "cpu"


class _Given:
    """A tensor argument, and what tells whether a call changed it."""

    __slots__ = ("before", "place", "tensor", "version")

    def __init__(self, place: str, tensor: torch.Tensor, is_uncounted: bool) -> None:
        self.place = place
        self.tensor = tensor
        self.version = tensor._version
        may_change = is_uncounted and tensor.dim() == 1
        self.before = tensor.detach().clone() if may_change else None

    def is_changed(self) -> bool:
        """Whether the call wrote into it."""
        if self.tensor._version != self.version:
            return True
        return self.before is not None and not torch.equal(self.before, self.tensor.detach())


def _placed(args: list[Any], kwargs: dict[str, Any]) -> Iterable[tuple[str, torch.Tensor]]:
    """The tensors among the arguments with their places: "0", "0_2" in a list, "out"."""
    waiting = [*((str(place), value) for place, value in enumerate(args)), *kwargs.items()]
    waiting.reverse()
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, torch.Tensor):
            yield place.replace(".", "_"), value
        elif isinstance(value, (list, tuple, dict)):
            items = list(value.values() if isinstance(value, dict) else value)
            waiting += [(f"{place}_{i}", items[i]) for i in reversed(range(len(items)))]


class _Call:
    """One request: its arguments, forward and backward."""

    def __init__(
        self, request: dict[str, Any], slot: Slot, side: _Side, *, wants_grad: bool
    ) -> None:
        self._request = request
        self._slot = slot
        self._side = side
        kwargs = request["kwargs"]
        # A call with out= has no gradient.
        self._wants_grad = wants_grad and not any(name == "out" for name, _ in kwargs)
        self.wants_node_gradients = bool(request.get("node_gradients"))
        raise_all = request.get("raise_all")
        self._raise_all = DTYPES[raise_all] if raise_all else None
        self._int32_as: torch.dtype | None = None
        self._has_int32 = False
        self._recorded: str | None = None  # type of the first floating tensor
        # Per tensor among the arguments: what its gradient is of, or None.
        self._leaves: list[torch.Tensor | None] = []
        self._kwargs: dict[str, Any] = {}
        self._given: list[_Given] = []
        self.note = ""  # a remark on how the call was made
        self.bytes_read = 0

    def forward(self, api: _Api) -> Any:
        """The result; the call is made once more with int64 if int32 will not do."""
        try:
            return self._run(api)
        except (RuntimeError, TypeError, IndexError) as error:
            if not self._has_int32 or not _WANTS_INT64.search(str(error)):
                raise
            self._int32_as = torch.int64
            self.note = "int32 arguments were passed as int64"
            try:
                return self._run(api)
            except Exception:
                raise error from None

    def arguments_after(
        self, api: _Api, output: Any, results: _Results
    ) -> dict[str, Any] | None:
        """Tensor arguments that the forward changed in place, by their place; None: unknown.

        {"changed": {"dict": [[place, tensor], ...]}, "kept": the same}: null for a tensor that is
        also returned; kept are those that may change uncounted, and did not.
        """
        if api.is_on_host:  # a reference function need not write where the operator does
            return None
        returned = {id(tensor) for tensor in _tensors(output)}
        found: dict[str, list[list[Any]]] = {"changed": [], "kept": []}
        for given in self._given:
            is_changed = given.is_changed()
            if is_changed or given.before is not None:
                after = None if id(given.tensor) in returned else results.encoded(given.tensor)
                found["changed" if is_changed else "kept"].append([given.place, after])
        return {kind: {"dict": entries} for kind, entries in found.items() if entries}

    def compared(self, api: _Api, output: Any) -> Any:
        """What of the result is compared: some vendor operators leave parts of it undefined."""
        if api.kind != "NPU" or references() is None:
            return output
        return references().post_process(api.name, output, self._kwargs)

    def _run(self, api: _Api) -> Any:
        self._leaves = []
        request = self._request
        # Not kept: an object that holds its own methods is left to the garbage collection, and so
        # are the tensors in it.
        makers: Makers = {
            "tensor": self._argument,
            "dtype": make_dtype,
            "memory_format": make_memory_format,
            "device": self._device_for,
            "size": torch.Size,
        }
        args = [decode(value, makers) for value in request["args"]]
        kwargs = {name: decode(value, makers) for name, value in request["kwargs"]}
        if "device" in kwargs:
            kwargs["device"] = self._device_for(kwargs["device"])
        self._kwargs = kwargs
        is_uncounted = api.name.partition(".")[0] in _WRITES_UNCOUNTED
        self._given = [_Given(place, tensor, is_uncounted)
                       for place, tensor in _placed(args, kwargs)]
        function = api.function
        if api.kind == "Tensor" and api.name in _ADAPTED:
            function = _ADAPTED[api.name](function, request["grads"])
        if api.is_on_host:  # it rounds as the device does, for the backward too
            references().set_recorded(self._recorded)
        autocast = None if self._side.is_bench else request.get("autocast")
        if autocast:
            with torch.autocast(self._side.device.type, dtype=DTYPES[autocast]):
                return function(*args, **kwargs)
        return function(*args, **kwargs)

    def backward(self, output: Any, grads: list[Any]) -> list[torch.Tensor | None]:
        """Per tensor among the arguments its gradient, None where none came."""
        wanted = [leaf for leaf in self._leaves if leaf is not None]
        if output is None:
            raise _NoBackward("the forward gave nothing")
        if not wanted:
            raise _NoBackward("no argument needs a gradient")
        incoming = [decode(leaf, {"tensor": self._plain})
                    for value in grads for leaf in leaves(value)]
        outputs, used = _match(list(_tensors(output)), incoming)
        found = iter(_gradients(outputs, wanted, used))
        return [None if leaf is None else _dense(next(found)) for leaf in self._leaves]

    def node_gradients(self, output: Any, grads: list[Any]) -> list[torch.Tensor | None]:
        """What the last autograd node makes of its incoming gradients, as a recorder sees it."""
        node: Any = next((one.grad_fn for one in _tensors(output) if one.grad_fn is not None), None)
        if node is None:
            raise _NoBackward("no argument needs a gradient")
        incoming = [decode(leaf, {"tensor": self._plain})
                    for value in grads for leaf in leaves(value)]
        found = node(*incoming)
        return [None if grad is None else _dense(grad)
                for grad in (found if isinstance(found, tuple) else (found,))]

    def _argument(self, body: list[Any]) -> torch.Tensor:
        """A tensor argument; autograd sees it if its gradient is wanted."""
        tensor = self._plain(body)
        if self._wants_grad and body[3] and (tensor.is_floating_point() or tensor.is_complex()):
            tensor.requires_grad_()
            self._leaves.append(tensor)
            return tensor.clone()
        self._leaves.append(None)
        return tensor

    def _plain(self, body: list[Any]) -> torch.Tensor:
        """A copy of the tensor at a place in the slot's memory, as this side wants it."""
        name, shape, offset, _, raised = body[:5]
        dtype = _dtype_named(name)
        count = math.prod(shape)
        if count:
            size = count * _SIZES[dtype]
            self.bytes_read += size
            memory = self._slot.inputs(offset + size)
            view = torch.frombuffer(memory, dtype=dtype, count=count, offset=offset).view(shape)
        else:
            view = torch.empty(shape, dtype=dtype)
        target = self._target(dtype, raised)
        if not self._side.is_cpu:
            moved = view.to(self._side.device)
            return moved if target == dtype else moved.to(target)
        return view.clone() if target == dtype else view.to(target)

    def _target(self, dtype: torch.dtype, raised: str | None) -> torch.dtype:
        """The type of elements that a recorded tensor has on this side."""
        if dtype == torch.int32:
            self._has_int32 = True
            return self._int32_as or dtype
        if dtype.is_floating_point:
            self._recorded = self._recorded or _NAMES[dtype]
            if self._raise_all is not None:
                return self._raise_all
        return _dtype_named(raised) if raised and self._side.is_bench else dtype

    def _device_for(self, recorded: Any) -> torch.device:
        """Whatever device was recorded, the call is meant for the one of this side."""
        is_meta = str(recorded) == "meta"
        return torch.device("meta") if is_meta else self._side.device


def _dtype_named(name: str) -> torch.dtype:
    dtype = DTYPES.get(name)
    if dtype is None:
        raise BadArgumentError(f"PyTorch {torch.__version__} has no elements of the type {name}")
    return dtype


def make_dtype(text: str) -> Any:
    """torch.float16 of "torch.float16"."""
    found = getattr(torch, text.removeprefix("torch."), None)
    if isinstance(found, torch.dtype):
        return found
    if text.startswith("numpy."):
        found = getattr(importlib.import_module("numpy"), text.removeprefix("numpy."), None)
        if isinstance(found, type):
            return found
    raise BadArgumentError(f"PyTorch {torch.__version__} has no dtype {text}")


def make_memory_format(text: str) -> torch.memory_format:
    """torch.channels_last of "torch.channels_last"."""
    found = getattr(torch, text.removeprefix("torch."), None)
    if not isinstance(found, torch.memory_format):
        raise BadArgumentError(f"PyTorch {torch.__version__} has no memory format {text}")
    return found


# ---- Calls that are not made as they are recorded

def _getitem(function: Callable[..., Any], grads: list[Any] | None) -> Callable[..., Any]:
    """Tensor.__getitem__ for an index out of a dump, where tuples have become lists.

    A list with a slice, a tensor or the like in it was a tuple. One of plain integers may have been
    either; the shape of a recorded gradient tells, and without one a tuple is tried first.
    """
    shapes = [leaf["tensor"][1] for value in grads or () for leaf in leaves(value) if leaf]

    def call(tensor: torch.Tensor, index: Any) -> torch.Tensor:
        if type(index) is not list:
            return function(tensor, _mask(index))  # type: ignore[no-any-return]
        index = [_mask(item) for item in index]
        if not all(type(item) is int for item in index):
            is_mask = bool(index) and all(type(item) is bool for item in index)
            return function(tensor, index if is_mask else tuple(index))  # type: ignore[no-any-return]
        try:
            found: torch.Tensor = function(tensor, tuple(index))
            if not shapes or list(found.shape) == shapes[0]:
                return found
        except IndexError:
            pass
        return function(tensor, index)  # type: ignore[no-any-return]

    return call


def _mask(index: Any) -> Any:
    """An index of uint8 is a mask."""
    is_mask = isinstance(index, torch.Tensor) and index.dtype == torch.uint8
    return index.bool() if is_mask else index


def _setitem(function: Callable[..., Any], grads: list[Any] | None) -> Callable[..., Any]:
    """Tensor.__setitem__, for the same reason as _getitem()."""

    def call(tensor: torch.Tensor, index: Any, value: Any) -> None:
        index = tuple(map(_mask, index)) if type(index) is list else _mask(index)
        function(tensor, index, value)

    return call


def _compared(otherwise: bool) -> Callable[..., Callable[..., Any]]:
    """__eq__ and __ne__ with what is no tensor: Python's own answer, as in `tensor == None`."""

    def adapt(function: Callable[..., Any], grads: list[Any] | None) -> Callable[..., Any]:
        def call(tensor: torch.Tensor, other: Any) -> Any:
            found = function(tensor, other)
            return otherwise if found is NotImplemented else found

        return call

    return adapt


_ADAPTED: dict[str, Callable[..., Callable[..., Any]]] = {
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "__eq__": _compared(False),
    "__ne__": _compared(True),
}


# ---- Results

class _Results:
    """Writes results into the memory of a slot, and says what they are."""

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self.bytes_written = 0

    def of(self, value: Any) -> dict[str, Any]:
        """{"value": JSON} of what a direction returned."""
        return {"value": self.encoded(value)}

    def encoded(self, value: Any) -> Any:
        """JSON of a value; the elements of its tensors are written."""
        return encode(value, self._tensor, _special)

    def _tensor(self, value: Any) -> dict[str, Any] | None:
        if not isinstance(value, torch.Tensor):
            return None
        name = _NAMES.get(value.dtype)
        is_plain = value.layout is torch.strided and value.device.type != "meta"
        if name is None or not is_plain or value.is_nested:
            return {"other": f"{value.layout} tensor of {value.dtype} on {value.device.type}"}
        shape = list(value.shape)
        count = value.numel()
        offset = 0
        if count:
            size = count * _SIZES[value.dtype]
            self.bytes_written += size
            memory, offset = self._slot.take(size)
            target = torch.frombuffer(memory, dtype=value.dtype, count=count, offset=offset)
            # Off the device, contiguous, conjugated: whatever it was.
            target.view(shape).copy_(value.detach())
        body = [name, shape, offset, value.requires_grad, None]
        kind = type(value)
        if kind is not torch.Tensor:
            body.append(f"{kind.__module__}.{kind.__qualname__}")
        return {"tensor": body}


def _has_overflow(direction: dict[str, Any] | None, slot: Slot) -> bool:
    """Whether a NaN or an infinity is in a floating tensor that was just written."""
    value = None if direction is None else direction.get("value")
    for leaf in leaves(value):
        if type(leaf) is not dict or "tensor" not in leaf:
            continue
        name, shape, offset = leaf["tensor"][:3]
        dtype, count = DTYPES[name], math.prod(shape)
        if not count or not (dtype.is_floating_point or dtype.is_complex):
            continue
        memory = slot.results(offset + count * _SIZES[dtype])
        tensor = torch.frombuffer(memory, dtype=dtype, count=count, offset=offset)
        # Nothing is implemented for types of 8 bits.
        finite = torch.isfinite(tensor.float() if _SIZES[dtype] == 1 else tensor)
        if not finite.all():
            return True
    return False


def _special(value: Any) -> dict[str, Any] | None:
    if isinstance(value, torch.Size):
        return {"size": [operator.index(item) for item in value]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)}
    if isinstance(value, torch.memory_format):
        return {"memory_format": str(value)}
    if isinstance(value, torch.device):
        return {"device": value.type}
    return None


def _tensors(value: Any) -> Iterable[torch.Tensor]:
    """The tensors in a result, depth first."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _match(
    outputs: list[torch.Tensor], grads: list[torch.Tensor | None]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Which gradient is of which output: those at the same place, else the next that can be.

    A recording has one per output, or leaves out outputs without a gradient, as of indices.
    """
    if len(grads) == len(outputs) and all(
        grad is None or (output.requires_grad and output.shape == grad.shape)
        for output, grad in zip(outputs, grads, strict=True)
    ):
        pairs = [(output, grad) for output, grad in zip(outputs, grads, strict=True)
                 if grad is not None]
    else:
        pairs = []
        rest = iter([output for output in outputs if output.requires_grad])
        for place, grad in enumerate(grads):
            if grad is None:
                continue
            output = next((one for one in rest if one.shape == grad.shape), None)
            if output is None:
                raise _NoBackward(f"gradient {place} of shape {tuple(grad.shape)} fits no output")
            pairs.append((output, grad))
    if not pairs:
        raise _NoBackward("no gradient was recorded")
    return [output for output, _ in pairs], [grad for _, grad in pairs]


def _gradients(outputs: list[torch.Tensor], wanted: list[torch.Tensor],
               grads: list[torch.Tensor]) -> Sequence[torch.Tensor | None]:
    """torch.autograd.grad(), by the engine behind it.

    Before its first call that function imports SymPy to compare shapes, which are compared already:
    a third of a second in every executor.
    """
    engine = getattr(torch.autograd.Variable, "_execution_engine", None)
    if engine is None:
        return torch.autograd.grad(outputs, wanted, grads, allow_unused=True)
    found: Sequence[torch.Tensor | None] = engine.run_backward(
        tuple(outputs), tuple(grads), False, False, tuple(wanted), allow_unreachable=True,
        accumulate_grad=False)
    return found


def _dense(grad: torch.Tensor | None) -> torch.Tensor | None:
    if grad is None or grad.layout is torch.strided:
        return grad
    size = math.prod(grad.shape) * grad.element_size()
    return grad.to_dense() if size <= _DENSE_LIMIT_BYTES else grad
