"""JSON of the values of a call: arguments that come in, results that go out.

Plain values stand for themselves. Everything else is an object with one key: {"list"|"tuple"|
"size"|"slice": [...]}, {"dict": [[key, value], ...]}, {"dtype"|"memory_format"|"device"|
"ellipsis"|"other": text}, {"numpy": [type, text]}, {"tensor": [dtype, shape, offset,
requires_grad, raised]}; the tensor of a result has its type as a sixth member if it is not the
framework's own. src/precheck/call_value.h is the other side of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

# Names of scalar types that dumps have and NumPy 2 has not.
_OLD_NAMES = {"string_": "bytes_", "unicode_": "str_"}
_INT64 = range(-(1 << 63), 1 << 63)
_SEQUENCES: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "slice": lambda items: slice(*items),
}

# What a framework adds, by the key: from the body of such an object to the argument.
Makers = Mapping[str, Callable[[Any], Any]]


class BadArgumentError(ValueError):
    """An argument that cannot be made; says which one and why."""


def decode(value: Any, makers: Makers) -> Any:
    """The argument that `value` describes.

    Args:
        value: what stands in the request.
        makers: the framework's own kinds: "tensor", "dtype", "memory_format", "device", "size".

    Raises:
        BadArgumentError: nothing of this kind can be made.
    """
    if type(value) is not dict:
        return value
    ((kind, body),) = value.items()
    if kind in makers:
        return makers[kind](body)
    if kind in _SEQUENCES:
        return _SEQUENCES[kind]([decode(item, makers) for item in body])
    if kind == "dict":
        return {key: decode(item, makers) for key, item in body}
    if kind == "ellipsis":
        return ...
    if kind == "numpy":
        return numpy_scalar(*body)
    raise BadArgumentError(f"an argument of the kind {kind} ({body})")


def numpy_scalar(name: str, text: str) -> Any:
    """numpy.float16("1.5") of "float16", "1.5"."""
    numpy = importlib.import_module("numpy")  # torch does not always bring it
    kind = getattr(numpy, _OLD_NAMES.get(name, name), None)
    if not isinstance(kind, type) or not issubclass(kind, numpy.generic):
        raise BadArgumentError(f"NumPy has no scalar type {name}")
    try:
        if issubclass(kind, numpy.bool_):
            return kind(text in ("True", "true", "1"))
        if issubclass(kind, numpy.complexfloating):
            return kind(complex(text.replace(" ", "")))
        if issubclass(kind, numpy.integer):
            return kind(int(text))
        return kind(text.encode()) if issubclass(kind, numpy.bytes_) else kind(text)
    except (ValueError, OverflowError) as error:
        raise BadArgumentError(f"numpy.{name} of {text!r}: {error}") from error


def encode(value: Any, tensor: Callable[[Any], Any], special: Callable[[Any], Any]) -> Any:
    """The JSON of a result.

    Args:
        value: what a call returned.
        tensor: the JSON of a tensor, or None if the value is none.
        special: the JSON of another value that only the framework knows, or None.
    """
    kind = type(value)
    if value is None or kind is bool or kind is float or kind is str:
        return value
    if kind is int:
        return value if value in _INT64 else {"other": "int"}
    found = tensor(value)
    if found is None:
        found = special(value)
    if found is not None:
        return found
    # Types derived from these are named tuples, ordered maps and the like.
    if isinstance(value, (tuple, list)):
        name = "list" if isinstance(value, list) else "tuple"
        return {name: [encode(item, tensor, special) for item in value]}
    if isinstance(value, Mapping):
        items = [[str(key), encode(item, tensor, special)] for key, item in value.items()]
        return {"dict": items}
    if kind.__module__ == "numpy" and hasattr(value, "dtype") and not getattr(value, "shape", None):
        return {"numpy": [kind.__name__, str(value)]}
    return {"other": f"{kind.__module__}.{kind.__qualname__}"}


def leaves(value: Any) -> list[Any]:
    """What stands in a JSON value below its sequences and maps, depth first."""
    if type(value) is not dict:
        return [value]
    ((kind, body),) = value.items()
    if kind in ("list", "tuple"):
        return [leaf for item in body for leaf in leaves(item)]
    if kind == "dict":
        return [leaf for _, item in body for leaf in leaves(item)]
    return [value]
