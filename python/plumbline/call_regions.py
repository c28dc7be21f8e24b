"""Parts of a step that are named in construct.json as if they were modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from plumbline import _core


class CallRegions:
    """Marks calls inside the optimizer's step and inside gradient clipping, and records the step.

    Args:
        recorder: told when a region begins and ends.
        clipping: functions that clip gradients, as (owner, name).
        optimizer_hooks: two functions that take a hook, called before and after an optimizer's
            step, and return a handle with `remove()`; None where the framework has none.
    """

    def __init__(
        self,
        recorder: _core.Recorder,
        clipping: Iterable[tuple[Any, str]],
        optimizer_hooks: Sequence[Callable[..., Any] | None],
    ) -> None:
        self._recorder = recorder
        self._optimizer_hooks = optimizer_hooks
        self._patches = _core.PatchSet()
        self._handles: list[Any] = []
        self.steps = _core.OptimizerSteps(recorder)
        for owner, name in clipping:
            original = getattr(owner, name, None)
            if original is not None:
                self._patches.add(owner, name, self._in_clip_grad(original))

    def install(self) -> None:
        """Begins to mark."""
        self._patches.apply()
        marks = (self._before_step, self._after_step)
        self._handles = [
            hook(mark) for hook, mark in zip(self._optimizer_hooks, marks, strict=True) if hook
        ]

    def uninstall(self) -> None:
        """Restores everything."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.restore()
        self.steps.clear()

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        self._recorder.push_region("optimizer")
        self.steps.before(optimizer)

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        self.steps.after(optimizer)
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
