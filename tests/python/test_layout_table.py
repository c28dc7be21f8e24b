"""Every row of the table of device layouts, both ways, against NumPy's places of elements."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_dumps import CODES, Dump, Tensor
from recording import PLUMB

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

# Of elements of 1, 2, 4, 8 and 16 bytes; the two of one byte have blocks of 32 channels.
TYPES = ["int8", "uint8", "bool", "float16", "int16", "float32", "int32", "int64", "float64",
         "complex64", "complex128"]
NUMBERS = CODES | {"complex128": 17}
FORMATS = {"NCHW": 0, "NHWC": 1, "ND": 2, "NC1HWC0": 3, "FRACTAL_Z": 4, "NHWC1C0": 6,
           "C1HWNC0": 9, "NC1HWC0_C04": 12, "FRACTAL_Z_C04": 13, "CHWN": 14, "HWCN": 16,
           "C1HWNCoC0": 25, "NDHWC": 27, "FRACTAL_NZ": 29, "NCDHW": 30, "DHWCN": 31,
           "NDC1HWC0": 32, "FRACTAL_Z_3D": 33, "CN": 34, "DHWNC": 36, "FRACTAL_ZN_LSTM": 38}
CHANNELS = (1, 15, 16, 17, 33)


def blocks(size: int, block: int) -> int:
    """How many blocks a size takes."""
    return -(-size // block)


def group_sizes(shape: Shape, c0: int, groups: int) -> tuple[int, int, int]:
    """Groups side by side in a block, blocks of channels, and filters with padding."""
    filters, cin = shape[0] // groups, shape[1]
    together = min(math.lcm(math.lcm(cin, c0) // cin, math.lcm(filters, 16) // filters), groups)
    return together, blocks(together * cin, c0), blocks(together * filters, 16) * 16


def places(layout: str, shape: Shape, c0: int, groups: int = 1) -> tuple[Shape, Array]:
    """The sizes on the device, and the place of each element of the host tensor."""
    index = np.indices(shape)
    if layout == "FRACTAL_NZ":
        *lead, rows, columns = shape
        h, w = index[-2], index[-1]
        matrix = np.zeros(shape, np.int64)
        for axis, size in enumerate(lead):
            matrix = matrix * size + index[axis]
        h1, w1 = blocks(rows, 16), blocks(columns, c0)
        return ((*lead, w1, h1, 16, c0),
                ((matrix * w1 + w // c0) * h1 * 16 + h) * c0 + w % c0)
    if layout == "FRACTAL_ZN_LSTM":
        hidden = shape[1] // 4
        inputs = shape[0] - hidden
        h16, i16 = blocks(hidden, 16), blocks(inputs, 16)
        row = np.where(index[0] < inputs, index[0], index[0] - inputs + i16 * 16)
        column = index[1] // hidden * h16 * 16 + index[1] % hidden
        return ((i16 + h16, 4 * h16, 16, 16),
                (row // 16 * 4 * h16 + column // 16) * 256 + column % 16 * 16 + row % 16)
    if len(shape) == 5:
        n, c, d, h, w = index
        sizes, channels, depth, height, width = shape
        c1, n1 = blocks(channels, c0), blocks(sizes, 16)
        if layout == "NDC1HWC0":
            return ((sizes, depth, c1, height, width, c0),
                    ((((n * depth + d) * c1 + c // c0) * height + h) * width + w) * c0 + c % c0)
        return ((depth * c1 * height * width, n1, 16, c0),
                ((((d * c1 + c // c0) * height + h) * width + w) * n1 * 16 + n) * c0 + c % c0)
    n, c, h, w = index
    sizes, channels, height, width = shape
    c1, n1 = blocks(channels, c0), blocks(sizes, 16)
    if layout in ("NC1HWC0", "NC1HWC0_C04"):
        return ((sizes, c1, height, width, c0),
                (((n * c1 + c // c0) * height + h) * width + w) * c0 + c % c0)
    if layout == "NHWC1C0":
        return ((sizes, height, width, c1, c0),
                (((n * height + h) * width + w) * c1 + c // c0) * c0 + c % c0)
    if layout == "C1HWNC0":
        return ((c1, height, width, sizes, c0),
                (((c // c0 * height + h) * width + w) * sizes + n) * c0 + c % c0)
    if layout == "C1HWNCoC0":
        return ((c1, height, width, sizes, c0, c0),
                (((c // c0 * height + h) * width + w) * sizes + n) * c0 * c0
                + c % c0 * c0 + c % c0)
    if layout == "FRACTAL_Z_C04":
        v = (h * width + w) * 4 + c
        return ((blocks(4 * height * width, 16), n1, 16, 16),
                v // 16 * n1 * 256 + n * 16 + v % 16)
    together, c1, padded = group_sizes(shape, c0, groups)
    filters = sizes // groups
    group = n // filters
    ci, co = group % together * channels + c, group % together * filters + n % filters
    return ((blocks(groups, together) * c1 * height * width, padded // 16, 16, c0),
            (((group // together * c1 + ci // c0) * height + h) * width + w) * padded * c0
            + co * c0 + ci % c0)


def elements(shape: Shape, dtype: str, seed: int) -> Array:
    """Values that tell places apart, none of them the zero of padding."""
    values = np.random.default_rng(seed).integers(1, 120, shape)
    if dtype.startswith("complex"):
        return (values + 1j * np.roll(values, 1)).astype(dtype)
    return values.astype(dtype)


def block_of(dtype: str, layout: str) -> int:
    """Channels of a block."""
    if layout.endswith("C04"):
        return 4
    return 32 if dtype in ("int8", "uint8") and layout != "FRACTAL_ZN_LSTM" else 16


def packed(array: Array, layout: str, groups: int) -> Array:
    """A host tensor as it lies on the device."""
    sizes, where = places(layout, array.shape, block_of(array.dtype.name, layout), groups)
    device = np.zeros(math.prod(sizes), array.dtype)
    device[where.reshape(-1)] = array.reshape(-1)
    return device.reshape(sizes)


def converted(directory: Path, dumps: list[Dump], layout: str,
              named: list[Shape] | None = None) -> list[Array]:
    """The first output of each dump in a layout, by one run of the program.

    `named`: the sizes of each, which the device's own leave open; one run each.
    """
    files = [dump.write(directory / "dump" / f"Op.case{i:04}.1.2.{1_612_439_563_000_000 + i}")
             for i, dump in enumerate(dumps)]
    words = [PLUMB, "convert", "-out", str(directory / "out"), "-f", layout, "-d"]
    runs = [[str(directory / "dump")]] if named is None else [
        [str(file), "-s", ",".join(map(str, sizes))]
        for file, sizes in zip(files, named, strict=True)]
    for run in runs:
        done = subprocess.run([*words, *run], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    paths = sorted((directory / "out").glob("*.npy"), key=lambda path: path.name.split(".")[1])
    return [np.load(path) for path in paths]


HOSTS = {5: "NCDHW", 2: "CN"}
CASES: dict[str, list[Shape]] = {
    "NC1HWC0": [(n, c, h, w) for n in (1, 3) for c in CHANNELS for h, w in ((1, 1), (3, 5))],
    "NC1HWC0_C04": [(2, c, 7, 5) for c in (1, 2, 3, 4)],
    "NHWC1C0": [(2, c, 3, 5) for c in CHANNELS],
    "C1HWNC0": [(3, c, 2, 5) for c in CHANNELS],
    "C1HWNCoC0": [(3, c, 2, 5) for c in CHANNELS],
    "FRACTAL_Z": [(n, c, h, w) for n in CHANNELS for c in CHANNELS for h, w in ((1, 1), (3, 2))],
    "FRACTAL_Z_C04": [(n, c, 5, 5) for n in CHANNELS for c in (1, 3, 4)],
    "NDC1HWC0": [(2, c, 3, 2, 5) for c in CHANNELS],
    "FRACTAL_Z_3D": [(n, c, 3, 2, 2) for n in (1, 17) for c in CHANNELS],
    "FRACTAL_ZN_LSTM": [(i + h, 4 * h) for i in (1, 15, 33) for h in (1, 16, 17)],
    "FRACTAL_NZ": [(*lead, h, w) for lead in ((), (2,), (2, 3)) for h in (1, 16, 33)
                   for w in (1, 17, 32)],
}
GROUPED = [(g, g * cout, cin, 2, 3) for g in (2, 3, 16) for cin in (1, 3, 16, 20)
           for cout in (1, 3, 16)]


def cases_of(layout: str) -> list[tuple[Array, int]]:
    """Host tensors of every shape, the types in turn, and every type at least once."""
    shapes = CASES[layout]
    count = max(len(shapes), len(TYPES))
    return [(elements(shapes[i % len(shapes)], TYPES[i % len(TYPES)], i), 1)
            for i in range(count)]


def both_ways(directory: Path, layout: str, cases: list[tuple[Array, int]],
              is_open: bool = False) -> None:
    """From the device to the host and back, each against NumPy.

    `is_open`: the sizes on the device fit several orders of the original ones.
    """
    rank = cases[0][0].ndim
    host = "ND" if layout == "FRACTAL_NZ" else HOSTS.get(rank, "NCHW")
    device = [packed(array, layout, groups) for array, groups in cases]
    dumps = [Dump(outputs=[Tensor(there.tobytes(), NUMBERS[array.dtype.name], there.shape,
                                  FORMATS[layout], array.shape, groups)])
             for (array, groups), there in zip(cases, device, strict=True)]
    named = [array.shape for array, _ in cases] if is_open else None
    for (array, groups), back in zip(cases, converted(directory / "host", dumps, host, named),
                                     strict=True):
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array, err_msg=f"{layout} {array.shape} {groups}")
    dumps = [Dump(outputs=[Tensor(array.tobytes(), NUMBERS[array.dtype.name], array.shape,
                                  FORMATS[host], None if i % 3 == 0 else array.shape, groups)])
             for i, (array, groups) in enumerate(cases)]
    for there, made in zip(device, converted(directory / "device", dumps, layout), strict=True):
        assert made.shape == there.shape
        np.testing.assert_array_equal(made, there, err_msg=f"{layout} {there.shape}")


@pytest.mark.parametrize("layout", list(CASES))
def test_blocked_layouts(tmp_path: Path, layout: str) -> None:
    """Channels and filters that fill no block, elements of every size."""
    both_ways(tmp_path, layout, cases_of(layout))


def test_grouped_weights(tmp_path: Path) -> None:
    """Groups that share blocks, and groups that fill several."""
    cases = [(elements((n, c, h, w), TYPES[3 + i % 8], i), groups)
             for i, (groups, n, c, h, w) in enumerate(GROUPED)]
    both_ways(tmp_path, "FRACTAL_Z", cases, is_open=True)


PLAIN = ["NCHW", "NHWC", "HWCN", "CHWN"]
VOLUMES = ["NCDHW", "NDHWC", "DHWCN", "DHWNC"]


@pytest.mark.parametrize(("source", "target"), [(a, b) for group in (PLAIN, VOLUMES)
                                                for a in group for b in group if a != b])
def test_plain_orders(tmp_path: Path, source: str, target: str) -> None:
    """Between any two orders of axes."""
    shape = (3, 17, 4, 5)[:len(source)] if len(source) == 4 else (3, 17, 2, 4, 5)
    arrays = [elements(shape, dtype, i) for i, dtype in enumerate(TYPES)]
    dumps = [Dump(outputs=[Tensor(array.tobytes(), NUMBERS[array.dtype.name], array.shape,
                                  FORMATS[source])]) for array in arrays]
    for array, made in zip(arrays, converted(tmp_path, dumps, target), strict=True):
        np.testing.assert_array_equal(made, array.transpose([source.index(a) for a in target]))
