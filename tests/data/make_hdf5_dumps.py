"""Writes tests/data/hdf5_dump: small operator dumps, sound and damaged.

    python tests/data/make_hdf5_dumps.py

h5py writes the files as PyTorch 1.5 did and as plumbline does (docs/formats/hdf5_dump.md). The
checksums are computed here. Needs h5py and NumPy. found_*.h5 were found by mutation and stay.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np

FOLDER = Path(__file__).resolve().parent / "hdf5_dump"
DATA_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7, "float16": 10, "float64": 11}


def put(file: h5py.File, name: str, array: Any, kind: int = 0, own: bool = False,
        **creation: Any) -> h5py.Dataset:
    """A value under /{operator}/{call}/{side}/{argument}; `own`: with its checksum."""
    array = np.asarray(array)
    dataset = file.create_dataset(name, data=array, **creation)
    numbers = {"Type": kind}
    if kind == 0:
        numbers |= {"DeviceType": 0, "DataType": DATA_TYPES[array.dtype.name], "FormatType": 0}
        strides = [stride // array.itemsize for stride in array.strides]
        dataset.attrs.create("Stride", strides, dtype=np.int64)
    for attribute, number in numbers.items():
        dataset.attrs.create(attribute, number, dtype=np.int32)
    if own:
        relative = "/".join(name.split("/")[2:])
        facts = f"{relative}|{kind}|{numbers.get('DataType', 0)}|"
        facts += ",".join(map(str, array.shape))
        dataset.attrs.create("Checksum", zlib.crc32(facts.encode() + array.tobytes()),
                             dtype=np.uint32)
    return dataset


def mark(file: h5py.File, calls: int) -> None:
    """Says that plumbline wrote the file."""
    file.attrs["Writer"] = "plumbline"
    file.attrs.create("Calls", calls, dtype=np.int64)


def old(file: h5py.File) -> None:
    """Tensors, numbers, a list, as PyTorch 1.5 wrote them."""
    put(file, "add/1/input/self", np.arange(6, dtype="f4").reshape(2, 3))
    put(file, "add/1/input/alpha", np.int64(1), 7)
    put(file, "add/1/input/sizes", np.array([2, 3], "i8"), 2)
    put(file, "add/1/output/result", np.arange(6, dtype="f4").reshape(3, 2))
    put(file, "cat/2/input/tensors/tensors_0", np.arange(4, dtype="u1").view("i1"))
    put(file, "cat/2/input/tensors/tensors_1", np.ones((), "f8"))
    file["cat/2/input/tensors"].attrs.create("Type", 1, dtype=np.int32)
    put(file, "cat/2/input/p", np.float64(0.5), 5)


def own(file: h5py.File) -> None:
    """The same kinds with checksums."""
    put(file, "relu/1/input/self", np.array([-1.5, 2], "f4"), own=True)
    put(file, "relu/1/output/result", np.array([0, 2], "f4"), own=True)
    put(file, "relu/1/input/inplace", np.int8(0), 4, own=True)
    mark(file, 1)


def packed(file: h5py.File) -> None:
    """Chunks and deflate."""
    put(file, "mul/1/input/self", np.zeros((8, 8), "f4"), chunks=(4, 4), compression="gzip")
    put(file, "mul/1/output/result", np.zeros((8, 8), "i8"), chunks=(8, 4), shuffle=True)


def odd(file: h5py.File) -> None:
    """Strides that do not fit, a missing type, another type than DataType says, links."""
    put(file, "a/1/input/x", np.ones((2, 2), "f4")).attrs["Stride"] = np.array([9, -1], "i8")
    put(file, "a/1/input/y", np.ones(2, "f8")).attrs.modify("DataType", np.int32(1))
    del put(file, "a/1/input/z", np.ones(2, "f4")).attrs["DataType"]
    file["a/1/input/link"] = h5py.SoftLink("/a/1/input/x")
    file["a/2"] = file["a/1"]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for build in (old, own, packed, odd):
        with h5py.File(FOLDER / f"{build.__name__}.h5", "w", libver="earliest") as file:
            build(file)
    whole = (FOLDER / "own.h5").read_bytes()
    flipped = bytearray(whole)
    flipped[whole.index(np.array([-1.5, 2], "f4").tobytes())] ^= 1
    wide = whole.replace((2).to_bytes(8, "little"), (2 ** 62).to_bytes(8, "little"), 1)
    packed_whole = (FOLDER / "packed.h5").read_bytes()
    shape_of_chunks = np.array([8, 4, 8], "<u4").tobytes()
    assert packed_whole.count(shape_of_chunks) == 1
    larger = packed_whole.replace(shape_of_chunks, np.array([8, 8, 8], "<u4").tobytes())
    for name, damaged in (("short_chunk", larger), ("cut", whole[:len(whole) // 2]),
                          ("flipped", bytes(flipped)), ("wide", wide), ("signature", whole[:64])):
        (FOLDER / f"{name}.h5").write_bytes(damaged)


if __name__ == "__main__":
    main()
