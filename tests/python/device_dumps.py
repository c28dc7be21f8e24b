"""Device dump files and overflow records, written here from their description."""

from __future__ import annotations

import itertools
import pathlib
import struct
from dataclasses import dataclass, field

import numpy as np
from torchair_dumps import field as message_field
from torchair_dumps import varint

CODES = {"float32": 1, "float16": 2, "int8": 3, "uint8": 4, "int16": 5, "int32": 7, "int64": 8,
         "bool": 11, "float64": 12, "complex64": 16}
FORMATS = {"NCHW": 0, "NHWC": 1, "ND": 2, "NC1HWC0": 3, "FRACTAL_Z": 4, "FRACTAL_NZ": 29}
BF16 = 27


@dataclass
class Tensor:
    """Elements as they lie on the device."""

    data: bytes
    code: int
    shape: tuple[int, ...] | None = None
    format: int = FORMATS["ND"]
    original: tuple[int, ...] | None = None
    groups: int = 0


def plain(array: np.ndarray) -> Tensor:
    """An array in no particular layout."""
    return Tensor(array.tobytes(), CODES[str(array.dtype)], array.shape)


@dataclass
class Dump:
    """One operator."""

    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    buffers: list[bytes] = field(default_factory=list)
    spaces: list[bytes] = field(default_factory=list)
    op_name: str = ""
    attribute: str = ""

    def message(self, inline: bool = False) -> bytes:
        """The header; with the data inside it for container version 1."""
        out = message_field(1, b"1.0" if inline else b"2.0") + message_field(2, 1700000000)
        out += b"".join(message_field(3, tensor_message(one, True, inline))
                        for one in self.outputs)
        out += b"".join(message_field(4, tensor_message(one, False, inline))
                        for one in self.inputs)
        out += b"".join(message_field(5, message_field(3, len(one))) for one in self.buffers)
        out += message_field(6, self.op_name.encode())
        if self.attribute:
            out += message_field(7, message_field(1, b"_") + message_field(
                2, self.attribute.encode()))
        return out + b"".join(message_field(8, message_field(3, len(one))) for one in self.spaces)

    def bytes(self) -> bytes:
        """A file of container version 2."""
        message = self.message()
        parts = [one.data for one in (*self.inputs, *self.outputs)] + self.buffers + self.spaces
        return struct.pack("<Q", len(message)) + message + b"".join(parts)

    def write(self, path: pathlib.Path) -> pathlib.Path:
        """The file at `path`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.bytes())
        return path


def tensor_message(tensor: Tensor, is_output: bool, inline: bool) -> bytes:
    """OpOutput or OpInput."""
    def shape(number: int, sizes: tuple[int, ...] | None) -> bytes:
        if sizes is None:
            return b""
        return message_field(number, message_field(1, b"".join(map(varint, sizes))))

    later = 1 if is_output else 0  # OpOutput has one field more in front of these
    out = message_field(1, tensor.code) + message_field(2, tensor.format)
    out += shape(3, tensor.shape)
    if inline:
        out += message_field(4 + later, tensor.data)
    out += message_field(5 + later, len(tensor.data)) + shape(6 + later, tensor.original)
    return out + message_field(7 + later, tensor.groups)


def nc1hwc0(array: np.ndarray, c0: int = 16) -> Tensor:
    """An NCHW array as a device lays it out, by the formula for each element."""
    n, c, h, w = array.shape
    c1 = -(-c // c0)
    device = np.zeros((n, c1, h, w, c0), array.dtype)
    for channel in range(c):
        device[:, channel // c0, :, :, channel % c0] = array[:, channel]
    return Tensor(device.tobytes(), CODES[str(array.dtype)], device.shape, FORMATS["NC1HWC0"],
                  array.shape)


def fractal_nz(array: np.ndarray, c0: int = 16) -> Tensor:
    """A matrix as a device lays it out."""
    rows, columns = array.shape
    device = np.zeros((-(-columns // c0), -(-rows // 16), 16, c0), array.dtype)
    for row, column in itertools.product(range(rows), range(columns)):
        device[column // c0, row // 16, row % 16, column % c0] = array[row, column]
    return Tensor(device.tobytes(), CODES[str(array.dtype)], device.shape, FORMATS["FRACTAL_NZ"],
                  array.shape)


def old_record(statuses: tuple[int, int, int] = (0, 0, 16), task: int = 7) -> bytes:
    """An overflow record of 2048 bytes, of stream 10."""
    record = bytearray(2048)
    for place in (0, 128, 256):
        struct.pack_into("<6Q", record, place, 3, 10, task, 0, 0x1200, 0x3400)
    struct.pack_into("<Q", record, 512, statuses[0])
    struct.pack_into("<Q", record, 768, statuses[1])
    struct.pack_into("<3Q", record, 1024, 0xABC, 2, statuses[2])
    return bytes(record)


def new_record(kind: int = 1, status: int = 16, context: int = 65535,
               thread: int = 65535) -> bytes:
    """A record of version 0 of an AI core (0, 1), task 7, stream 10."""
    values = (3, 10, 7, 0, context, thread, 0x1200, 0x3400, 2, 0, status)
    return struct.pack("<6I", 0x5A5A5A5A, 0, 1, kind, 0, 88) + struct.pack("<11Q", *values)


def record_file(*records: bytes) -> Dump:
    """The dump whose outputs are these records."""
    return Dump(outputs=[Tensor(one, 0, (len(one),)) for one in records])


def nano(array: np.ndarray) -> bytes:
    """A nano dump whose one output is an array of int32 (type 3 there), ND."""
    assert array.dtype == np.int32
    data = array.tobytes()
    shape = b"".join(struct.pack("<Q", size) for size in array.shape)
    tail = struct.pack("<II", 0, len(shape)) + shape + struct.pack("<II", 1, len(shape)) + shape
    record = struct.pack("<6I3QI", 3, 2, 1, 0, 3, 2, 0x1000, 0, len(data), len(tail)) + tail
    header = struct.pack("<5I", 0x5A5A5A5A, 1, 5, len(record) + 4, 1) + record
    return struct.pack("<Q", len(header)) + header + data
