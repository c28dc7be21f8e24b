"""Device dumps made without plumbline: messages by hand, layouts by NumPy."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {"float32": 1, "float16": 2, "int8": 3, "uint8": 4, "int32": 7, "int64": 9, "bool": 11}
FORMATS = {"NCHW": 0, "NHWC": 1, "ND": 2, "NC1HWC0": 3, "FRACTAL_Z": 4, "HWCN": 16,
           "C1HWNCoC0": 25, "FRACTAL_NZ": 29, "NDC1HWC0": 32, "FRACTAL_Z_3D": 33}

Array = np.ndarray[Any, Any]


def padded(array: Array, axis: int, block: int) -> Array:
    """Zeros behind the elements of an axis, up to a multiple of `block`."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % block)
    return np.pad(array, widths)


def pack(array: Array, layout: str, c0: int = 16) -> Array:
    """A host array (NCHW, NCDHW or matrices) as it lies on the device."""
    if layout == "NC1HWC0":
        n, _, h, w = array.shape
        return padded(array, 1, c0).reshape(n, -1, c0, h, w).transpose(0, 1, 3, 4, 2)
    if layout == "NDC1HWC0":
        n, _, d, h, w = array.shape
        return padded(array, 1, c0).reshape(n, -1, c0, d, h, w).transpose(0, 3, 1, 4, 5, 2)
    if layout == "FRACTAL_Z":
        blocks = padded(padded(array, 1, c0), 0, 16)
        n, c, h, w = blocks.shape
        blocks = blocks.reshape(n // 16, 16, c // c0, c0, h, w).transpose(2, 4, 5, 0, 1, 3)
        return blocks.reshape(-1, n // 16, 16, c0)
    if layout == "FRACTAL_Z_3D":
        blocks = padded(padded(array, 1, c0), 0, 16)
        n, c, d, h, w = blocks.shape
        blocks = blocks.reshape(n // 16, 16, c // c0, c0, d, h, w)
        return blocks.transpose(4, 2, 5, 6, 0, 1, 3).reshape(-1, n // 16, 16, c0)
    if layout == "FRACTAL_NZ":
        blocks = padded(padded(array, -1, c0), -2, 16)
        *lead, h, w = blocks.shape
        blocks = blocks.reshape(*lead, h // 16, 16, w // c0, c0)
        return np.moveaxis(blocks, -2, -4)
    return array


def varint(number: int) -> bytes:
    """A number as protobuf has it."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: int | bytes) -> bytes:
    """One field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def shape_message(shape: tuple[int, ...]) -> bytes:
    """The message Shape."""
    return b"".join(field(1, size) for size in shape)


def tensor_message(array: Array, layout: str, host_shape: tuple[int, ...], *,
                   is_input: bool, groups: int = 0, address: int = 0) -> bytes:
    """OpInput or OpOutput without data."""
    out = field(1, TYPES[array.dtype.name]) + field(2, FORMATS[layout])
    out += field(3, shape_message(array.shape))
    out += field(5 if is_input else 6, array.nbytes)
    out += field(6 if is_input else 7, shape_message(host_shape))
    if groups:
        out += field(7 if is_input else 8, groups)
    return out + field(8 if is_input else 9, address)


def write_dump(path: Path, inputs: list[tuple[Array, str]],
               outputs: list[tuple[Array, str]]) -> None:
    """A dump of host arrays that lie on the device in the layouts beside them."""
    header = field(1, b"2.0")
    for array, layout in outputs:
        message = tensor_message(pack(array, layout), layout, array.shape, is_input=False)
        header += field(3, message)
    for array, layout in inputs:
        message = tensor_message(pack(array, layout), layout, array.shape, is_input=True)
        header += field(4, message)
    data = b"".join(np.ascontiguousarray(pack(array, layout)).tobytes()
                    for array, layout in [*inputs, *outputs])
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def dump_name(op_type: str, op_name: str, order: int) -> str:
    """The file name of the operator that ran as number `order`."""
    return f"{op_type}.{op_name}.{order}.7.{1_612_439_563_000_000 + order}"
