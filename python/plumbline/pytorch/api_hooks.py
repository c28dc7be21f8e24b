"""Recording API calls: probes in place of the functions named in apis.json, while a window is open.

Two nets, chosen by measurement (docs/design/interception.md):

- Every listed attribute is replaced by a native probe. This gives upstream's names exactly
  (`Tensor.__mul__` and `Tensor.mul` are one function for PyTorch's own override mechanism), sees
  calls from every thread and costs about 0.1 us per call before anything is recorded.
- A torch-function mode catches calls through references taken before the window opened
  (`from torch import relu`, `config.act = F.gelu`), which still point to the originals, and those
  of `torch.ops`, whose attributes others compare by identity.

Outside the window nothing is replaced.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim import optimizer as optimizers
from torch.overrides import TorchFunctionMode

from plumbline import _core
from plumbline.api_hooks import ApiHooksBase
from plumbline.api_list import present_apis, read_api_list
from plumbline.call_regions import CallRegions
from plumbline.custom_ops_file import is_removed
from plumbline.pytorch.compiled import CompiledRegions
from plumbline.pytorch.distributed import FUNCTIONAL, DistributedHooks
from plumbline.pytorch.triton_kernels import TritonHooks


def wrapped_apis() -> Iterator[tuple[str, str, object, str]]:
    """Yields (prefix, name, owner, attribute) for each listed API that this PyTorch has."""
    owners: list[tuple[str, str, object]] = [
        ("functional", "Functional", torch.nn.functional),
        ("tensor", "Tensor", torch.Tensor),
        ("torch", "Torch", torch),
        ("_VF", "VF", torch._VF),
    ]
    npu = sys.modules.get("torch_npu")  # PyTorch loads it by itself where it is installed
    if npu is not None:
        owners.append(("torch_npu", "NPU", npu))
    return present_apis(read_api_list(__file__), owners)


# Operators that PyTorch looks up as a method, before it tells a mode of them.
_LOOKED_UP_AS = {
    "__abs__": "abs", "__ipow__": "pow_", "__itruediv__": "div_", "__le__": "le", "__lt__": "lt",
    "__ne__": "ne", "__neg__": "neg", "__pos__": "positive", "__rand__": "__and__",
    "__ror__": "__or__", "__rxor__": "__xor__",
}
# Of the operators of torch.ops that are listed.
_PREFIXES = {"aten": "Aten", "npu": "NPU"}
# What is recorded unless custom_op_namespaces says more, as upstream does.
_NAMESPACE = "_C_ascend"


class _FunctionMode(TorchFunctionMode):
    """Passes calls of listed functions that did not go through an attribute to their probes."""

    def __init__(self, recorder: _core.Recorder, probes: dict[Any, Any],
                 distributed: DistributedHooks) -> None:
        super().__init__()
        self._recorder, self._probes, self._distributed = recorder, probes, distributed
        lists = read_api_list(__file__)
        self._listed = {f"Aten.{name}" for name in lists["aten"]}
        self._listed |= {f"NPU.{name}" for name in lists["torch_npu"]}
        self._namespaces = {_NAMESPACE, *recorder.custom_op_namespaces}

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        probe = self._probes.get(func)
        if probe is None:
            is_operator = isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket))
            probe = self._operator(func) if is_operator else func
        return probe(*args, **(kwargs or {}))

    def _operator(self, func: Any) -> Any:
        """`Aten.add` or `Aten.add.Tensor`, `my_ops.scale`; `func` itself if it is not asked for."""
        packet = getattr(func, "overloadpacket", func)
        namespace, operator = packet._qualified_op_name.split("::", 1)
        overload = "" if func is packet else func._overloadname
        name = f"{_PREFIXES.get(namespace, '')}.{operator}"
        is_wanted = name in self._listed
        if not is_wanted and namespace in self._namespaces:
            # A call of the operator's Python function is one of its only overload.
            is_wanted, name = True, f"{namespace}.{operator}"
            overload = "" if overload == "default" else overload
        if namespace == FUNCTIONAL and operator[0] != "_" and not is_removed(name):
            probe = self._distributed.functional_probe(func, operator)
            return self._probes.setdefault(func, probe)
        if is_wanted and not is_removed(name):
            full = f"{name}.{overload}" if overload else name
            self._probes[func] = self._recorder.probe(func, full, False)
        return self._probes.setdefault(func, func)


class ApiHooks(ApiHooksBase):
    """The probes of one process and the places where they are installed."""

    def __init__(self, compiled: CompiledRegions) -> None:
        super().__init__()
        self._guards.add(torch, "save")
        self._guards.add(torch.jit._script, "_script_impl")  # looks functions up by identity
        self._compiled = compiled
        self._thread = 0  # that has the mode
        self._mode: _FunctionMode | None = None
        self._mode_is_due = False  # must be put on the stack
        self._regions: CallRegions | None = None
        self.models: list[torch.nn.Module] = []  # what start() was given

    def _begin(self, recorder: _core.Recorder, with_regions: bool) -> None:
        if with_regions and self._regions is not None:
            self._regions.steps.use_models(self.models)
            self._regions.install()
        self._compiled.join(recorder, self, is_traced=False)
        self._thread = threading.get_ident()
        self._mode_is_due = True

    def _end(self) -> None:
        if self._regions is not None:
            self._regions.uninstall()
        self._compiled.leave(self)

    def resume(self) -> None:
        """Puts the probes back; meanwhile the compiler may have been loaded."""
        super().resume()
        if self._suspended == 0 and self._is_installed:
            self._compiled.watch()

    def _build(self, recorder: _core.Recorder) -> None:
        probes: dict[Any, Any] = {}
        names: dict[Any, str] = {}
        tensor_apis = read_api_list(__file__)["tensor"]
        operators = {method for operator, method in _LOOKED_UP_AS.items()
                     if operator not in tensor_apis}
        for prefix, name, owner, attribute in wrapped_apis():
            original = getattr(owner, attribute)
            probe = recorder.probe(original, f"{prefix}.{name}", owner is torch.Tensor)
            self._patches.add(owner, attribute, probe)
            # Several names may stand for one function: the shortest (torch.mm, not torch.dsmm),
            # and of equal ones the first listed, which models call (F.conv2d, not torch.conv2d).
            # PyTorch looks methods up again before it tells the mode of them. What reaches it is a
            # method called through an earlier reference, or an operator (`x != y` is Tensor.ne),
            # which upstream records under its own name (Tensor.__add__) or not at all.
            if owner is torch.Tensor:
                probes[probe] = original if attribute in operators else probe
            elif original not in names or len(attribute) < len(names[original]):
                names[original], probes[original] = attribute, probe
        # Functions in Python pass themselves on to overrides of the user, under their global name.
        functional: Any = torch.nn.functional
        handle = functional.handle_torch_function
        self._patches.add(
            functional,
            "handle_torch_function",
            lambda api, *args, **kwargs: handle(_core.original_of(api) or api, *args, **kwargs),
        )
        distributed = DistributedHooks(recorder)
        self._mode = _FunctionMode(recorder, probes, distributed)
        utils: Any = torch.nn.utils
        self._regions = CallRegions(
            recorder,
            [(utils, f"clip_grad_{name}") for name in ("norm_", "norm", "value_")],
            tuple(
                getattr(optimizers, f"register_optimizer_step_{when}_hook", None)  # PyTorch 2.0
                for when in ("pre", "post")
            ),
        )
        self._others = [distributed, TritonHooks(recorder)]
        self._run_backward: Any = getattr(torch.autograd, "_engine_run_backward", None)
        if self._run_backward is not None:  # PyTorch 2.2
            self._patches.add(torch.autograd, "_engine_run_backward", self._backward)

    def _backward(self, *args: Any, **kwargs: Any) -> Any:
        """With the mode on, which Tensor.backward leaves off: checkpoints call functions again."""
        is_own = threading.get_ident() == self._thread
        if not is_own or torch._C._len_torch_function_stack() > 0:
            return self._run_backward(*args, **kwargs)
        torch._C._push_on_torch_function_stack(self._mode)
        try:
            return self._run_backward(*args, **kwargs)
        finally:
            _leave_mode(self._mode)

    def _put(self) -> None:
        super()._put()
        # The mode is on the stack of one thread; another one may suspend and resume.
        if threading.get_ident() == self._thread and self._recorder is not None:
            self._recorder.set_function_mode(self._mode)
            if self._mode_is_due:
                torch._C._push_on_torch_function_stack(self._mode)
                self._mode_is_due = False

    def _take(self) -> None:
        if threading.get_ident() == self._thread and self._recorder is not None:
            self._recorder.set_function_mode(None)
            # A probe or autograd may have it off the stack, and puts it back itself.
            self._mode_is_due = _leave_mode(self._mode)
        super()._take()


def _leave_mode(mode: TorchFunctionMode | None) -> bool:
    """Takes `mode` off the stack wherever it is: the user may have pushed others since.

    Returns whether it was there.
    """
    above = []
    found = False
    while not found and torch._C._len_torch_function_stack() > 0:
        top = torch._C._pop_torch_function_stack()
        found = top is mode
        if not found:
            above.append(top)
    for other in reversed(above):
        torch._C._push_on_torch_function_stack(other)
    return found
