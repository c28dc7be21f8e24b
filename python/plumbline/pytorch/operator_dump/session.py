"""One use of the dumper: what is done around every operator."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

import torch

from plumbline import _hdf5
from plumbline.operator_window import begin_kernel_dump, end_kernel_dump
from plumbline.pytorch.operator_dump.autograd_nodes import NodeHooks
from plumbline.pytorch.operator_dump.call_arguments import CallArguments, RunningCall, operator_name
from plumbline.pytorch.operator_dump.dispatch import OperatorCalls
from plumbline.pytorch.operator_dump.replay import Replay
from plumbline.pytorch.values import to_host

# Operators that make no values or none to compare, as upstream leaves them out; those behind the
# comment are what current versions of PyTorch call the same ones.
NOT_DUMPED = frozenset(
    """
    MaxPool2DWithIndicesBackward is_floating_point to_dtype to_dtype_layout to_device view
    ViewBackward view_as t TBackward numpy_T size_int item set__source_Storage_storage_offset
    pin_memory slice_Tensor select_int squeeze unsqueeze SqueezeBackward UnsqueezeBackward
    split_Tensor expand_as as_stride empty_strided permute PermuteBackward chunk narrow
    FusedDropoutBackward NpuDropoutBackward nll_loss npu_get_float_status npu_alloc_float_status
    npu_clear_float_status
    """.split()
    # _to_copy: to_*; _local_scalar_dense: item; the others by their overloads.
    + """_to_copy _local_scalar_dense as_strided squeeze_dim squeeze_dims set__source_Storage
    nll_loss_forward""".split()
)

_sequence = itertools.count(1)  # of the process, as upstream counts


def is_dumped(name: str) -> bool:
    """Whether the file has a place for this operator; `ViewBackward0` is `ViewBackward`."""
    return name not in NOT_DUMPED and name.rstrip("0123456789") not in NOT_DUMPED


class Options(Protocol):
    """What a session does, as `dumper` was told."""

    check_overflow: bool
    load_with_acl_dump: bool
    dump_path: str | None
    load_file_path: str | None


class Session:
    """Everything here runs beside the training: an error costs the values, never the call."""

    def __init__(self, options: Options, npu: Callable[[], Any]) -> None:
        """npu: gives the device that dumps kernels, or None."""
        self._options = options
        self._npu = npu
        self._path = str(options.dump_path)
        self._lock = threading.Lock()  # backward runs on threads of its own for some devices
        self._writer: _hdf5.DumpWriter | None = None
        self._replay = Replay(options.load_file_path) if options.load_file_path else None
        self._losses = 0
        self._nodes = NodeHooks(self)
        self._calls = OperatorCalls(self, self._nodes)

    def start(self) -> None:
        self._nodes.start()
        self._calls.__enter__()

    def stop(self) -> None:
        self._calls.__exit__(None, None, None)
        self._nodes.stop()
        self._writer = None
        if self._losses > 1:
            self._say(f"{self._losses} operator calls were not dumped whole")

    def begin(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[RunningCall | None, tuple[Any, ...], dict[str, Any]]:
        """Before an operator runs; its arguments, changed where recorded scalars replace them."""
        copied = self._options.check_overflow
        return self._begin(
            operator_name(func),
            lambda inputs: inputs.add_call(func, args, kwargs, copied=copied),
            args,
            kwargs,
        )

    def begin_node(self, name: str, gradients: tuple[Any, ...]) -> RunningCall | None:
        """Before a node of the backward pass runs."""
        call, _, _ = self._begin(
            name, lambda inputs: inputs.add_results(gradients, "grad"), gradients, {}
        )
        return call

    def end(self, call: RunningCall | None, result: Any) -> None:
        """After it ran."""
        if call is None:
            return
        try:
            if call.has_kernel_dump:
                end_kernel_dump(self._npu())
            if call.inputs is not None:
                self._check_results(call, call.inputs, result)
            elif call.is_written:
                self._write(call, True, _results(result), "dump outputs")
        except Exception as error:
            self._lose(call, error)

    def _begin(
        self,
        name: str,
        fill: Callable[[CallArguments], None],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[RunningCall | None, tuple[Any, ...], dict[str, Any]]:
        if not is_dumped(name):
            return None, args, kwargs
        call = RunningCall(name, next(_sequence))
        try:
            inputs = CallArguments(copies=self._options.check_overflow)
            fill(inputs)
            if self._replay is not None:
                args, kwargs = self._begin_replay(self._replay, call, inputs, args, kwargs)
            elif self._options.check_overflow:
                call.inputs = inputs
            else:
                self._write(call, False, inputs, "dump inputs")
        except Exception as error:
            self._lose(call, error)
        return call, args, kwargs

    def _begin_replay(
        self,
        replay: Replay,
        call: RunningCall,
        inputs: CallArguments,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        with self._lock:
            match = replay.match(call.name, inputs)
        if match is None:
            return args, kwargs
        call.number = match.call
        args, kwargs = replay.apply(match, inputs, args, kwargs)
        call.is_written = True
        print(f"IR: {call.name} load inputs")
        if self._options.load_with_acl_dump:
            begin_kernel_dump(self._npu(), "acl.json")
            call.has_kernel_dump = True
        return args, kwargs

    def _check_results(self, call: RunningCall, inputs: CallArguments, result: Any) -> None:
        if not any(_overflows(tensor) for tensor in _tensors(result)):
            return
        print(f"IR: {call.name} SeqId: {call.number} is overflow!")
        self._write(call, False, inputs, None)
        self._write(call, True, _results(result), None)

    def _write(
        self, call: RunningCall, is_output: bool, values: CallArguments, text: str | None
    ) -> None:
        with self._lock:
            if self._writer is None:
                self._writer = _hdf5.DumpWriter(self._path)
            self._writer.write(call.name, call.number, is_output, values.native)
            # One commit per call: inputs wait for their outputs, except that a call may not return.
            self._writer.commit()
        call.is_written = True
        if text is not None:
            print(f"IR: {call.name} SeqId: {call.number} {text}")

    def _lose(self, call: RunningCall, error: Exception) -> None:
        call.is_written = False
        call.inputs = None
        self._losses += 1
        if self._losses == 1:
            self._say(f"{call.name} (SeqId {call.number}): {error}")

    def _say(self, text: str) -> None:
        print(f"plumbline: dumper: {text}", file=sys.stderr)


def _results(result: Any) -> CallArguments:
    values = CallArguments()
    values.add_results(result)
    return values


def _tensors(result: Any) -> list[torch.Tensor]:
    flat = result if isinstance(result, (tuple, list)) else (result,)
    return [one for one in flat if isinstance(one, torch.Tensor)]


def _overflows(tensor: torch.Tensor) -> bool:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
        return False
    return not bool(torch.isfinite(to_host(tensor)).all())
