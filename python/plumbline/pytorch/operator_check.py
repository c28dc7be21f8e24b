"""Checking every operator while a program runs: `plumbline.check_operators()`.

What is judged, how, and what is written has its owner in src/precheck/online; this side copies and
calls.

Size caps: check_operators() has an argument, with its sentence, for each choice.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from plumbline import _compare, arguments

MOST_WORKERS = 64
_HALVES = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
# What a CPU is held against: itself in the next precision.
_SINGLES = {torch.float16: torch.float64, torch.bfloat16: torch.float64,
            torch.float32: torch.float64, torch.complex64: torch.complex128}
_LIBRARIES = tuple(os.path.dirname(path) + os.sep
                   for path in (torch.__file__, os.path.dirname(os.path.abspath(__file__))))
_INT64 = range(-(1 << 63), 1 << 63)
# Operators whose result jumps where a number of another precision lies on the other side.
_JUMPS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "eq_", "ne_", "lt_", "le_", "gt_", "ge_",
                    "bucketize", "div", "div_", "floor_divide", "floor_divide_", "fmod", "fmod_",
                    "hardshrink", "heaviside", "remainder", "remainder_", "searchsorted",
                    "threshold", "threshold_"))
# Eigenvectors and singular vectors are right with any sign or phase.
_UP_TO_SIGNS = frozenset(("_linalg_eigh", "_linalg_svd", "linalg_eig"))


class FailedOperator(NamedTuple):
    """A call whose result on the device is wrong."""

    name: str  # "mm_3": the third call of mm
    where: str  # the line of the program that led to it, "train.py:41"; may be empty
    message: str


class OperatorCheck:
    """Checks what runs inside of `with`; holds what was found when that has ended.

    Attributes:
        answer: "wrong: mm_3 at train.py:41: ...", "no wrong operator in ..." or "nothing checked".
        failed: the wrong calls, the first of them first.
        counts: calls that "passed", "failed", are "not checked" or "left alone".
        reasons: why calls were not checked.
        warnings: what could not be written.
        directory: where the files are; "" where none were asked for.
        files: the result and the details file.
        device: the kind of device that was tested.
    """

    def __init__(self, native: _compare.OperatorCheck, device: str, *, copies: bool,
                 debug: bool = False) -> None:
        self.answer = ""
        self.failed: list[FailedOperator] = []
        self.counts: dict[str, int] = {}
        self.reasons: list[str] = []
        self.warnings: list[str] = []
        self.directory = ""
        self.files: list[str] = []
        self.device = device
        self._native = native
        self._mode: Any = _Operators(native, device, copies, debug)
        self._is_used = False

    def __enter__(self) -> OperatorCheck:
        if self._is_used:
            raise RuntimeError("check_operators: was used already. Make a new one for each block")
        self._is_used = True
        self._mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)
        if self._mode.is_forked:
            return  # what is judged and written is the parent's
        facts: Any = self._native.finish(self._mode.left_alone)
        self.answer = facts["answer"]
        self.failed = [FailedOperator(*one) for one in facts["failed"]]
        self.counts = facts["counts"]
        self.reasons, self.warnings = facts["reasons"], facts["problems"]
        self.directory, self.files = facts["directory"], facts["files"]
        for text in self.warnings:
            _warn(f"check_operators: {text}; rows or arrays are missing")
        _say(self.answer)

    @property
    def ok(self) -> bool:
        """Whether something was checked and nothing of it is wrong."""
        return self.counts.get("passed", 0) > 0 and not self.failed

    def __repr__(self) -> str:
        return f"<OperatorCheck: {self.answer or 'not ended yet'}>"

    def __bool__(self) -> bool:
        """Raises TypeError: "nothing is wrong" and "something was checked" are two questions."""
        raise TypeError("OperatorCheck: has no truth value. Test ok, failed or counts.")


def check_operators(
    output: str | os.PathLike[str] | None = None,
    *,
    device: str = "auto",
    dump: str = "OFF",
    operators: Iterable[str] = (),
    workers: int = 0,
    tag: str = "",
) -> OperatorCheck:
    """Holds every operator that runs on a device inside of `with` against the CPU.

    Forward, backward and the optimiser's step may stand in one block. The program computes what it
    would without: results of the device go on, the CPU gets copies. Seen is what this thread and
    its backward passes run; processes that are forked inside of the block run on unchecked.

    Args:
        output: directory for the files, made when missing; None writes none.
        device: kind of the device under test: "auto" (an NPU, else what accelerator there is, else
            the CPU), "npu", "cuda", "cpu". The CPU is held against itself in float64.
        dump: when arrays are written as .npy: "OFF", "all", "list" (of `operators`), "auto" (of
            failing calls). Needs `output`.
        operators: names such as "mm" for dump="list".
        workers: threads that judge and write beside the program; 0: none, each call waits for it.
        tag: letters, digits, "_" and "-" for the name of the directory.

    Raises:
        ValueError, TypeError: an argument is wrong.
        OSError: the files cannot be made.
    """
    folder = "" if output is None else arguments.path("output", output)
    if dump not in ("OFF", "all", "list", "auto"):
        raise ValueError(f"dump: {dump!r} is unknown (expected OFF, all, list, auto)")
    if dump != "OFF" and not folder:
        raise ValueError(f"dump: {dump!r} needs output=, the directory for the arrays")
    words = arguments.words("operators", operators) if operators else []
    if (dump == "list") != bool(words):
        raise ValueError('operators: needed with dump="list" and only there, such as ["mm"]')
    if not all(part.isalnum() or part in "_-" for part in arguments.text("tag", tag)):
        raise ValueError(f"tag: {tag!r} (expected letters, digits, _ and -)")
    threads = arguments.count("workers", workers, MOST_WORKERS)
    kind = device_under_test(arguments.text("device", device))
    if folder:
        os.makedirs(folder, exist_ok=True)
    return start(folder, kind, tag, (dump, known_operators(words)), threads)


def start(folder: str, device: str, tag: str, dump: tuple[str, list[str]], workers: int, *,
          debug: bool = False) -> OperatorCheck:
    """A check whose arguments are right."""
    native = _compare.OperatorCheck(folder, tag, _rank(device), dump, workers)
    return OperatorCheck(native, device, copies=workers > 0, debug=debug)


def device_under_test(name: str) -> str:
    """The kind of device that "auto", "npu", "cuda:1" mean."""
    if name != "auto":
        try:
            kind = torch.device(name).type
        except RuntimeError:
            raise ValueError(f"device: {name!r} is unknown (expected auto, npu, cuda, cpu or what "
                             "PyTorch calls it)") from None
        try:
            has_values = not torch.empty(0, device=name).is_meta
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise ValueError(f"device: {name!r} is not to be had here: "
                             f"{str(error).strip().partition(chr(10))[0]}") from None
        if not has_values:
            raise ValueError(f"device: {name!r} computes no values")
        return kind
    npu = getattr(torch, "npu", None)
    if npu is not None and npu.is_available():
        return "npu"
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        found = accelerator.current_accelerator()
        return found.type if found is not None else "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def known_operators(names: list[str]) -> list[str]:
    """Those that PyTorch's dispatcher has; warns about the others."""
    known = [name for name in names if hasattr(torch.ops.aten, name)]
    for name in sorted(set(names).difference(known)):
        _warn(f"check_operators: {name} is no ATen operator; nothing of it is written")
    return known


def _rank(device: str) -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    module = getattr(torch, device, None)
    try:
        return int(module.current_device()) if device != "cpu" and module is not None else 0
    except (AttributeError, RuntimeError):
        return 0


def _warn(text: str) -> None:
    """A warning that stays one, whatever filters say: the program must go on."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    except Exception:
        _say(text, sys.stderr)


def _say(text: str, to: Any = None) -> None:
    """A line on standard output or on `to`; nothing where that is closed or full."""
    try:
        print(f"plumbline: {text}", file=to, flush=True)
    except (OSError, ValueError):
        pass


class _UncheckedError(Exception):
    """Why a call cannot be checked."""


class _Plan:
    """What is the same for all calls of an operator."""

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.name = func.overloadpacket.__name__
        self.reason = ""  # why it is never checked
        written = [(place, argument) for place, argument in enumerate(schema.arguments)
                   if argument.alias_info is not None and argument.alias_info.is_write]
        self.written = [(place, argument.name) for place, argument in written]
        views = any(value.alias_info is not None and not value.alias_info.is_write
                    for value in schema.returns)
        self.is_left_alone = views or _compare.is_left_alone(self.name)
        if func.namespace != "aten":
            self.reason = f"an operator of {func.namespace}, which has no benchmark"
        elif torch.Tag.nondeterministic_seeded in func.tags:
            self.reason = "random numbers"
        elif self.name in _UP_TO_SIGNS:
            self.reason = "vectors that are right with any sign"

    def written_of(self, args: Any, kwargs: Any) -> list[Any]:
        return [args[place] if place < len(args) else kwargs.get(name)
                for place, name in self.written]


class _Benchmark:
    """Copies of a call's arguments on the CPU, in higher precision."""

    def __init__(self, raised: dict[Any, Any]) -> None:
        self._raised = raised
        self._copies: dict[int, Any] = {}  # an argument that comes twice is one tensor
        self.has_raised = False
        self._types: set[Any] = set()  # of tensors that were raised
        self._numbers: list[float] = []

    @property
    def holds_other_numbers(self) -> bool:
        """Whether a number stands beside tensors whose type rounds it."""
        return any(float(torch.tensor(number, dtype=kind)) != number
                   for kind in self._types if kind.is_floating_point
                   for number in self._numbers)

    def of(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.of, value))
        if isinstance(value, dict):
            return {key: False if key == "pin_memory" else self.of(item)
                    for key, item in value.items()}
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if isinstance(value, torch.dtype):
            self.has_raised |= value in self._raised
            return self._raised.get(value, value)
        if isinstance(value, float):
            self._numbers.append(value)
        return value

    def _tensor(self, tensor: Any) -> Any:
        copy = self._copies.get(id(tensor))
        if copy is None:
            if not _has_plain_memory(tensor):
                raise _UncheckedError("a tensor that is sparse, quantised or without memory")
            if tensor.dtype in self._raised:
                self.has_raised = True
                self._types.add(tensor.dtype)
            copy = self._copies[id(tensor)] = tensor.detach().to(
                device="cpu", dtype=self._raised.get(tensor.dtype, tensor.dtype), copy=True)
        return copy


class _Operators(TorchDispatchMode):
    """Sees every operator below autograd; hands its results and the benchmark's over."""

    def __init__(self, native: _compare.OperatorCheck, device: str, copies: bool,
                 debug: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.left_alone = 0
        self._native = native
        self._device = device
        self._copies = copies
        self._debug = debug
        self._raised = _SINGLES if device == "cpu" else _HALVES
        self._plans: dict[Any, _Plan | None] = {}
        self._warned: set[str] = set()
        self._process = os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether this is a copy in another process, without the threads that judge."""
        return os.getpid() != self._process

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.is_forked:
            return func(*args, **kwargs)
        if any(_has_own_dispatch(kind) for kind in types):
            return NotImplemented  # what it is made of comes by later
        plan = self._plan(func)
        if plan is None or plan.is_left_alone or not self._is_tested((args, kwargs)):
            self.left_alone += 1
            return func(*args, **kwargs)
        given = self._prepare(plan, args, kwargs)
        began = time.perf_counter()
        result = func(*args, **kwargs)
        if given is not None:
            self._check(plan, func, given, (result, plan.written_of(args, kwargs)))
            if self._debug:
                self._log(plan, time.perf_counter() - began)
        return result

    def _plan(self, func: Any) -> _Plan | None:
        if func not in self._plans:
            is_operator = isinstance(func, torch._ops.OpOverload)
            self._plans[func] = _Plan(func) if is_operator else None
        return self._plans[func]

    def _is_tested(self, value: Any) -> bool:
        """Whether a tensor, or the place for a new one, is on the device."""
        if isinstance(value, torch.Tensor):
            return value.device.type == self._device
        if isinstance(value, torch.device):
            return value.type == self._device
        if isinstance(value, (list, tuple)):
            return any(map(self._is_tested, value))
        return isinstance(value, dict) and any(map(self._is_tested, value.values()))

    def _prepare(self, plan: _Plan, args: Any, kwargs: Any) -> Any:
        """Arguments of the benchmark, and what of them is written; None: it is not checked."""
        try:
            if plan.reason:
                raise _UncheckedError(plan.reason)
            benchmark = _Benchmark(self._raised)
            given = benchmark.of(tuple(args)), benchmark.of(kwargs)
            if self._device == "cpu" and not benchmark.has_raised:
                raise _UncheckedError("the CPU has no higher precision for it")
            if plan.name in _JUMPS and benchmark.holds_other_numbers:
                raise _UncheckedError("a number that the type of the tensors rounds decides")
            if plan.name in ("_softmax", "_log_softmax"):
                given = (*given[0][:2], False), given[1]  # halves are raised already
            inputs = []
            if self._native.wants_inputs(plan.name):
                kept = _map(given, torch.clone) if plan.written else given
                inputs = [*_leaves("", kept[0]), *(leaf for name, value in kept[1].items()
                                                   for leaf in _leaves(f"_{name}", value))]
            return *given, inputs
        except Exception as error:
            self._give_up(plan, error)
            return None

    def _check(self, plan: _Plan, func: Any, given: Any, done: tuple[Any, list[Any]]) -> None:
        args, kwargs, inputs = given
        try:
            device = [(path, _host(value, self._copies)) for path, value in _outputs(*done)]
            state = torch.get_rng_state()
            try:
                with torch.no_grad(), torch.autocast("cpu", enabled=False):
                    bench = func(*args, **kwargs)
            except Exception as error:
                text = str(error).strip().partition("\n")[0]
                raise _UncheckedError(f"the CPU refuses it: {text}") from error
            finally:
                torch.set_rng_state(state)
            outputs = [(path, _host(value, False))
                       for path, value in _outputs(bench, plan.written_of(args, kwargs))]
            self._native.add((plan.name, _place()), [(path, _described(value))
                                                     for path, value in inputs],
                             [(path, _described(value)) for path, value in device],
                             [(path, _described(value)) for path, value in outputs])
        except Exception as error:
            self._give_up(plan, error)

    def _give_up(self, plan: _Plan, error: Exception) -> None:
        reason = str(error) if isinstance(error, _UncheckedError) else (
            f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
        self._native.add_unchecked(plan.name, reason)
        if plan.name not in self._warned and reason != "random numbers":
            self._warned.add(plan.name)
            if self._device != "cpu" or not isinstance(error, _UncheckedError):
                _warn(f"check_operators: {plan.name} is not checked: {reason}")

    def _log(self, plan: _Plan, seconds: float) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        _say(f"{plan.name}: {seconds * 1e3:.3f} ms, at most {peak} MiB so far")


def _has_own_dispatch(kind: Any) -> bool:
    own = getattr(kind, "__torch_dispatch__", None)
    return own is not None and own is not torch._C._disabled_torch_dispatch_impl and (
        own is not torch.Tensor.__torch_dispatch__)


def _has_plain_memory(tensor: Any) -> bool:
    return not (tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta
                or tensor._is_zerotensor())


def _map(value: Any, change: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_map(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    return value


def _leaves(path: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [leaf for place, item in enumerate(value)
                for leaf in _leaves(f"{path}.{place}", item)]
    return [(path, value)]


def _outputs(result: Any, written: list[Any]) -> list[tuple[str, Any]]:
    """What a call returned, then what it wrote into its arguments and did not return."""
    found = [] if result is None else _leaves("", result)
    returned = {id(value) for _, value in found}
    more = [leaf for value in written for leaf in _leaves("", value)
            if leaf[1] is not None and id(leaf[1]) not in returned]
    if not more:
        return found
    together = [*found, *more]
    return [(f".{place}", value) for place, (_, value) in enumerate(together)]


def _host(value: Any, copies: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if not _has_plain_memory(value):
        raise _UncheckedError("a result that is sparse, quantised or without memory")
    on_host = value.detach().to(device="cpu", copy=copies)
    return on_host.resolve_conj().resolve_neg().contiguous()


def _described(value: Any) -> Any:
    """A leaf as the native side reads it."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach().contiguous()
        return tensor, str(tensor.dtype), list(tensor.shape), tensor.data_ptr()
    if isinstance(value, (bool, float)) or (isinstance(value, int) and value in _INT64):
        return value
    return None


def _place() -> str:
    """The innermost line that is neither PyTorch's nor ours."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_LIBRARIES) and not name.startswith("<"):
            return f"{os.path.basename(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
