"""The perturbation check (task free_benchmark): calls run a second time with changed inputs.

Numbers are looked at in `_core.PerturbationCheck`, which also writes the files; what a second run
takes of the framework is its `SecondRuns`. Here both meet: which tensors a run is given, in which
order things happen around a call, and what a failure means. Training goes on as without it: a
second run works on copies of all that the call writes to, with the random state of the first, and
leaves every state as the first left it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from plumbline import _core
from plumbline.adapter import Adapter
from plumbline.call_window import CallWindow

_MOST_NESTING = 10
_MOST_EXACT_ELEMENTS = 1 << 26  # of the inputs of a run in float64
_SEEDS = (1, 2, 3)  # of estimates of rounding
_NOISE = ("add_noise", "bit_noise", "change_value")
_KNOWN_OPERATORS = "Aten."


class SecondRuns(Protocol):
    """What a framework gives for running a call again."""

    has_backward_hooks: bool
    """Gradients are compared when the training computes them; else when the window closes."""

    def is_tensor(self, value: object) -> bool: ...
    def is_floating(self, tensor: Any) -> bool: ...
    def is_narrow(self, tensor: Any) -> bool:
        """A floating type of at most 16 bits."""

    def is_double(self, tensor: Any) -> bool: ...
    def elements(self, tensor: Any) -> int: ...
    def needs_grad(self, tensor: Any) -> bool: ...
    def version(self, tensor: Any) -> int:
        """A number that changes when the values do, as far as the framework tells."""

    def may_be_written(self, api: str, tensor: Any) -> bool:
        """Whether the call may write to it though neither its name nor its arguments say so."""

    def memory(self, tensor: Any) -> Any:
        """Equal for tensors that share memory."""

    def obstacle(self, api: str, tensors: list[Any]) -> str:
        """Why a call of it with these must not run a second time; empty: it may."""

    def quiet(self) -> AbstractContextManager[Any]:
        """Nothing inside is seen by autograd, or by modes and overrides of the user."""

    def random(self, tensors: list[Any], values: Iterable[Any]) -> Any:
        """The state of the random generators that a call with these may use."""

    def same_random(self, one: Any, other: Any) -> bool: ...
    def set_random(self, state: Any) -> None: ...
    def precise(self, is_precise: bool) -> AbstractContextManager[Any]:
        """A second run: caches of the framework are left alone; if precise, types are kept."""

    def rounds_by_itself(self) -> bool:
        """Whether the framework itself computes in a narrower type than its inputs have."""

    def copy(self, tensor: Any) -> Any: ...
    def detached(self, tensor: Any) -> Any:
        """The same memory, outside the graph."""

    def perturbed(self, tensor: Any, change: Callable[[Any, Any], str]) -> tuple[Any, str]:
        """A copy that `change(source, target)` wrote the values of, and its answer."""

    def single(self, tensor: Any) -> Any:
        """As float32."""

    def double(self, tensor: Any) -> Any: ...
    def cast_as(self, tensor: Any, other: Any) -> Any:
        """In the type of `other`."""

    def on_cpu(self, tensor: Any) -> Any:
        """On the CPU, narrow floats as float32."""

    def replaced(self, output: Any, second: Any, aliases: str) -> Any:
        """`output` with the values of `second`; aliases: "", "view" or "written" of an input."""

    def gradient_hook(self, output: Any, run: Callable[[Any], None]) -> list[int]:
        """Calls `run(gradients)` before the way back of the first output; which outputs they
        belong to, in the order of all tensors of the output. Empty: there is no way back."""

    def gradients(self, run: Callable[[list[Any]], list[Any]], leaves: list[Any],
                  cotangents: Any) -> list[Any]:
        """Gradients of `run(leaves)`, a list of outputs, for the leaves."""


class _Call:
    """A call of interest between its begin and its end."""

    __slots__ = ("args", "copies", "facts", "function", "kwargs", "preheat", "random",
                 "random_after", "seed", "tensors", "versions", "wanted", "written")

    def __init__(self, facts: Any, function: Any, args: Any, kwargs: Any) -> None:
        self.facts, self.function, self.args, self.kwargs = facts, function, args, kwargs
        self.tensors: list[Any] = []
        self.copies: dict[int, Any] = {}  # by id of the tensor: its values before the call
        self.versions: list[int] = []
        self.written: list[Any] = []
        self.wanted: list[bool] = []  # of `tensors`: it needs a gradient
        self.random: Any = None
        self.random_after: Any = None  # None: the call drew no random numbers
        self.preheat = 1
        self.seed = 0


class _Inputs:
    """The arguments of one run, and what became of each tensor."""

    __slots__ = ("args", "kwargs", "of")

    def __init__(self, args: Any, kwargs: Any, of: dict[int, Any]) -> None:
        self.args, self.kwargs, self.of = args, kwargs, of


class PerturbedCalls:
    """Runs the calls of one process again, and has them compared."""

    def __init__(self, recorder: _core.Recorder, config: _core.Config, adapter: Adapter) -> None:
        self.check = _core.PerturbationCheck(recorder, config, adapter.name)
        self._framework: SecondRuns = adapter.second_runs()
        self._modes = self.check.modes
        self._known = {f"{prefix}.{name}" for prefix, name, _, _ in adapter.apis()}
        self._writers: set[str] = set()  # APIs that were seen to write where nothing said so
        self._without_estimate: set[str] = set()  # APIs that said so
        self._waiting: list[_Call] = []  # for gradients
        self._seed = 0
        self.check.watch(self.before, self.after)

    def end_window(self) -> None:
        """Computes gradients of a framework without hooks: not inside a gradient of the user."""
        if self._framework.has_backward_hooks:
            return
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self.check.guarded(lambda one=call: self._gradients_arrived(one, None, None))

    def end_step(self) -> None:
        """Gradients that did not arrive do not count; writes the summary."""
        for call in self._waiting:
            if call.tensors:
                self._skip(call.facts.backward(), "no gradient arrived")
            call.tensors, call.args, call.kwargs, call.copies = [], (), {}, {}
        self._waiting = []
        self.check.end_step()

    def before(self, facts: Any, function: Any, args: Any, kwargs: Any, written: Any) -> Any:
        """The original is about to run."""
        framework = self._framework
        with framework.quiet():
            call = _Call(facts, function, args, kwargs)
            self._seed += 1
            call.seed = self._seed
            call.tensors = list(_tensors(framework, (args, kwargs)))
            reason = self._obstacle(call)
            if reason:
                self._skip(facts, reason)
                return None
            call.preheat = self.check.preheat(facts)
            if call.preheat == 0:
                return None
            self._copy_written(call, written)
            call.versions = [framework.version(tensor) for tensor in call.tensors]
            if self.check.is_backward:
                call.wanted = [framework.is_floating(tensor) and framework.needs_grad(tensor)
                               for tensor in call.tensors]
            call.random = framework.random(call.tensors, (*args, *kwargs.values()))
            return call

    def after(self, call: _Call, output: Any) -> Any:
        """It has run; what takes the place of its output, or None."""
        framework = self._framework
        with framework.quiet():
            after = framework.random(call.tensors, (*call.args, *call.kwargs.values()))
            if not framework.same_random(call.random, after):
                call.random_after = after
            changed = any(framework.version(tensor) != version and id(tensor) not in call.copies
                          for tensor, version in zip(call.tensors, call.versions, strict=True))
            if changed:
                self._writers.add(call.facts.api)
                self._skip(call.facts, "it changed an input that was not known to change; later "
                                       "calls are examined")
                return None
            if self.check.is_backward:
                self._await_gradients(call, output)
                return None
            replaced = None
            for mode in self._modes:
                replaced = self._examine(call, mode, output)
            return replaced

    def _obstacle(self, call: _Call) -> str:
        framework, api = self._framework, call.facts.api
        if api not in self._known and not api.startswith(_KNOWN_OPERATORS):
            return "it is no listed function of the framework: what it does twice is not known"
        if not any(framework.is_floating(tensor) for tensor in call.tensors):
            return "no input is floating-point"
        for value in (*call.args, *call.kwargs.values()):
            if callable(value) and not isinstance(value, type) and not framework.is_tensor(value):
                return "it is given a function, which may do anything when it runs twice"
        return framework.obstacle(api, call.tensors)

    def _copy_written(self, call: _Call, written: list[Any]) -> None:
        """Copies what the call may write to, and all that shares its memory."""
        framework = self._framework
        call.written = list(written)
        if call.facts.api in self._writers:
            written = call.tensors
        else:
            hidden = [tensor for tensor in call.tensors
                      if framework.may_be_written(call.facts.api, tensor)]
            written = [*written, *hidden] if hidden else written
        if not written:
            return
        memory = {framework.memory(tensor) for tensor in _tensors(framework, written)}
        for tensor in call.tensors:
            if id(tensor) not in call.copies and framework.memory(tensor) in memory:
                call.copies[id(tensor)] = framework.copy(tensor)

    def _examine(self, call: _Call, mode: str, output: Any) -> Any:
        try:
            return self._compare(call, mode, output)
        except Exception as error:
            self.check.skip(call.facts, mode, f"the second run failed: {_first_line(error)}")
            return None

    def _compare(self, call: _Call, mode: str, output: Any) -> Any:
        if call.random_after is not None and mode in ("improve_precision", "to_cpu"):
            self.check.skip(call.facts, mode, "it draws random numbers, which another type or "
                                              "device would draw differently")
            return None
        inputs, reason = self._perturb(call, mode)
        if inputs is None:
            self.check.skip(call.facts, mode, reason)
            return None
        second = self._run(call, inputs, mode)
        is_left = output is None and bool(call.written)  # x[i] = y
        if is_left:
            output, second = call.written[0], _mapped(
                self._framework, call.written[0], lambda tensor: inputs.of[id(tensor)])
        if self.check.fixes:
            replaced = self._fix(call, output, second)
            return None if is_left else replaced
        compare = self.check.compare_cpu if mode == "to_cpu" else self.check.compare
        comparison = compare(call.facts, mode, output, second)
        if comparison.problem:
            self.check.skip(call.facts, mode, comparison.problem)
            return None
        if call.preheat == 2:
            self._sample(call, comparison, lambda one: self._run(call, one, "to_cpu"), output)
        if not comparison.is_consistent and self.check.wants_expected(comparison):
            self._explain(call, comparison, mode, lambda one: self._run(call, one, "exact"),
                          output)
        self.check.report(comparison)
        return None

    def _run(self, call: _Call, inputs: _Inputs, mode: str) -> Any:
        """The result of the function, with every state as it was before the first run."""
        framework = self._framework
        is_precise = mode in ("improve_precision", "to_cpu", "exact")
        if call.random_after is not None:
            framework.set_random(call.random)
        now = call.random if call.random_after is None else call.random_after
        try:
            with framework.precise(is_precise):
                return call.function(*inputs.args, **inputs.kwargs)
        finally:
            values = (*call.args, *call.kwargs.values())
            if not framework.same_random(now, framework.random(call.tensors, values)):
                framework.set_random(now)

    def _inputs(self, call: _Call, change: Callable[[Any], Any]) -> _Inputs:
        """Arguments in which each tensor is `change(tensor)`, or itself where that is None.

        What the call writes to is always a copy of its own.
        """
        framework = self._framework
        of: dict[int, Any] = {}

        def one(tensor: Any) -> Any:
            if id(tensor) not in of:
                copy = call.copies.get(id(tensor))
                source = tensor if copy is None else copy
                changed = change(source)
                if changed is None or changed is copy:
                    changed = tensor if copy is None else framework.copy(copy)
                of[id(tensor)] = changed
            return of[id(tensor)]

        args = _mapped(framework, call.args, one)
        return _Inputs(args, _mapped(framework, call.kwargs, one), of)

    def _perturb(self, call: _Call, mode: str) -> tuple[_Inputs | None, str]:
        """The arguments of the second run; none, and why: nothing can be changed."""
        framework = self._framework
        if mode == "no_change":
            return self._inputs(call, lambda _: None), ""
        if mode == "to_cpu":
            return self._inputs(call, framework.on_cpu), ""
        if mode == "improve_precision":
            if not any(framework.is_narrow(tensor) for tensor in call.tensors) \
                    and not framework.rounds_by_itself():
                return None, "no input is in low precision"
            return self._inputs(call, lambda tensor: framework.single(tensor)
                                if framework.is_narrow(tensor) else None), ""
        return self._add_noise(call, mode)

    def _add_noise(self, call: _Call, mode: str) -> tuple[_Inputs | None, str]:
        """Changes the first tensor that can be changed."""
        framework, done, reason = self._framework, [False], ""

        def change(tensor: Any) -> Any:
            nonlocal reason
            if done[0] or not framework.is_floating(tensor):
                return None
            result, obstacle = framework.perturbed(
                tensor, lambda source, target: self.check.perturb(mode, source, target, call.seed))
            if obstacle:
                reason = reason or obstacle
                return None
            done[0] = True
            return result

        inputs = self._inputs(call, change)
        return (inputs, "") if done[0] else (None, reason)

    def _explain(
        self, call: _Call, comparison: Any, mode: str, run: Callable[[_Inputs], Any], output: Any
    ) -> None:
        """Has the difference compared with what exact arithmetic makes of the same change."""
        framework = self._framework
        total = sum(framework.elements(tensor) for tensor in call.tensors)
        if any(framework.is_double(tensor) for tensor in call.tensors) \
                or total > _MOST_EXACT_ELEMENTS:
            return

        # An operator that rounds its inputs by itself gives away so much.
        narrow = next(filter(framework.is_narrow, _tensors(framework, output)), None)

        def exact(tensor: Any) -> Any:
            return framework.double(tensor) if framework.is_floating(tensor) else None

        def double_floats(tensor: Any) -> Any:
            return framework.double(tensor) if framework.is_floating(tensor) else tensor

        def rounded(seed: int) -> Callable[[Any], Any]:
            def change(tensor: Any) -> Any:
                if not framework.is_floating(tensor):
                    return None
                if narrow is not None and not framework.is_narrow(tensor):
                    tensor = framework.cast_as(tensor, narrow)
                result, obstacle = framework.perturbed(
                    tensor, lambda source, target: self.check.perturb("ulp", source, target, seed))
                return framework.double(tensor if obstacle else result)

            return change

        try:
            base = run(self._inputs(call, exact))
            # The change itself says most; of what changes no value, rounding says all.
            for seed in _SEEDS[:1] if mode in _NOISE else _SEEDS:
                self.check.explain(comparison, base, run(self._inputs(call, rounded(seed))))
            again = self._add_noise(call, mode)[0] if mode in _NOISE else None
            if again is not None:
                of = {key: double_floats(tensor) for key, tensor in again.of.items()}
                args, kwargs = (_mapped(framework, value, lambda tensor: of[id(tensor)])
                                for value in (call.args, call.kwargs))
                self.check.explain(comparison, base, run(_Inputs(args, kwargs, of)))
        except Exception as error:
            if call.facts.api not in self._without_estimate:
                self._without_estimate.add(call.facts.api)
                _core.log_info(f"perturbation check: {call.facts.name}: no estimate of what is "
                               f"expected: {_first_line(error)}")

    def _sample(
        self, call: _Call, comparison: Any, run: Callable[[_Inputs], Any], output: Any
    ) -> None:
        agrees = True
        try:
            golden = run(self._inputs(call, self._framework.on_cpu))
            agrees = self.check.compare_cpu(call.facts, "to_cpu", output, golden).is_consistent
        except Exception as error:
            _core.log_info(f"perturbation check: {call.facts.name}: no run on the CPU: "
                           f"{_first_line(error)}")
        self.check.add_sample(comparison, agrees)

    def _fix(self, call: _Call, output: Any, second: Any) -> Any:
        """The output with the values of the second run."""
        framework = self._framework
        pairs = list(_pairs(framework, output, second))
        written = {framework.memory(one) for one in _tensors(framework, call.written)}
        inputs = {framework.memory(one) for one in call.tensors}
        self.check.fixed(call.facts, [one for one, _ in pairs], [other for _, other in pairs])
        of = {}
        for one, other in pairs:
            memory = framework.memory(one)
            aliases = "written" if memory in written else "view" if memory in inputs else ""
            of[id(one)] = framework.replaced(one, other, aliases)
        return _mapped(framework, output, lambda tensor: of[id(tensor)])

    def _await_gradients(self, call: _Call, output: Any) -> None:
        framework, facts = self._framework, call.facts.backward()
        if not any(call.wanted):
            self._skip(facts, "no input needs a gradient")
            return
        # Not the tensors themselves: they may lead to the node that will hold this.
        waiting = _Call(facts, call.function, (), {})
        plain = {id(tensor): framework.detached(call.copies.get(id(tensor), tensor))
                 for tensor in call.tensors}
        waiting.args = _mapped(framework, call.args, lambda tensor: plain[id(tensor)])
        waiting.kwargs = _mapped(framework, call.kwargs, lambda tensor: plain[id(tensor)])
        waiting.tensors = [plain[id(tensor)] for tensor in call.tensors]
        waiting.wanted, waiting.preheat, waiting.seed = call.wanted, call.preheat, call.seed
        waiting.copies = {id(plain[key]): plain[key] for key in call.copies}
        waiting.versions = [framework.version(tensor) for tensor in waiting.tensors]
        waiting.random, waiting.random_after = call.random, call.random_after
        if not any(framework.is_floating(tensor) for tensor in _tensors(framework, output)):
            self._skip(facts, "the output holds no floating-point tensor")
            return
        if not framework.has_backward_hooks:
            self._waiting.append(waiting)
            return
        places: list[int] = []

        def arrived(gradients: Any) -> None:
            if waiting.tensors:
                self.check.guarded(lambda: self._gradients_arrived(waiting, places, gradients))

        places += framework.gradient_hook(output, arrived)
        if places:
            self._waiting.append(waiting)
        else:
            self._skip(facts, "its output has no way back")

    def _gradients_arrived(
        self, call: _Call, places: list[int] | None, gradients: Any
    ) -> None:
        framework = self._framework
        with framework.quiet():
            try:
                if any(framework.version(tensor) != version for tensor, version
                       in zip(call.tensors, call.versions, strict=True)):
                    self._skip(call.facts, "an input was changed before the way back")
                    return
                for mode in self._modes:
                    self._compare_gradients(call, places, gradients, mode)
            except Exception as error:
                self._skip(call.facts, f"the second way back failed: {_first_line(error)}")
            finally:
                call.tensors, call.args, call.kwargs, call.copies = [], (), {}, {}

    def _compare_gradients(
        self, call: _Call, places: list[int] | None, gradients: Any, mode: str
    ) -> None:
        if call.random_after is not None and mode in ("improve_precision", "to_cpu"):
            self._skip(call.facts, "it draws random numbers")
            return
        inputs, reason = self._perturb(call, mode)
        if inputs is None:
            self.check.skip(call.facts, mode, reason)
            return
        now = self._framework.random(call.tensors, (*call.args, *call.kwargs.values()))

        def way_back(one: _Inputs, kind: str) -> list[Any]:
            return self._way_back(call, one, kind, places, gradients)

        try:
            origin = way_back(self._inputs(call, lambda _: None), "")
            second = way_back(inputs, mode)
            compare = self.check.compare_cpu if mode == "to_cpu" else self.check.compare
            comparison = compare(call.facts, mode, origin, second)
            if comparison.problem:
                self.check.skip(call.facts, mode, comparison.problem)
                return
            if call.preheat == 2:
                self._sample(call, comparison, lambda one: way_back(one, "to_cpu"), origin)
            if not comparison.is_consistent and self.check.wants_expected(comparison):
                self._explain(call, comparison, mode, lambda one: way_back(one, "exact"), origin)
            self.check.report(comparison)
        finally:
            self._framework.set_random(now)

    def _way_back(self, call: _Call, inputs: _Inputs, mode: str, places: list[int] | None,
                  gradients: Any) -> list[Any]:
        """Gradients of the inputs that need them, with the gradients that arrived."""
        framework = self._framework
        wanted = [tensor for tensor, is_wanted in zip(call.tensors, call.wanted, strict=True)
                  if is_wanted]

        def run(leaves: list[Any]) -> list[Any]:
            of = dict(zip((id(tensor) for tensor in wanted), leaves, strict=True))

            def one(tensor: Any) -> Any:
                leaf = of.get(id(tensor), inputs.of[id(tensor)])
                return framework.copy(leaf) if id(tensor) in call.copies else leaf

            if call.random_after is not None:
                framework.set_random(call.random)
            with framework.precise(mode in ("improve_precision", "to_cpu", "exact")):
                output = call.function(*_mapped(framework, call.args, one),
                                       **_mapped(framework, call.kwargs, one))
            tensors = list(_tensors(framework, output))
            if places is None:
                return [tensor for tensor in tensors if framework.is_floating(tensor)]
            return [tensors[place] for place in places]

        return framework.gradients(run, [inputs.of[id(tensor)] for tensor in wanted], gradients)

    def _skip(self, facts: Any, reason: str) -> None:
        for mode in self._modes:
            self.check.skip(facts, mode, reason)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]


def _tensors(framework: SecondRuns, value: Any, depth: int = 0) -> Iterator[Any]:
    """All tensors in lists, tuples and dicts, depth first."""
    if framework.is_tensor(value):
        yield value
    elif depth <= _MOST_NESTING and isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(framework, item, depth + 1)


def _mapped(framework: SecondRuns, value: Any, change: Callable[[Any], Any], depth: int = 0) -> Any:
    """`value` with every tensor replaced; the same object where none is."""
    if framework.is_tensor(value):
        return change(value)
    if depth > _MOST_NESTING or not isinstance(value, (list, tuple, dict)):
        return value
    if isinstance(value, dict):
        items = {key: _mapped(framework, item, change, depth + 1) for key, item in value.items()}
        return items if any(items[key] is not value[key] for key in items) else value
    parts = [_mapped(framework, item, change, depth + 1) for item in value]
    if all(new is old for new, old in zip(parts, value, strict=True)):
        return value
    if isinstance(value, list):
        return parts
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def _pairs(framework: SecondRuns, output: Any, second: Any) -> Iterator[tuple[Any, Any]]:
    """The tensors of two outputs of one structure, together.

    Raises:
        ValueError: they are not of one structure.
    """
    if framework.is_tensor(output):
        if not framework.is_tensor(second) or tuple(output.shape) != tuple(second.shape):
            raise ValueError("the second output has another shape")
        yield output, second
    elif isinstance(output, dict):
        if not isinstance(second, dict) or output.keys() != second.keys():
            raise ValueError("the second output has other keys")
        for key in output:
            yield from _pairs(framework, output[key], second[key])
    elif isinstance(output, (list, tuple)):
        if not isinstance(second, (list, tuple)) or len(output) != len(second):
            raise ValueError("the second output has another length")
        for one, other in zip(output, second, strict=True):
            yield from _pairs(framework, one, other)


class PerturbationWindow(CallWindow):
    """A window in which calls are run again instead of recorded."""

    def register_custom_api(self, module: Any, api: str, api_prefix: str | None) -> None:
        self.warn_once("register_custom_api(): functions of the user are not run twice by task "
                       "free_benchmark")

    def _use_config(self, config: _core.Config) -> None:
        super()._use_config(config)
        self._calls = PerturbedCalls(self._recorder, config, self._adapter)
        for warning in self._calls.check.warnings:
            _core.log_warning(warning)

    def _install(self) -> None:
        rank = self._rank() if self._rank_id is None else self._rank_id
        self._calls.check.begin(self._recorder.current_step, rank)
        super()._install()
        self._calls.check.set_open(True)

    def _uninstall(self) -> None:
        self._calls.check.set_open(False)
        super()._uninstall()

    def _stop(self) -> None:
        super()._stop()
        self._guarded(self._calls.end_window)

    def _step(self) -> None:
        super()._step()
        self._guarded(self._calls.end_step)

    def _close_recorder(self) -> None:
        super()._close_recorder()
        if os.getpid() == self._pid:
            self._calls.end_step()
            self._calls.check.close()
