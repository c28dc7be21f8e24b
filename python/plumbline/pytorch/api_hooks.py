"""Recording API calls: probes in place of the functions named in apis.json, while a window is open.

Two nets, chosen by measurement (docs/design/interception.md):

- Every listed attribute is replaced by a native probe. This gives upstream's names exactly
  (`Tensor.__mul__` and `Tensor.mul` are one function for PyTorch's own override mechanism), sees
  calls from every thread and costs about 0.1 us per call before anything is recorded.
- A torch-function mode catches calls through references taken before the window opened
  (`from torch import relu`, `config.act = F.gelu`), which still point to the originals.

Outside the window nothing is replaced.
"""

from __future__ import annotations

import importlib._bootstrap
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.optim import optimizer as optimizers
from torch.overrides import TorchFunctionMode

from plumbline import _core
from plumbline.custom_ops_file import is_removed
from plumbline.pytorch.distributed import DistributedHooks


def wrapped_apis() -> Iterator[tuple[str, str, object, str]]:
    """Yields (prefix, name, owner, attribute) for each listed API that this PyTorch has."""
    text = (Path(__file__).parent / "apis.json").read_text(encoding="utf-8")
    listed: dict[str, list[str]] = json.loads(text)
    owners: list[tuple[str, str, object]] = [
        ("functional", "Functional", torch.nn.functional),
        ("tensor", "Tensor", torch.Tensor),
        ("torch", "Torch", torch),
        ("_VF", "VF", torch._VF),
    ]
    for category, prefix, root in owners:
        for name in listed[category]:
            owner = root
            *path, attribute = name.split(".")
            for part in path:
                owner = getattr(owner, part, None)
            if callable(getattr(owner, attribute, None)) and not is_removed(f"{prefix}.{name}"):
                yield prefix, name, owner, attribute


class _EarlierReferences(TorchFunctionMode):
    """Passes calls of listed functions that did not go through an attribute to their probes."""

    def __init__(self, probes: dict[Any, Any]) -> None:
        super().__init__()
        self._probes = probes

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return self._probes.get(func, func)(*args, **(kwargs or {}))


class ApiHooks:
    """The probes of one process and the places where they are installed."""

    def __init__(self) -> None:
        self._recorder: _core.Recorder | None = None
        self._patches = _core.PatchSet()
        self._guards = _core.PatchSet()
        self._dynamo_guard = _core.PatchSet()
        self._mode: _EarlierReferences | None = None
        self._mode_is_on = False
        self._regions: _Regions | None = None
        self._distributed: DistributedHooks | None = None
        self._is_installed = False

    def install(self, recorder: _core.Recorder, with_regions: bool) -> None:
        """Starts recording; idempotent."""
        if self._is_installed:
            return
        if self._recorder is not recorder:
            self._build(recorder)
        self._is_installed = True
        self._guards.apply()
        if with_regions and self._regions is not None:
            self._regions.install()
        self._resume()

    def uninstall(self) -> None:
        """Restores everything; idempotent."""
        if not self._is_installed:
            return
        self._is_installed = False
        self._suspend()
        if self._distributed is not None:
            self._distributed.finish()
        if self._regions is not None:
            self._regions.uninstall()
        self._dynamo_guard.restore()
        self._guards.restore()

    def _build(self, recorder: _core.Recorder) -> None:
        """Makes the probes, once per recorder."""
        self._recorder = recorder
        self._patches = _core.PatchSet()
        probes: dict[Any, Any] = {}
        for prefix, name, owner, attribute in wrapped_apis():
            original = getattr(owner, attribute)
            probe = recorder.probe(original, f"{prefix}.{name}", owner is torch.Tensor)
            self._patches.add(owner, attribute, probe)
            # Several names may stand for one function (F.conv2d is torch.conv2d): the first listed,
            # functional before torch, is the one models call.
            # Methods are called through the attribute. What reaches the mode as a method's probe is
            # an operator, because torch looks `x != y` up as Tensor.ne; upstream records operators
            # under their own names (Tensor.__add__) or not at all.
            if owner is torch.Tensor:
                probes[probe] = original
            else:
                probes.setdefault(original, probe)
        self._mode = _EarlierReferences(probes)
        self._regions = _Regions(recorder)
        self._distributed = DistributedHooks(recorder)
        self._guards = _core.PatchSet()
        self._dynamo_guard = _core.PatchSet()
        self._guard_imports()
        self._guard_script()

    def _resume(self) -> None:
        if not self._dynamo_guard.is_applied and "torch._dynamo.eval_frame" in sys.modules:
            self._guard_dynamo()
            self._dynamo_guard.apply()
        self._patches.apply()
        if self._distributed is not None:
            self._distributed.resume()
        if self._mode is not None and self._recorder is not None:
            torch._C._push_on_torch_function_stack(self._mode)
            self._mode_is_on = True
            self._recorder.set_net(self._mode)

    def _suspend(self) -> None:
        if self._mode_is_on and self._mode is not None and self._recorder is not None:
            self._mode_is_on = False
            self._recorder.set_net(None)
            _leave_mode(self._mode)
        if self._distributed is not None:
            self._distributed.suspend()
        self._patches.restore()

    def _without_probes(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`original`, run with every function restored."""

        def unpatched(*args: Any, **kwargs: Any) -> Any:
            if not self._patches.is_applied:
                return original(*args, **kwargs)
            self._suspend()
            try:
                return original(*args, **kwargs)
            finally:
                if self._is_installed:
                    self._resume()

        unpatched.__wrapped__ = original  # type: ignore[attr-defined]
        return unpatched

    def _guard_imports(self) -> None:
        # A library imported inside the window inspects torch's functions and keeps references to
        # them: it must see the originals. Every import of a module that is not loaded yet passes
        # through this one function (CPython 3.3 and later).
        bootstrap: Any = importlib._bootstrap
        find_and_load = getattr(bootstrap, "_find_and_load", None)
        if find_and_load is not None:
            self._guards.add(bootstrap, "_find_and_load", self._without_probes(find_and_load))

    def _guard_script(self) -> None:
        # TorchScript looks functions up by identity.
        script: Any = torch.jit._script
        original = getattr(script, "_script_impl", None)
        if original is not None:
            self._guards.add(script, "_script_impl", self._without_probes(original))

    def _guard_dynamo(self) -> None:
        # torch.compile switches its frame evaluation on when a compiled region begins and off when
        # it ends. Inside, the graph is guarded on the original functions: the region is left alone.
        if len(self._dynamo_guard) > 0:
            return
        frames: Any = sys.modules["torch._dynamo.eval_frame"]
        original = getattr(frames, "_maybe_set_eval_frame", None)
        if original is None:
            return

        outermost: list[int] = []  # frame of the wrapper that began the region

        def switch(callback: Any) -> Any:
            # A wrapper switches twice from one frame: on, and back when its region ends. Switches
            # in between come from deeper frames and belong to the same region.
            caller = id(sys._getframe(1))
            if callable(callback) and not outermost and self._patches.is_applied:
                outermost.append(caller)
                self._suspend()
                if self._recorder is not None:
                    self._recorder.count_loss(
                        "compiled_regions", "calls inside a torch.compile region"
                    )
                return original(callback)
            previous = original(callback)
            if outermost == [caller]:
                outermost.clear()
                if self._is_installed:
                    self._resume()
            return previous

        self._dynamo_guard.add(frames, "_maybe_set_eval_frame", switch)


def _leave_mode(mode: TorchFunctionMode) -> None:
    """Takes `mode` off the stack wherever it is: the user may have pushed others since."""
    above = []
    while torch._C._len_torch_function_stack() > 0:
        top = torch._C._pop_torch_function_stack()
        if top is mode:
            break
        above.append(top)
    for other in reversed(above):
        torch._C._push_on_torch_function_stack(other)


class _Regions:
    """Marks calls inside the optimizer's step and gradient clipping (construct.json)."""

    def __init__(self, recorder: _core.Recorder) -> None:
        self._recorder = recorder
        self._patches = _core.PatchSet()
        self._handles: list[Any] = []
        utils: Any = torch.nn.utils
        for name in ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"):
            original = getattr(utils, name, None)
            if original is not None:
                self._patches.add(utils, name, self._in_clip_grad(original))

    def install(self) -> None:
        self._patches.apply()
        if hasattr(optimizers, "register_optimizer_step_pre_hook"):  # PyTorch 2.0
            self._handles = [
                optimizers.register_optimizer_step_pre_hook(self._before_step),
                optimizers.register_optimizer_step_post_hook(self._after_step),
            ]

    def uninstall(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.restore()

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._recorder.push_region("optimizer")

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._recorder.pop_region("optimizer")

    def _in_clip_grad(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def clip(*args: Any, **kwargs: Any) -> Any:
            self._recorder.push_region("clip_grad")
            try:
                return original(*args, **kwargs)
            finally:
                self._recorder.pop_region("clip_grad")

        clip.__wrapped__ = original  # type: ignore[attr-defined]
        return clip
