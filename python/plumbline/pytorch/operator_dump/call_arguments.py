"""What one operator call got and returned, as plumbline._hdf5 takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from plumbline import _hdf5
from plumbline.pytorch.values import to_host

# Kinds of values, as the file has them (docs/formats/hdf5_dump.md).
_INTEGERS, _INTEGER, _BOOL, _DOUBLE, _SCALAR = 2, 3, 4, 5, 7
_OPTIONAL = {_DOUBLE: 6, _INTEGER: 9, _SCALAR: 10}
_INTEGER_ARRAY, _MEMORY_FORMAT = 16, 17
_DEVICES = {"cpu": 0, "cuda": 1, "npu": 10, "privateuseone": 10}
# c10::MemoryFormat
_MEMORY_FORMATS = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}
_OPTIONS = ("dtype", "layout", "device", "pin_memory")


def device_number(device: torch.device) -> int:
    """As the files number them; other devices count as the CPU, where their copies lie."""
    return _DEVICES.get(device.type, 0)


def operator_name(func: Any) -> str:
    """`add_Tensor` of aten::add.Tensor, `relu` of aten::relu."""
    base: str = func.overloadpacket.__name__
    overload: str = func._overloadname
    return base if overload == "default" else f"{base}_{overload}"


class CallArguments:
    """Collects the values of one side of one call, and keeps the host copies they refer to."""

    def __init__(self, copies: bool = False) -> None:
        """copies: tensors are copied even if they lie in host memory, to be read later."""
        self.native = _hdf5.Arguments()
        self.places: list[int | str] = []  # where native's arguments came from
        self._kept: list[torch.Tensor] = []
        self._copies = copies

    def add_call(
        self, func: Any, args: Sequence[Any], kwargs: dict[str, Any], copied: bool = False
    ) -> None:
        """The arguments of an operator, defaults included; those without a kind are left out.

        copied: tensors that the operator writes to are named `{argument}_copy`.
        """
        declared = func._schema.arguments
        has_options = {argument.name for argument in declared}.issuperset(_OPTIONS)
        values: dict[str, Any] = {}
        for position, argument in enumerate(declared):
            if position < len(args):
                value = args[position]
            else:
                value = kwargs.get(argument.name, argument.default_value)
            values[argument.name] = value
            if has_options and argument.name in _OPTIONS:
                continue
            is_written = copied and argument.alias_info is not None and argument.alias_info.is_write
            name = f"{argument.name}_copy" if is_written else argument.name
            self.add(name, value, str(argument.type))
            self._place(argument.name if position >= len(args) else position)
        if has_options:
            device = torch.device(values["device"] or "cpu")
            dtype = None if values["dtype"] is None else str(values["dtype"])
            self.native.options("options", device_number(device), dtype)
            self._place("options")

    def add_results(self, result: Any, name: str = "result") -> None:
        """`result`, or `result0`, `result1` and so on of a tuple."""
        if not isinstance(result, tuple):
            self.add(name, result, "")
            return
        for position, one in enumerate(result):
            self.add(name if len(result) == 1 else f"{name}{position}", one, "")
            self._place(position)

    def add(self, name: str, value: Any, declared: str) -> None:
        """One value; nothing where it is None or of no kind that files have."""
        if isinstance(value, torch.Tensor):
            self.native.tensor(name, self._host(value))
        elif isinstance(value, torch.dtype):
            self.native.dtype(name, str(value))
        elif isinstance(value, torch.memory_format):
            self.native.integer(name, _MEMORY_FORMAT, _MEMORY_FORMATS[value])
        elif isinstance(value, (bool, int, float)):
            self._number(name, value, declared)
        elif isinstance(value, (list, tuple)):
            self._list(name, value, declared)

    def _number(self, name: str, value: bool | int | float, declared: str) -> None:
        if "number" in declared:
            kind = _SCALAR
        else:
            kinds = ((bool, _BOOL), (int, _INTEGER), (float, _DOUBLE))
            kind = next(kind for type_, kind in kinds if isinstance(value, type_))
        if declared.startswith("Optional["):
            kind = _OPTIONAL.get(kind, kind)
        if isinstance(value, bool):
            self.native.truth(name, kind, value)
        elif isinstance(value, int):
            self.native.integer(name, kind, value)
        else:
            self.native.real(name, kind, value)

    def _list(self, name: str, values: Sequence[Any], declared: str) -> None:
        if "Tensor" in declared or (values and isinstance(values[0], torch.Tensor)):
            self.native.tensors(name, [None if one is None else self._host(one) for one in values])
        elif all(isinstance(one, bool) for one in values) and "bool" in declared:
            self.native.integers(name, _INTEGER_ARRAY, [int(one) for one in values])
        elif all(isinstance(one, int) for one in values):
            self.native.integers(name, _INTEGERS, list(values))

    def _host(self, tensor: torch.Tensor) -> tuple[int, str, list[int], int] | None:
        plain = tensor.layout is torch.strided and not tensor.is_quantized
        if not plain or tensor.device.type == "meta":
            return None
        host = to_host(tensor).contiguous()
        if self._copies and host.data_ptr() == tensor.data_ptr():
            host = host.clone()
        self._kept.append(host)
        number = device_number(tensor.device)
        return host.data_ptr(), str(host.dtype), list(host.shape), number

    def _place(self, place: int | str) -> None:
        """Where the values added last came from, one entry per native argument."""
        missing = len(self.native) - len(self.places)
        self.places.extend([place] * missing)


class RunningCall:
    """An operator between its two sides."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number  # sequence id in the file that is written
        self.inputs: CallArguments | None = None  # to be written when the call overflows
        self.is_written = False
        self.has_kernel_dump = False
