"""black_box(): always on, nearly free; says what went wrong first in a training."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import math
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import torch

from plumbline import _core
from plumbline.guards import CopyableHook
from plumbline.pytorch.adapter import TorchAdapter
from plumbline.watch.monitor_parts import Handle
from plumbline.watch.on_pytorch.monitor_parts import TorchMonitorParts, is_recomputing
from plumbline.watch.step_calls import StepCalls

# Optimizers whose state follows from its settings in the way that the native rules know.
_ADAMS = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax")
_SETTINGS = ("lr", "weight_decay")
_MOST_EVERY = 100
# Steps in succession of another optimizer over the same parameters, until it is followed.
_OTHER_STEPS = 2


def black_box(
    model: Any, optimizer: Any = None, path: str | os.PathLike[str] = "./black_box", *,
    steps: int = 64, budget: float | None = 0.01,
) -> Any:
    """Watches a training from here on and tells what goes wrong first, where, and since when.

    Samples of parameters, gradients, momenta, outputs of modules and the loss are taken at every
    step; the last `steps` are on disk at any moment, also when the job is killed. `plumb explain
    PATH` reads them. Nothing of the training is changed.

    Args:
        model: the module; or a `transformers.Trainer` or a Lightning `Trainer`, without optimizer.
        optimizer: whose `step()` ends a step.
        path: directory; each rank and start makes one of its own in it.
        steps: how many steps are kept at least.
        budget: largest share of the step time; where it does not suffice, only every second, third
            ... step is looked at. None: every step, whatever it takes.

    Returns:
        The box: `stop()` takes every hook away, `finding` is the first thing that went wrong.

    Raises:
        ValueError: no optimizer, or an argument out of range.

    Example:
        >>> box = black_box(model, optimizer)  # doctest: +SKIP
    """
    if not isinstance(steps, int) or isinstance(steps, bool) or not 2 <= steps <= 100_000:
        raise ValueError(f"black_box: steps is {steps!r} (expected an integer from 2 to 100000)")
    if budget is not None and not 0 < budget <= 1:
        raise ValueError(f"black_box: budget is {budget!r} (expected a share of the step time, "
                         "above 0 and at most 1, or None)")
    make = functools.partial(BlackBox, path=os.fspath(path), steps=steps, budget=budget)
    if not isinstance(model, torch.nn.Module):
        return _of_trainer(model, make)
    if optimizer is None:
        raise ValueError("black_box: optimizer is None (expected the optimizer whose step() ends a "
                         "step)")
    return make(model, optimizer)


def _of_trainer(trainer: Any, make: Callable[..., Any]) -> Any:
    package = type(trainer).__module__.split(".")[0]
    if hasattr(trainer, "add_callback"):
        from plumbline.watch.on_pytorch import transformers_callback

        return transformers_callback.attach(trainer, make)
    if package in ("lightning", "pytorch_lightning"):
        from plumbline.watch.on_pytorch import lightning_callback

        return lightning_callback.attach(trainer, make)
    raise ValueError(f"black_box: model is a {type(trainer).__qualname__} (expected a "
                     "torch.nn.Module, a transformers.Trainer or a Lightning Trainer)")


class BlackBox:
    """One training that is watched; made by `black_box()`."""

    def __init__(
        self, model: torch.nn.Module, optimizer: Any, path: str, steps: int, budget: float | None
    ) -> None:
        self._model, self._optimizer, self._budget = model, optimizer, budget
        self._parts = TorchMonitorParts(TorchAdapter())
        parts = {**self._parts.framework_parts(), "name": "black box"}
        self._box = _core.new_black_box(parts, path, self._parts.rank(), steps)
        self._live = self._box.live
        self._pid = os.getpid()
        self._step, self._every = 0, 1
        self._handles: list[Handle] = []
        self._has_backward = False
        self._seconds, self._looked = 0.0, 0
        self._began = time.perf_counter()
        self._told = False
        self._ended: str | None = None
        self._is_interrupted = False
        self._messages: list[str] = []
        self._left: tuple[Any, float] | None = None
        self._last_loss: Any = None
        self._group = 0
        self._calls = StepCalls(self._tell_of_calls)
        self._is_stepping = False
        self._shares: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._other: tuple[Any, int] = (None, 0)
        self._name_rows()
        self._steps = self._parts.watch_steps(optimizer, self._before, self._after)
        self._counting = self._parts.count_calls(model, self._calls.hook)
        self._tell()
        self._write_state()
        _OPEN.add(self)
        self._guarded(self._arm)

    # ---- for the user

    @property
    def directory(self) -> str:
        """Where this rank writes."""
        return self._live.directory

    @property
    def finding(self) -> str | None:
        """The first thing that went wrong, in one line; None so far."""
        self._live.flush()
        first = self._box.first
        return None if first is None else _sentence(first)

    @property
    def first_bad_step(self) -> int | None:
        """Where it began."""
        self._live.flush()
        return None if self._box.first is None else self._box.first[1]

    @property
    def module(self) -> str | None:
        """The module that it began in; empty: the training as a whole."""
        self._live.flush()
        return None if self._box.first is None else self._box.first[3]

    def stop(self, ended: str = "stopped") -> None:
        """Takes every hook away and writes what is left."""
        if self._ended is not None:
            return
        self._ended = ended
        _OPEN.remove(self)
        self._disarm()
        self._steps.remove()
        for handle in self._counting:
            handle.remove()
        self._calls.close()
        self._live.close()
        self._tell()
        self._write_state()

    def interrupt(self, ended: str) -> None:
        """An exception or a signal ends the training."""
        self._is_interrupted = True
        self.stop(ended)

    # ---- around steps

    def _before(self) -> None:
        self._is_stepping = True
        if self._handles:
            self._guarded(self._take)

    def _after(self) -> None:
        self._is_stepping = False
        self._other = (None, 0)
        if self._ended is not None:
            return
        if self._handles:
            self._guarded(self._commit)
        self._calls.end_step()
        self._step += 1
        self._has_backward = False
        self._guarded(self._arm)

    def other_step(self, optimizer: Any) -> None:
        """Another optimizer made a step: where it has taken over the parameters, it is followed."""
        if optimizer is not self._optimizer and not self._is_stepping:
            self._guarded(lambda: self._count_other(optimizer))

    def _count_other(self, optimizer: Any) -> None:
        if optimizer not in self._shares:
            self._shares[optimizer] = self._has_taken_over(optimizer)
        if not self._shares[optimizer]:
            return
        known, steps = self._other
        steps = steps + 1 if known is not None and known() is optimizer else 1
        self._other = (weakref.ref(optimizer), steps)
        if steps == _OTHER_STEPS:
            self._follow(optimizer, steps)

    def _has_taken_over(self, optimizer: Any) -> bool:
        mine = {id(one) for one in self._parameters}
        own = mine & {id(one) for one in _parameters_of(self._optimizer)}
        others = {id(one) for one in _parameters_of(optimizer)}
        return 2 * len((own or mine) & others) >= len(own or mine) > 0

    def _follow(self, optimizer: Any, missed: int) -> None:
        kinds = type(self._optimizer).__name__, type(optimizer).__name__
        self._steps.remove()
        self._live.drop()
        self._group += len(getattr(self._optimizer, "param_groups", []))
        self._optimizer = optimizer
        self._steps = self._parts.watch_steps(optimizer, self._before, self._after)
        self._read_kind()
        first, self._step = self._step, self._step + missed
        self._other = (None, 0)
        self._calls.end_step()
        self._has_backward, self._left = False, None
        self._warn(f"the {kinds[0]} that it was given makes no step any more, another {kinds[1]} "
                   f"over the same parameters does: it is followed from step {self._step} on, "
                   f"steps {first} to {self._step - 1} were not seen")

    def backward(self, loss: Any) -> None:
        """A backward pass begins at `loss`."""
        if self._handles:
            self._guarded(lambda: self._look_at_backward(loss))

    def _tell_of_calls(self) -> None:
        self._warn(self._calls.sentence(self._step))
        self._write_state()

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # a black box never stops a training
            self._note(f"stops watching after an error of its own, at step {self._step}: "
                       f"{type(error).__name__}: {error}")
            self._disarm()
            self._every = 0

    def _arm(self) -> None:
        wants = self._every > 0 and self._step % self._every == 0 and not self._box.is_frozen
        if wants and not self._handles:
            self._handles = [
                module.register_forward_hook(CopyableHook(sample.after))
                for module, sample in self._samples
            ]
            self._handles.append(self._model.register_forward_pre_hook(
                CopyableHook(self._input.before), with_kwargs=True))
        elif not wants:
            self._disarm()
        if self._box.is_frozen:
            self._tell()

    def _disarm(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._live.drop()

    def _take(self) -> None:
        began = time.perf_counter()
        self._take_settings()
        self._take_left()
        if self._last_loss is not None:  # of the backward pass that the step belongs to
            self._live.add("other", self._loss, self._last_loss)
        self._last_loss = None
        parameters = self._parameters
        self._live.add_all("param", self._names, parameters)
        self._live.add_all("grad_reduced", self._names, [one.grad for one in parameters])
        if self._momentum_key:
            self._live.add_all("exp_avg", self._names, self._momenta())
        self._seconds += time.perf_counter() - began

    def _commit(self) -> None:
        began = time.perf_counter()
        self._live.commit(self._step)
        self._seconds += time.perf_counter() - began + self._box.take_seconds()
        self._looked += 1
        if self._looked in (5, 20) or self._looked % 100 == 0:
            self._keep_budget()

    def _keep_budget(self) -> None:
        """Looks at fewer steps where looking takes more than its share."""
        now = time.perf_counter()
        steps = self._looked * self._every
        step_seconds = max((now - self._began - self._seconds) / max(steps, 1), 1e-9)
        share = self._seconds / self._looked / step_seconds
        if self._budget is not None:
            self._every = min(max(1, math.ceil(share / self._budget)), _MOST_EVERY)
        self._seconds, self._looked, self._began = 0.0, 0, now

    # ---- values

    def _name_rows(self) -> None:
        named = list(self._parts.parameters(self._model))
        self._parameters = [parameter for _, parameter in named]
        self._names = [self._live.name(name, 0, 1 + at) for at, (name, _) in enumerate(named)]
        self._loss = self._live.name("loss")
        self._uncleared = self._live.name("uncleared")
        self._input = _core.InputSample(self._box, "input")
        self._samples = [
            (module, _core.OutputSample(self._box, is_recomputing, name))
            for name, module in self._model.named_modules()
            if name and not any(True for _ in module.children())
        ]
        self._read_kind()

    def _read_kind(self) -> None:
        kind = type(self._optimizer).__name__
        self._is_adam = kind in _ADAMS
        self._momentum_key = "exp_avg" if self._is_adam else (
            "momentum_buffer" if kind == "SGD" else "")

    def _take_settings(self) -> None:
        for at, group in enumerate(getattr(self._optimizer, "param_groups", []), self._group):
            values = {key: group[key] for key in _SETTINGS if key in group}
            if self._is_adam and "betas" in group:
                values["beta1"], values["beta2"] = group["betas"]
            elif self._momentum_key and "momentum" in group:
                values["momentum"] = group["momentum"]
            for key, value in values.items():
                if value is None:  # the optimizer finds it itself
                    continue
                self._live.add("other", self._live.name(f"{key}.{at}"), float(value))

    def _momenta(self) -> list[Any]:
        state = self._optimizer.state
        key = self._momentum_key
        return [state[one].get(key) if one in state else None for one in self._parameters]

    def _look_at_backward(self, loss: Any) -> None:
        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            self._last_loss = loss.detach()
        if self._has_backward:
            return
        self._has_backward = True
        gradients = [one.grad for one in self._parameters]
        there = next((one for one in gradients if one is not None), None)
        if there is not None:
            self._left = (weakref.ref(there), self._box.norm(gradients))

    def _take_left(self) -> None:
        """Gradients that were there when the backward pass began count if it was added to them:
        where they were cleared after all, as between the two losses of a GAN, others are there.
        """
        left, self._left = self._left, None
        is_there = left is not None and any(one.grad is left[0]() for one in self._parameters
                                            if one.grad is not None)
        self._live.add("other", self._uncleared, left[1] if left and is_there else 0.0)

    # ---- what is said

    def _tell(self) -> None:
        for message in self._live.take_messages():
            self._note(message)
        first = self._box.first
        # Some steps later, when what began before it is known too.
        is_settled = self._box.is_frozen or self._ended is not None
        if first is not None and is_settled and not self._told:
            self._told = True
            advice = (f". Run: plumb explain {os.path.dirname(self.directory)}"
                      if self.directory else "")
            self._warn(_sentence(first) + advice)

    def _warn(self, text: str) -> None:
        _core.log_warning(f"black box: {text}")

    def _note(self, text: str) -> None:
        """Says what cannot be judged; explain says it too."""
        self._messages.append(text)
        self._warn(text)
        self._write_state()

    def _write_state(self) -> None:
        if os.getpid() != self._pid:
            return  # a forked child's end is not the training's
        kinds = [type(self._model).__qualname__, type(self._optimizer).__qualname__]
        state = {"model": kinds[0], "optimizer": kinds[1], "parameters": len(self._parameters),
                 "modules": len(self._samples), "ended": self._ended,
                 "interrupted": self._is_interrupted, "steps": self._step,
                 "calls_without_step": self._calls.too_many, "messages": self._messages}
        try:
            self._box.write(json.dumps(state))
        except OSError as error:
            self._warn(f"how the training is cannot be written: {error}")


def _parameters_of(optimizer: Any) -> list[Any]:
    return [one for group in getattr(optimizer, "param_groups", []) for one in group["params"]]


def _sentence(first: tuple[str, int, str, str, str]) -> str:
    fault, step, _, _, text = first
    return f"first bad step {step}: {text} ({fault})"


class _OpenBoxes:
    """The boxes of this process, and what they hear of the process: backward passes and its end."""

    def __init__(self) -> None:
        self._boxes: list[BlackBox] = []
        self._patches: Any = None
        self._hook: Callable[..., Any] | None = None
        self._own_hook: Any = None
        self._handler: Any = None
        self._has_atexit = False
        self._steps: Handle | None = None

    def add(self, box: BlackBox) -> None:
        """This one listens too."""
        self._boxes.append(box)
        if len(self._boxes) == 1:
            self._listen()

    def remove(self, box: BlackBox) -> None:
        """It listens no more; the last one leaves everything as it was."""
        if box in self._boxes:
            self._boxes.remove(box)
        if not self._boxes:
            self._restore()

    def end(self, how: str, is_interrupted: bool = False) -> None:
        """The process ends."""
        for box in list(self._boxes):
            if is_interrupted:
                box.interrupt(how)
            else:
                box.stop(how)

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """Any optimizer of the process made a step."""
        for box in list(self._boxes):
            box.other_step(optimizer)

    def _listen(self) -> None:
        original: Any = torch.Tensor.backward

        @functools.wraps(original)
        def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
            for box in _OPEN._boxes:
                box.backward(self)
            return original(self, *args, **kwargs)

        self._patches = _core.PatchSet()
        self._patches.add(torch.Tensor, "backward", backward)
        self._patches.apply()
        # torch.optim hides the module, which has no such function before 2.1.
        hooks = importlib.import_module("torch.optim.optimizer")
        register = getattr(hooks, "register_optimizer_step_post_hook", None)
        self._steps = None if register is None else register(self.stepped)
        if not self._has_atexit:
            self._has_atexit = True
            atexit.register(self.end, "the process ended")
        self._hook = sys.excepthook

        def excepthook(kind: Any, error: Any, trace: Any) -> None:
            self.end(f"{kind.__name__}: {str(error)[:200]}".removesuffix(": "), True)
            previous: Callable[..., Any] = self._hook or sys.__excepthook__
            previous(kind, error, trace)

        self._own_hook = excepthook
        sys.excepthook = excepthook
        if (threading.current_thread() is threading.main_thread()
                and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL):
            self._handler = self._terminated
            signal.signal(signal.SIGTERM, self._handler)

    def _restore(self) -> None:
        if self._patches is not None:
            self._patches.restore()
            self._patches = None
        if self._steps is not None:
            self._steps.remove()
            self._steps = None
        if sys.excepthook is self._own_hook and self._hook is not None:
            sys.excepthook = self._hook
        if self._handler is not None and signal.getsignal(signal.SIGTERM) == self._handler:
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._handler = None

    def _terminated(self, number: int, _: Any) -> None:
        self.end("SIGTERM", True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


_OPEN = _OpenBoxes()
