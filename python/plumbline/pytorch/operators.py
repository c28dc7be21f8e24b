"""What PyTorch's dispatcher runs below one API call (level L2)."""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from plumbline import _core


class OperatorRecords(TorchDispatchMode):
    """While entered, every operator is recorded as `Aten.{operator}.{overload}.{n}.forward`."""

    def __init__(self, recorder: _core.Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder
        self._probes: dict[Any, Any] = {}
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        probe: Any = self._probes.get(func)
        if probe is None:
            name = f"Aten.{func.overloadpacket.__name__}.{func._overloadname}"
            probe = self._probes[func] = self._recorder.probe(func, name, False)
        self.calls += 1
        depth = self._recorder.begin_operator()
        try:
            return probe(*args, **(kwargs or {}))
        finally:
            self._recorder.end_operator(depth)
