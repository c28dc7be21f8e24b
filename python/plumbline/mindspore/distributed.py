"""Recording communication: `mint.distributed` and `communication.comm_func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore import mint
from mindspore._c_expression import CommHandle
from mindspore.communication import comm_func

from plumbline import _core
from plumbline.api_list import present_apis, read_api_list
from plumbline.communication import MASKED_INPUTS, MASKED_OUTPUTS
from plumbline.mindspore import mindtorch
from plumbline.watch.communication import watched_call


class DistributedHooks:
    """The replacements of one recorder.

    Functions of `mint.distributed` write into their arguments: these are read when the call is
    complete, which is when the user has waited for its handle. Those of `comm_func` return new
    tensors, which are read then.
    """

    def __init__(self, recorder: _core.Recorder) -> None:
        self._recorder = recorder
        handle_type = mindtorch.handle_type() if mindtorch.is_there() else None
        self._collectives = _core.Collectives(
            recorder, handle_type or CommHandle, lambda handle: False, {}
        )
        self._patches, self._waits = _core.PatchSet(), _core.PatchSet()
        if mindtorch.is_there():
            for api in mindtorch.communication_apis():
                self._add_writing(*api)
        else:
            self._add_own()
        for kind in (CommHandle, comm_func.CommHandle, handle_type):
            if kind is not None and "wait" in vars(kind):
                self._waits.add(kind, "wait", _waited(kind, self._collectives.completed))

    def _add_own(self) -> None:
        """MindSpore's functions."""
        lists = read_api_list(__file__)
        owners = [("mint.distributed", "MintDistributed", mint.distributed)]
        for api in present_apis(lists, owners):
            self._add_writing(*api)
        owners = [("communication.comm_func", "Distributed", comm_func)]
        for prefix, name, owner, attribute in present_apis(lists, owners):
            called = self._returning(getattr(owner, attribute), f"{prefix}.{name}")
            self._patches.add(owner, attribute, called)

    def _add_writing(self, prefix: str, name: str, owner: object, attribute: str) -> None:
        """A function that writes into its arguments."""
        inputs = MASKED_INPUTS.get(name, [])
        names = ["tensor"] if name == "irecv" else []
        outputs = MASKED_OUTPUTS.get(name, [])
        original = getattr(owner, attribute)
        probe = self._collectives.probe(original, f"{prefix}.{name}", inputs, names, outputs)
        self._patches.add(owner, attribute, probe)

    def resume(self) -> None:
        """Begins to record."""
        self._patches.apply()
        self._waits.apply()

    def suspend(self) -> None:
        """Stops; handles of recorded calls are still watched until `finish`."""
        self._patches.restore()

    def finish(self) -> None:
        """Records what nobody waited for, as far as it is complete."""
        self._collectives.finish()
        self._waits.restore()

    def _returning(self, original: Any, name: str) -> Any:
        probe: Any = self._recorder.probe(original, name, False)
        later: Any = self._collectives.probe(original, name, [], [], [], gives_result=True)
        is_later = name.rpartition(".")[2] in ("isend", "irecv")

        def call(*args: Any, **kwargs: Any) -> Any:
            if not (is_later or kwargs.get("async_op") or any(value is True for value in args)):
                return probe(*args, **kwargs)
            result = later(*args, **kwargs)
            # One handle stands for every call that is complete when it returns.
            self._collectives.completed(comm_func.default_handle)
            return result

        call.__wrapped__ = original  # type: ignore[attr-defined]
        return call


class MonitoredCommunication:
    """Functions that a monitor watches while it collects a step (`cc_distribution`)."""

    def __init__(
        self, live: _core.LiveMonitor, before: bool, is_wanted: Callable[[str], bool]
    ) -> None:
        self.watch = _core.CommunicationWatch(live, CommHandle, comm_func.P2POp, before)
        self.is_wanted, self._patches = is_wanted, _core.PatchSet()
        self._functions: list[tuple[Any, str, Any]] = []
        for category, owner in (("mint.distributed", mint.distributed),
                                ("communication.comm_func", comm_func)):
            for _, name, _, _ in present_apis(read_api_list(__file__), [(category, "", owner)]):
                original = getattr(owner, name)
                is_read = owner is comm_func and "recv" not in name
                masked = [] if is_read else list(MASKED_INPUTS.get(name, []))
                self._functions.append((owner, name, original))
                self._patches.add(owner, name, watched_call(
                    self, name, original, masked, _new_tensors if owner is comm_func else None))
        for kind in {CommHandle, comm_func.CommHandle}:
            if "wait" in vars(kind):
                self._patches.add(kind, "wait", _waited(kind, self.watch.completed))

    def apply(self) -> None:
        """Begins to watch, unless a recorder of calls watches the same functions."""
        if all(getattr(owner, name) is function for owner, name, function in self._functions):
            return self._patches.apply()
        _core.log_warning("cc_distribution: a step is left out, its functions were replaced")

    def remove(self) -> None:
        """Restores everything."""
        self._patches.restore()


def _new_tensors(result: Any) -> tuple[Any, ...]:
    """Tensors that a function of comm_func returned; its handle is none."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return tuple(part for part in parts if part is not None and not isinstance(part, CommHandle))


def _waited(kind: Any, completed: Callable[[Any], None]) -> Any:
    original = vars(kind)["wait"]
    def wait(handle: Any) -> Any:
        result = original(handle)
        completed(handle)
        return result
    return wait
