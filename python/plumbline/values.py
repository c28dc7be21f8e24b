"""What a value is that the native recorder cannot read by itself, without asking any framework.

Nothing here may run the training's own code more than it must.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

# What describe_tensor() of a framework answers: type, dtype text, shape, requires_grad, a tensor
# with the values or None, zeros that it leaves out, further keys of the record, what is wrong.
TensorAnswer = tuple[
    str, str, tuple[int, ...], bool, Any, int, "dict[str, Any] | None", "str | None"
]


class _Unreadable:
    """Stands for a field whose getter raises: describe() of it raises, so that it is counted."""


_UNREADABLE = _Unreadable()


def qualified_name(kind: type) -> str:
    """Module and name of a class, whatever the class answers itself."""
    module, name = (type.__getattribute__(kind, key) for key in ("__module__", "__qualname__"))
    return f"{module}.{name}"


def describe(value: Any, tensor_from_array: Callable[[Any], Any]) -> tuple[Any, ...] | None:
    """What a value is that is neither tensor nor plain scalar, list or dict.

    Args:
        value: a container of another class, a number, a NumPy scalar or array.
        tensor_from_array: makes the framework's tensor of an array; TypeError or ValueError if its
            dtype has none.

    Returns:
        ("map", [(key, value), ...]) or ("list", [value, ...]), whose values are described in turn;
        ("array", tensor, dtype text) for a NumPy array; ("value", json) for a scalar; None for
        anything else.

    Raises:
        RuntimeError: the value is a field that could not be read.
    """
    # Only type(value) is asked: an object may lie about its class, or raise when asked.
    kind = type(value)
    if kind is _Unreadable:
        raise RuntimeError("a field that cannot be read")
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and isinstance(fields, tuple):
        return "map", [(field, _field(value, field)) for field in fields]
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return "map", [(name, _field(value, name)) for name in names]
    # The built-in iterators: those of a subclass may have effects.
    if issubclass(kind, list):
        return "list", list(list.__iter__(value))
    if issubclass(kind, tuple):
        return "list", list(tuple.__iter__(value))
    if issubclass(kind, dict):
        return "map", list(dict.items(value))
    if issubclass(kind, float) and kind.__module__ != "numpy":
        return "value", {"type": kind.__name__, "value": float.__float__(value)}
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return _describe_array(numpy.asarray(value), tensor_from_array)
    if numpy is not None and issubclass(kind, numpy.generic):
        item = value.item()
        item = item if isinstance(item, (bool, int, float, str)) else str(item)
        return "value", {"type": kind.__name__, "value": item}
    return None


def unknown(value: Any) -> tuple[Any, ...]:
    """Of a value that nobody describes: upstream writes null, which cannot be told from None."""
    return "value", {"type": qualified_name(type(value)), "value": None}


def _field(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except Exception:
        return _UNREADABLE


def _describe_array(
    array: Any, tensor_from_array: Callable[[Any], Any]
) -> tuple[Any, ...]:
    text = str(array.dtype)
    try:
        # Other byte orders and long doubles are converted. A read-only array is copied:
        # PyTorch warns of its memory.
        if array.dtype.kind == "f" and array.dtype.itemsize > 8:
            array = array.astype("float64")
        if array.dtype.kind == "c" and array.dtype.itemsize > 16:
            array = array.astype("complex128")
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if not array.flags.writeable or any(stride < 0 for stride in array.strides):
            array = array.copy()
        return "array", tensor_from_array(array), text
    except (TypeError, ValueError):
        # No tensor has this dtype (text, objects, records, times): described without values.
        null = {"Max": None, "Min": None, "Mean": None, "Norm": None}
        shape = list(array.shape)
        return "value", {"type": "numpy.ndarray", "dtype": text, "shape": shape, **null}


def first_line(error: BaseException) -> str:
    """What an error says, short enough for a log."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
