"""Every way to watch a training of PyTorch, by name; what it must leave as it was."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

# Of PrecisionDebugger: name -> configuration.
RECORDERS: dict[str, dict[str, Any]] = {
    "statistics-L0": {"level": "L0", "task": "statistics"},
    "md5-L1": {"level": "L1", "task": "statistics", "statistics": {"summary_mode": "md5"}},
    "tensor-mix": {"level": "mix", "task": "tensor", "step": [10, 19]},
    "overflow-check": {"level": "mix", "task": "overflow_check",
                       "overflow_check": {"overflow_nums": -1}},
    "grad-probe": {"task": "grad_probe",
                   "grad_probe": {"grad_level": "L2", "bounds": [-0.1, 0, 0.1]}},
    "perturbation-forward": {"task": "free_benchmark", "free_benchmark": {
        "pert_mode": ["add_noise", "change_value"]}},
    "perturbation-backward": {"task": "free_benchmark", "free_benchmark": {
        "pert_mode": "add_noise", "fuzz_stage": "backward"}},
}
# Who watches tells what it saw in a file of this pattern, in directory "out".
EVIDENCE = {
    **dict.fromkeys(RECORDERS, "step19/rank*/dump.json"),
    "grad-probe": "rank*/grad_summary_19.csv", "monitor": "*/actv_grad_19-19.csv",
    "perturbation-forward": "rank*/free_benchmark_summary.csv",
    "perturbation-backward": "rank*/free_benchmark_summary.csv",
    "black-box": "*/actv_0-63.csv", "overflow-tracer": "overflow_trace_rank*.json",
}
NAMES = [*RECORDERS, "monitor", "black-box", "overflow-tracer"]
MONITOR = {
    "targets": {}, "ops": ["norm", "min", "max", "mean", "nans", "zeros"],
    "xy_distribution": True, "wg_distribution": True, "mv_distribution": True,
    "param_distribution": True, "param_updated": True, "mg_direction": True,
    "stack_info": True, "all_elements": True,
    "alert": {"rules": [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}},
                        {"rule_name": "AnomalyNan"}], "dump": True}}


@dataclass
class Training:
    """What is trained; `step` trains one step and tells its results."""

    models: list[nn.Module]
    optimizers: list[Any]  # of each model its own
    step: Callable[[Trace], None]
    micro_batches: int = 1


class Trace:
    """Hashes of everything that a training gives, by kind."""

    def __init__(self) -> None:
        self._hashes: dict[str, Any] = {}

    def add(self, kind: str, value: Any) -> None:
        """Tensors count with dtype, shape, strides and bits."""
        self._absorb(self._hashes.setdefault(kind, hashlib.sha256()), value)

    def gradients(self, model: nn.Module) -> None:
        """As the optimizer reads them."""
        self.add("gradients", [one.grad for one in model.parameters()])

    def end_step(self, training: Training) -> None:
        """What the step left behind."""
        for model in training.models:
            self.add("weights", list(model.parameters()))
            self.add("buffers", list(model.buffers()))
        for optimizer in training.optimizers:
            self.add("optimizer", optimizer.state_dict())
        self.add("random", [torch.get_rng_state(), random.getstate(),
                            str(np.random.get_state(legacy=False))])

    def result(self) -> dict[str, str]:
        """Kind -> hash."""
        return {kind: one.hexdigest()[:16] for kind, one in self._hashes.items()}

    def _absorb(self, digest: Any, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            digest.update(f"{value.dtype}{value.shape}{value.stride()}".encode())
            digest.update(value.detach().contiguous().view(-1).view(torch.uint8).numpy())
        elif isinstance(value, dict):
            self._absorb(digest, list(value.items()))
        elif isinstance(value, (list, tuple)):
            digest.update(f"{len(value)}:".encode())
            for one in value:
                self._absorb(digest, one)
        else:
            digest.update(repr(value).encode())


# ---- front ends

def _write(directory: Path, config: dict[str, Any]) -> str:
    """The file of this process."""
    path = directory / f"config{os.getpid()}.json"
    path.write_text(json.dumps(config))
    return str(path)


def _debugger(config: dict[str, Any], training: Training, directory: Path, stack: ExitStack) -> Any:
    from plumbline.debugger import DebuggerBase
    from plumbline.pytorch import PrecisionDebugger

    path = _write(directory, {"dump_path": str(directory / "out"), **config})
    debugger = PrecisionDebugger(path)

    def close() -> None:
        debugger._close()
        DebuggerBase._instance = None

    stack.callback(close)
    if config["task"] == "grad_probe":
        debugger.monitor(training.models)
    models = training.models if len(training.models) > 1 else training.models[0]
    needs_model = config.get("level") in ("L0", "mix")

    @contextmanager
    def window() -> Iterator[None]:
        debugger.start(model=models if needs_model else None)
        yield
        debugger.stop()
        debugger.step()

    return window


def _monitor(training: Training, directory: Path, stack: ExitStack) -> None:
    from plumbline.pytorch import TrainerMon

    communication = {"enable": True, "cc_pre_hook": True} if dist.is_initialized() else {}
    path = _write(directory, {**MONITOR, "cc_distribution": communication})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MONITOR_OUTPUT_DIR", str(directory / "out"))
        monitor = TrainerMon(path)
    stack.callback(monitor.stop)
    for model, optimizer in zip(training.models, training.optimizers, strict=True):
        monitor.set_monitor(model, grad_acc_steps=training.micro_batches, optimizer=optimizer)


def _black_box(training: Training, directory: Path, stack: ExitStack) -> None:
    from plumbline.pytorch import black_box

    for model, optimizer in zip(training.models, training.optimizers, strict=True):
        stack.callback(black_box(model, optimizer, directory / "out", budget=None).stop)


def _tracer(training: Training, directory: Path, stack: ExitStack) -> None:
    from plumbline.pytorch import OverflowTracer

    for model in training.models:
        tracer = OverflowTracer(model, trace_batch_nums=[19], dump_path=directory / "out",
                                raise_on_overflow=False)
        stack.callback(tracer.remove)


_OTHERS = {"monitor": _monitor, "black-box": _black_box, "overflow-tracer": _tracer}


@contextmanager
def watched(name: str, training: Training,
            directory: Path) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Watches until the block ends; gives the context of every step. "none" watches nothing."""
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        if name in RECORDERS:
            yield _debugger(RECORDERS[name], training, directory, stack)
            return
        if name != "none":
            _OTHERS[name](training, directory, stack)
        yield nullcontext


# ---- objects

_STACKS = [torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack,
           torch.is_grad_enabled, torch.is_anomaly_enabled]
# What every training changes, watched or not.
_OWN = {"next_id", "state", "_numel_cache", "__warningregistry__"}
_LOUD = {"reduce_op"}  # deprecated, and says so when it is looked at


def _owners() -> list[Any]:
    """Modules and classes that a front end may patch."""
    found = [torch, torch.Tensor, torch._C._TensorBase, type(torch._C._VariableFunctions),
             nn.functional, nn.Module, torch._C._nn, torch.linalg, torch.fft, torch.special,
             torch.autograd, torch.autograd.Function, torch.autograd.graph, torch.autograd.function,
             torch.autograd.variable.Variable, torch.utils.hooks, torch.utils.hooks.BackwardHook,
             torch.utils.hooks.RemovableHandle, nn.modules.module, torch.optim.Optimizer,
             sys.modules["torch.optim.optimizer"], torch.utils.checkpoint, random, np.random]
    if dist.is_available():
        found += [dist, dist.distributed_c10d, dist.Work, dist.P2POp, dist.ProcessGroup]
    return found


def _contents(value: Any) -> Any:
    """A dict of hooks or names with what is in it; another object as it is."""
    if isinstance(value, dict):
        return (value, list(value.items()))
    return (value, value.__code__) if isinstance(value, types.FunctionType) else value


def objects_of(training: Training) -> dict[str, Any]:
    """Everything that a front end could have put in the place of something else, by its path."""
    modules = [one for model in training.models for one in model.modules()]
    parameters = [one for model in training.models for one in model.parameters()]
    kinds = dict.fromkeys(type(one) for one in [*modules, *training.optimizers])
    found: dict[str, Any] = {}
    owners = [*_owners(), *kinds, *modules, *parameters, *training.optimizers]
    for number, owner in enumerate(owners):
        label = f"{number} {getattr(owner, '__name__', type(owner).__name__)}"
        for name, value in vars(owner).items():
            if name not in _OWN | _LOUD and not isinstance(value, types.ModuleType):
                found[f"{label}.{name}"] = _contents(value)
    for at, one in enumerate(parameters):
        found[f"hooks of parameter {at}"] = [
            list((one._backward_hooks or {}).items()),
            list((one._post_accumulate_grad_hooks or {}).items())]
    found["process"] = [sys.excepthook, threading.excepthook, sys.unraisablehook,
                        signal.getsignal(signal.SIGTERM), sys.getprofile(), sys.gettrace(),
                        *(stack() for stack in _STACKS)]
    return found


def changed(before: dict[str, Any], training: Training) -> list[str]:
    """Paths under which other objects are now."""
    after = objects_of(training)
    return sorted(name for name in before.keys() | after.keys()
                  if name not in before or name not in after
                  or not _same(before[name], after[name]))


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, (int, float, str)) and one == other


def train(name: str, make: Callable[[], Training], directory: Path,
          steps: int = 20) -> dict[str, Any]:
    """Hashes of a training under a front end, and what the front end left behind."""
    torch.set_num_threads(1)
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    training = make()
    before = objects_of(training)
    trace = Trace()
    with watched(name, training, directory) as window:
        for _ in range(steps):
            with window():
                training.step(trace)
            trace.end_step(training)
    return {"changed": changed(before, training), **trace.result()}
