"""Level L2: one call of one API, and what runs below it.

On machines without an NPU the operators that the framework's dispatcher runs are recorded like API
calls. On an NPU the device is told to dump its kernels while the call runs.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from plumbline import _core
from plumbline.adapter import Adapter
from plumbline.values import first_line


def write_kernel_config(directory: str, rank: int | None) -> str:
    """Writes the device's dump configuration into a step's directory.

    Args:
        directory: of the step; the kernels go there too.
        rank: None while it is unknown.

    Returns:
        Path of kernel_config.json, or kernel_config_{rank}.json.

    Raises:
        OSError: the file cannot be written.
    """
    name = "kernel_config.json" if rank is None else f"kernel_config_{rank}.json"
    settings = {
        "dump_list": [], "dump_path": directory, "dump_mode": "all", "dump_op_switch": "on",
    }
    path = Path(directory) / name
    path.write_text(json.dumps({"dump": settings}, indent=4), encoding="utf-8")
    return str(path)


def begin_kernel_dump(device: Any, config_path: str) -> None:
    """Tells `device`, such as torch_npu.npu, to dump the kernels that run from now on."""
    device.synchronize()
    device.init_dump()
    device.set_dump(config_path)
    device.synchronize()


def end_kernel_dump(device: Any) -> None:
    """Ends it when they have run."""
    device.synchronize()
    device.finalize_dump()
    device.synchronize()


class OperatorWindow:
    """Watches the calls of one API while a window is open.

    Args:
        recorder: gets the operators.
        target: complete name of the call, "Functional.linear.0.forward" or "....backward".
        adapter: finds the API and the operators.
        rank: tells the rank of this process.
    """

    def __init__(self, recorder: _core.Recorder, target: str, adapter: Adapter,
                 rank: Callable[[], int | None]) -> None:
        self._recorder = recorder
        self._target = target
        self._adapter = adapter
        self._rank = rank
        self._api, number, self._direction = target.rsplit(".", 2)
        self._number = int(number)
        self._calls = 0
        self._patches = _core.PatchSet()
        self._records: Any = None
        self._device: Any = None
        self._dumps = 0  # of kernels, by the device, in this step
        self._epoch = -1

    def install(self) -> None:
        """Begins to watch; idempotent."""
        if self._patches.is_applied:
            return
        if self._epoch != self._recorder.epoch:
            self._epoch, self._calls, self._records = self._recorder.epoch, 0, None
        if len(self._patches) == 0:
            for prefix, name, owner, attribute in self._adapter.apis():
                if f"{prefix}.{name}" == self._api:
                    self._patches.add(owner, attribute, self._watched(getattr(owner, attribute)))
                    break
            else:
                self._recorder.count_loss("operators", f"list: {self._target}: no such API")
        self._patches.apply()

    def uninstall(self) -> None:
        """Restores the API; idempotent."""
        self._patches.restore()

    def end_step(self) -> None:
        """Says what was found."""
        if self._epoch < 0 or (self._calls == 0 and self._records is None):
            return
        if self._records is None:
            _core.log_warning(
                f"{self._target}: not called in this step ({self._calls} calls of {self._api}). "
                "Nothing is recorded"
            )
        elif self._device is None:
            _core.log_info(f"{self._target}: {self._records.calls} operators are recorded")
        elif self._dumps:
            _core.log_info(f"The kernel data of {self._target} is dumped successfully.")
            self._dumps = 0

    def _watched(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            # As at level L1 a call inside another listed one has no number.
            if self._recorder.api_depth != 1 or not self._recorder.is_collecting:
                return original(*args, **kwargs)
            return self._call(original, args, kwargs)

        call.__wrapped__ = original  # type: ignore[attr-defined]
        return call

    def _call(self, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        number = self._calls
        self._calls += 1
        if number != self._number:
            return original(*args, **kwargs)
        self._device = self._adapter.kernel_dump_device()
        self._records = self._device or self._adapter.operator_records(self._recorder)
        if self._direction == "forward":
            with self._bracket():
                return original(*args, **kwargs)
        return _around_backward(
            lambda: original(*args, **kwargs),
            self._bracket,
            self._adapter.next_node_number,
            self._adapter.framework_parts().get("grad_node_name", "grad_fn"),
        )

    @contextlib.contextmanager
    def _bracket(self) -> Iterator[None]:
        if self._device is None:
            with self._records:
                yield
            return
        step = str(Path(self._recorder.run_directory).parent)
        is_open = self._tried(lambda: begin_kernel_dump(
            self._device, write_kernel_config(step, self._rank())))
        try:
            yield
        finally:
            self._dumps += is_open and self._tried(lambda: end_kernel_dump(self._device))

    def _tried(self, action: Callable[[], None]) -> bool:
        try:
            action()
        except Exception as error:
            _core.log_warning(f"The kernel dump does not support the {self._target} API: "
                              f"{first_line(error)}")
            return False
        return True


def _around_backward(
    call: Callable[[], Any],
    bracket: Callable[[], AbstractContextManager[None]],
    next_node_number: Callable[[], int],
    node_name: str,
) -> Any:
    """Runs `call`; the graph nodes that it makes will run inside `bracket()`."""
    first = next_node_number()
    result = call()
    items = list(result) if isinstance(result, (tuple, list)) else [result]
    waiting = [getattr(item, node_name, None) for item in items]
    seen: set[Any] = set()
    while waiting:
        node = waiting.pop()
        # Nodes that store gradients of leaves have the largest number.
        if node is None or not first <= node._sequence_nr() < 2**64 - 1:
            continue
        name = getattr(node, "_unique_id", lambda node=node: node)()
        if name in seen:
            continue
        seen.add(name)
        _bracket(node, bracket)
        waiting += [edge[0] for edge in node.next_functions]
    return result


def _bracket(node: Any, bracket: Callable[[], AbstractContextManager[None]]) -> None:
    entered: list[AbstractContextManager[None]] = []

    def before(_: Any) -> None:
        entered.append(bracket())
        entered[-1].__enter__()

    def after(*_: Any) -> None:
        if entered:
            entered.pop().__exit__(None, None, None)

    node.register_prehook(before)
    node.register_hook(after)
