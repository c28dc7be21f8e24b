"""What a value or a tensor is that the native recorder cannot read by itself."""

from __future__ import annotations

from typing import Any

import mindspore as ms

from plumbline import values

# Dtypes by the objects that tensors answer with. The native recorder knows them by identity; it
# learns what they are from their texts, and asks describe_tensor() for those it does not know.
_DTYPE_NAMES = (
    "float32", "float16", "bfloat16", "int64", "int32", "bool_", "float64", "uint8", "int8",
    "int16", "uint16", "uint32", "uint64", "complex64", "complex128", "float8_e4m3fn",
    "float8_e5m2",
)  # fmt: skip
DTYPES = [getattr(ms, name) for name in _DTYPE_NAMES if hasattr(ms, name)]


def to_host(tensor: ms.Tensor) -> ms.Tensor:
    """A CPU tensor with the values of `tensor`, which is on a device."""
    return tensor.move_to("CPU", blocking=True)


def describe_tensor(tensor: ms.Tensor, with_bytes: bool) -> values.TensorAnswer:
    """A tensor whose memory does not simply hold its values, as for PyTorch.

    Such are those on the device "meta" and those of dtypes that only a cast can read.
    """
    dtype, shape = str(tensor.dtype), tuple(max(0, int(size)) for size in tensor.shape)
    source, problem = None, None
    if not getattr(tensor, "is_meta", False):
        try:
            source = to_host(tensor).astype(ms.float32)
        except Exception as error:
            problem = f"the values of a {dtype}: {type(error).__name__}"
    return "mindspore.Tensor", dtype, shape, False, source, 0, None, problem


def describe(value: Any) -> tuple[Any, ...]:
    """What a value is that is neither tensor nor plain scalar, list or dict.

    The answer has the forms of `plumbline.values.describe`.
    """
    return values.describe(value, ms.Tensor.from_numpy) or values.unknown(value)
