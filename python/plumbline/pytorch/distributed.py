"""Recording torch.distributed: collectives and point-to-point calls, while a window is open.

The functions keep their identity. PyTorch itself asks `op.op is isend`, and references taken early
(`from torch.distributed import all_reduce`) must be seen too, so not the attribute but the code of
each function is replaced while the window is open: by a jump to a native probe around a copy of
the original. docs/design/interception.md, "Communication", has the reasons.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from plumbline import _core
from plumbline.api_list import read_api_list
from plumbline.communication import MASKED_INPUTS, MASKED_OUTPUTS

# all_gather_single and reduce_scatter_single, which FSDP2 calls, are PyTorch 2.13's names of
# all_gather_into_tensor and reduce_scatter_tensor, and not in upstream's list.
NAMES = read_api_list(__file__)["distributed"]

# Methods of a handle after which the user may use the data; of the last one only if it says True.
WAITS = ("wait", "synchronize")
_TEST = "is_completed"
# The same for the future of a handle.
_FUTURE_WAITS = ("wait", "value")

# Operators that give a tensor which is not complete before their wait_tensor.
FUNCTIONAL = "_c10d_functional"

_PLACEHOLDER = "plumbline probe"


def functions() -> Iterator[tuple[str, types.FunctionType]]:
    """(name, function) of every listed communication function that this PyTorch has."""
    if not dist.is_available():
        return
    seen: set[int] = set()
    for name in NAMES:
        for owner in (dist, dist.distributed_c10d):
            function = getattr(owner, name, None)
            if isinstance(function, types.FunctionType) and id(function) not in seen:
                seen.add(id(function))
                yield name, function


class DistributedHooks:
    """The probes of one process; installed while a window is open."""

    def __init__(self, recorder: _core.Recorder) -> None:
        self._functions: list[Redirection] = []
        self._handles = _core.PatchSet()
        self._is_active = False
        self._collectives: _core.Collectives | None = None
        if not dist.is_available():
            return
        world: Any = getattr(dist.distributed_c10d, "_world", None)
        postponed = getattr(world, "pg_coalesce_state", None)
        self._collectives = _core.Collectives(
            recorder, dist.Work, self._has_succeeded, {} if postponed is None else postponed,
            _before_receiving,
        )
        self._is_completed = dist.Work.is_completed
        self._is_success = dist.Work.is_success
        for name, function in functions():
            self._functions.append(Redirection(function, self._probe_of(name)))
        if gathering := getattr(dist.distributed_c10d, "_coalescing_manager", None):
            self._functions.append(Redirection(gathering, functools.partial(
                functools.partial, _core.GatheringRegion, self._collectives)))
        for method in (*WAITS, _TEST):
            self._handles.add(dist.Work, method, self._observed(getattr(dist.Work, method)))
        self._futures: dict[Any, Any] = {}  # future of a pending call -> its handle
        self._observe_futures()

    def resume(self) -> None:
        """Replaces the code of every function; idempotent."""
        if self._is_active:
            return
        self._is_active = True
        for redirection in self._functions:
            redirection.apply()
        self._handles.apply()

    def suspend(self) -> None:
        """Restores everything; calls in flight stay known. Idempotent."""
        if not self._is_active:
            return
        self._is_active = False
        self._handles.restore()
        for redirection in self._functions:
            redirection.restore()

    def finish(self) -> None:
        """Ends the window: records calls that nobody waited for. Never waits."""
        if self._collectives is not None:
            self._collectives.finish()
            self._futures.clear()

    def _probe_of(self, name: str) -> Callable[[Any], Any]:
        masked = [0] if name == "batch_isend_irecv" else MASKED_INPUTS.get(name, [])

        def probe(original: Any) -> Any:
            parameters = list(inspect.signature(original).parameters)
            names = [parameters[at] for at in masked if at < len(parameters)]
            assert self._collectives is not None
            return self._collectives.probe(
                original, f"Distributed.{name}", masked, names, MASKED_OUTPUTS.get(name, [])
            )

        return probe

    def functional_probe(self, operator: Any, name: str) -> Any:
        """Of a functional collective: what is not complete is null."""
        if self._collectives is None:
            return operator
        full = f"{FUNCTIONAL}.{name}"
        if name == "wait_tensor":
            return self._collectives.probe(operator, full, [0], [], [], gives_result=True)
        return self._collectives.probe(operator, full, [], [], [0], gives_result=True)

    def _has_succeeded(self, handle: Any) -> bool:
        """Whether the call behind `handle` is complete and without error; a test, not a wait."""
        return bool(self._is_completed(handle)) and bool(self._is_success(handle))

    def _observed(self, original: Any) -> Any:
        """`original`, a method of handles, after which the handle's call is recorded."""
        assert self._collectives is not None
        return observed_wait(original, self._collectives.completed)

    def _observe_futures(self) -> None:
        future: Any = torch._C.Future
        get_future = dist.Work.get_future
        futures = self._futures
        collectives = self._collectives
        assert collectives is not None

        def of_handle(self: Any) -> Any:
            result = get_future(self)
            if collectives.is_pending(self):
                futures[result] = self
            return result

        def complete(one: Any) -> None:
            handle = futures.pop(one, None)
            if handle is not None:
                collectives.completed(handle)

        def waits(original: Any) -> Any:
            def wait(self: Any) -> Any:
                result = original(self)
                complete(self)
                return result

            return functools.update_wrapper(wait, original)

        def then(original: Any) -> Any:
            def follow(self: Any, callback: Any) -> Any:
                if self not in futures:
                    return original(self, callback)

                def completed_first(done: Any) -> Any:
                    complete(self)
                    return callback(done)

                return original(self, completed_first)

            return functools.update_wrapper(follow, original)

        self._handles.add(dist.Work, "get_future", functools.update_wrapper(of_handle, get_future))
        for method in _FUTURE_WAITS:
            self._handles.add(future, method, waits(getattr(future, method)))
        for method in ("then", "add_done_callback"):
            self._handles.add(future, method, then(getattr(future, method)))


def observed_wait(original: Any, completed: Callable[[Any], None]) -> Any:
    """`original`, a method of handles, which tells `completed` of its handle when it is through."""
    is_test = original.__name__ == _TEST

    # PyTorch looks for overrides in Python subclasses of handles by this name and `self`.
    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if result or not is_test:
            completed(self)
        return result

    wait.__code__ = wait.__code__.replace(co_name=original.__name__)
    return functools.update_wrapper(wait, original)


def is_redirected(function: types.FunctionType) -> bool:
    """Whether a redirection of anybody is applied to it now."""
    return function.__code__.co_filename == __file__


class Redirection:
    """One function whose code can be replaced by a call of a probe around a copy of it.

    `probe_of`: makes the probe of that copy.
    """

    def __init__(self, function: types.FunctionType, probe_of: Callable[[Any], Any]) -> None:
        self._function = function
        self._code = function.__code__
        copy = types.FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__dict__.update(function.__dict__)
        copy.__module__ = function.__module__
        copy.__qualname__, copy.__doc__ = function.__qualname__, function.__doc__
        self._jump = _jump(function.__code__, probe_of(copy))
        self._signature = inspect.signature(function)

    def apply(self) -> None:
        """Replaces the code."""
        if self._function.__code__ is not self._code:
            return  # somebody else's replacement
        self._function.__code__ = self._jump
        if not hasattr(self._function, "__wrapped__"):
            self._function.__signature__ = self._signature  # type: ignore[attr-defined]

    def restore(self) -> None:
        """Puts the original code back."""
        if self._function.__code__ is not self._jump:
            return
        self._function.__code__ = self._code
        self._function.__dict__.pop("__signature__", None)


def _jump(code: types.CodeType, probe: Any) -> types.CodeType:
    """Code that hands its arguments to `probe`, with the name and the free variables of `code`.

    A function takes new code only with as many free variables as it has.
    """
    free = ", ".join(code.co_freevars)
    source = (
        f"def outer({free}):\n"
        f"    def inner(*args, **kwargs):\n"
        f"        probe = {_PLACEHOLDER!r}\n"
        f"        return probe(*args, **kwargs)\n"
        f"        {f'({free},)' if free else 'pass'}\n"
        f"    return inner\n"
    )
    module = compile(source, __file__, "exec")
    outer = next(one for one in module.co_consts if isinstance(one, types.CodeType))
    inner = next(one for one in outer.co_consts if isinstance(one, types.CodeType))
    constants = tuple(probe if one == _PLACEHOLDER else one for one in inner.co_consts)
    return inner.replace(co_name=code.co_name, co_consts=constants)


def describe_distributed(value: Any) -> tuple[str, Any] | None:
    """What a process group, reduction or point-to-point operation is; None for anything else.

    See `plumbline.pytorch.values.describe` for the form.
    """
    if not dist.is_available():
        return None
    if isinstance(value, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
        return "value", {"type": "torch.distributed.ReduceOp", "value": str(value)}
    if isinstance(value, dist.ProcessGroup):
        return "value", _describe_group(value)
    if isinstance(value, dist.P2POp):
        plain = {"op": value.op.__name__, "peer": value.peer, "tag": value.tag}
        plain["group_id"] = _describe_group(value.group or dist.group.WORLD).get("group_id")
        return "map", [
            ("class_type", _Plain("torch.distributed.P2POp")),
            ("tensor", value.tensor),
            *((key, _Plain(member)) for key, member in plain.items()),
        ]
    if isinstance(value, _Receiving):
        _, members = describe_distributed(value.operation) or ("", [])
        return "map", [(key, None if key == "tensor" else member) for key, member in members]
    if isinstance(value, _Plain):
        return "value", value.json
    return None


class _Receiving:
    """An operation that receives, before it does: its buffer holds nothing yet."""

    __slots__ = ("operation",)

    def __init__(self, operation: Any) -> None:
        self.operation = operation


def _before_receiving(argument: Any) -> Any:
    """What an argument that is received into is recorded as before the call."""
    if not isinstance(argument, list):
        return None  # the buffer itself
    operations = [one for one in argument if isinstance(one, dist.P2POp)]
    return [_Receiving(one) if one.op is dist.irecv else one for one in operations] or None


class _Plain:
    """A member that is written as it is, without its type."""

    __slots__ = ("json",)

    def __init__(self, json: Any) -> None:
        self.json = json


def _describe_group(group: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"type": "torch.ProcessGroup"}
    try:
        ranks = dist.get_process_group_ranks(group)
        name = getattr(group, "group_name", None)  # of torch 2.1 on
    except (KeyError, ValueError, RuntimeError):
        return described  # destroyed, or not made by torch.distributed
    # Upstream's rule (release 1.2.2): equal ranks make equal groups.
    digest = hashlib.md5(str(ranks).encode(), usedforsecurity=False).hexdigest()
    described.update(group_ranks=ranks, group_id=digest)
    return {**described, "group_name": name} if name else described
