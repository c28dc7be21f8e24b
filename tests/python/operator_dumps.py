"""Recordings of operators made without plumbline: layouts packed by NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from device_dumps import CODES, Dump, Tensor

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


def device_tensor(array: Array, layout: str, c0: int = 16) -> Tensor:
    """A host array as it lies on the device."""
    packed = np.ascontiguousarray(pack(array, layout, c0))
    return Tensor(packed.tobytes(), CODES[array.dtype.name], packed.shape, FORMATS[layout],
                  array.shape)


def write_dump(path: Path, inputs: list[tuple[Array, str]],
               outputs: list[tuple[Array, str]]) -> None:
    """A dump of host arrays that lie on the device in the layouts beside them."""
    Dump(inputs=[device_tensor(*one) for one in inputs],
         outputs=[device_tensor(*one) for one in outputs]).write(path)


def dump_name(op_type: str, op_name: str, order: int) -> str:
    """The file name of the operator that ran as number `order`."""
    return f"{op_type}.{op_name}.{order}.7.{1_612_439_563_000_000 + order}"
