"""Compares two trees of device dumps, next to the same steps in NumPy.

    python benchmarks/end_to_end/operator_pairs.py [--operators 5000] [--samples 3]
        [--tensors network|small|large]

Both read every file, take the message apart, bring the tensors from their blocked layouts into the
order NCHW, compute the ten measures of `msaccucmp compare` and write one csv. The values of all
rows are compared before a JSON line of times is printed; exit status 1 if one differs by more than
rounding.

What limits it where tensors are small (--tensors small): 10,000 files of 32 KB and 50 million pairs
of float16. While many other programs used the two cores, plumb took 0.31 to 0.34 processor seconds
on 5,000 operators (on tmpfs) and NumPy 4.0, a ratio of 12. Of the samples 25 % are in pread, which
copies 320 MB, 27 % in the two passes of the measures (AVX-512), 8 % in openat, 4 % in fstat and
close, 8 % in the layouts, 4 % in page faults; the rest is spread. 30 times by the clock asks for
0.12 s, that is at most 0.24 processor seconds spread evenly over two cores: reading and measuring
alone take 0.2. With larger tensors the files cost little: of 1 MiB (--tensors large, 12 operators)
the ratio was 37 by the clock and by processor time.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import overhead
import tools_under_test as tut

sys.path.insert(0, str(tut.ROOT / "tests" / "python"))
from device_dumps import CODES
from operator_dumps import FORMATS, dump_name, write_dump

NAMES = ["CosineSimilarity", "MaxAbsoluteError", "AccumulatedRelativeError",
         "RelativeEuclideanDistance", "KullbackLeiblerDivergence", "StandardDeviation",
         "MeanAbsoluteError", "RootMeanSquareError", "MaxRelativeError", "MeanRelativeError"]
DTYPES = {code: name for name, code in CODES.items()}
EPSILON = 2.220446e-16

Array = np.ndarray[Any, Any]


# Shapes by size of the tensors: those of ResNet-50 and BERT base at batch 1 (50 to 400 KB), about
# 5,000 elements each, about 1 MiB each.
SHAPES = {
    "network": [("NC1HWC0", (1, 64, 56, 56)), ("NC1HWC0", (1, 128, 28, 28)),
                ("NC1HWC0", (1, 256, 14, 14)), ("NC1HWC0", (1, 1024, 14, 14)),
                ("NC1HWC0", (1, 512, 7, 7)), ("FRACTAL_NZ", (1, 128, 768)),
                ("FRACTAL_NZ", (12, 128, 128)), ("FRACTAL_Z", (64, 64, 3, 3)),
                ("FRACTAL_Z", (128, 128, 3, 3))],
    "small": [("NC1HWC0", (1, 24, 14, 14)), ("FRACTAL_NZ", (2, 60, 50)),
              ("FRACTAL_Z", (20, 24, 3, 3))],
    "large": [("NC1HWC0", (1, 72, 86, 86)), ("FRACTAL_NZ", (8, 250, 260)),
              ("FRACTAL_Z", (236, 248, 3, 3))],
}


def make_tree(directory: Path, operators: int, noise: float,
              shapes: list[tuple[str, tuple[int, ...]]]) -> None:
    """One input and one output per operator, in three layouts."""
    directory.mkdir()
    random = np.random.default_rng(20260101)
    disturb = np.random.default_rng(1)
    for i in range(operators):
        layout, shape = shapes[i % len(shapes)]
        given, made = (random.normal(size=shape) for _ in range(2))
        made = made + noise * disturb.normal(size=shape)
        write_dump(directory / dump_name("Op", f"layer_{i}", i), [(given.astype("f2"), layout)],
                   [(made.astype("f2"), layout)])


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of a message and the place behind it."""
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, at
        shift += 7


def fields(data: bytes) -> list[tuple[int, Any]]:
    """Numbers and values of the fields of a message."""
    found = []
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            found.append((key >> 3, data[at:at + value]))
            at += value
        else:
            found.append((key >> 3, value))
    return found


def sizes_of(message: bytes) -> tuple[int, ...]:
    """The sizes of a message Shape, whose only field is a packed list."""
    ((_, packed),) = fields(message)
    sizes = []
    at = 0
    while at < len(packed):
        size, at = varint(packed, at)
        sizes.append(size)
    return tuple(sizes)


def unpack(array: Array, layout: int, host: tuple[int, ...]) -> Array:
    """A device tensor in the host's order, without padding."""
    if layout == FORMATS["NC1HWC0"]:
        n, c1, h, w, c0 = array.shape
        return array.transpose(0, 1, 4, 2, 3).reshape(n, c1 * c0, h, w)[:, :host[1]]
    if layout == FORMATS["FRACTAL_Z"]:
        n, c, h, w = host
        n1, n0, c0 = array.shape[1:]
        array = array.reshape(-1, h, w, n1, n0, c0).transpose(3, 4, 0, 5, 1, 2)
        return array.reshape(n1 * n0, -1, h, w)[:n, :c]
    if layout == FORMATS["FRACTAL_NZ"]:
        array = np.moveaxis(array, -4, -2)
        array = array.reshape(*array.shape[:-4], array.shape[-4] * array.shape[-3], -1)
        return array[..., :host[-2], :host[-1]]
    return array


def read_dump(path: Path) -> dict[str, list[Array]]:
    """The tensors of a file, inputs and outputs."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    tensors: dict[str, list[Array]] = {"input": [], "output": []}
    messages = fields(data[8:8 + size])
    at = 8 + size
    for side, number, size_field, host_field in (("input", 4, 5, 6), ("output", 3, 6, 7)):
        for message in (value for key, value in messages if key == number):
            facts = dict(fields(message))
            shape, host = (sizes_of(facts[key]) for key in (3, host_field))
            array = np.frombuffer(data, DTYPES[facts[1]], int(np.prod(shape)), at).reshape(shape)
            tensors[side].append(unpack(array, facts[2], host))
            at += facts[size_field]
    return tensors


def measures(x: Array, y: Array) -> list[Any]:
    """The ten values of a pair."""
    x, y = x.astype("f8").ravel(), y.astype("f8").ravel()
    difference = np.abs(x - y)
    with np.errstate(divide="ignore", invalid="ignore"):  # where y is 0
        relative = np.where(np.abs(y) > EPSILON, np.abs(x / y - 1), 0)
    p, q = ((v - v.min()) / (v.max() - v.min()) for v in (x, y))
    p, q = (np.maximum(v, np.finfo("f4").eps) for v in (p, q))
    p, q = p / p.sum(), q / q.sum()
    squares = (difference ** 2).sum()
    return [min(1, (x / np.linalg.norm(x)) @ (y / np.linalg.norm(y))), difference.max(),
            relative.sum(), np.sqrt(squares / (y ** 2).sum()), (p * np.log(p / q)).sum(),
            (x.mean(), x.std(), y.mean(), y.std()), difference.mean(),
            np.sqrt(squares / len(x)), relative.max(), relative.mean()]


def texts(values: list[Any]) -> list[str]:
    """Values as the csv spells them."""
    return ["({:.3f};{:.3f}),({:.3f};{:.3f})".format(*v) if isinstance(v, tuple) else f"{v:.6f}"
            for v in values]


def compare_by_numpy(mine: Path, golden: Path, out: Path) -> None:
    """The same steps in Python."""
    theirs = {path.name.split(".")[1]: path for path in golden.iterdir()}
    with (out / "numpy.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["TensorIndex", *NAMES])
        for path in sorted(mine.iterdir(), key=lambda p: p.name.split(".")[4]):
            name = path.name.split(".")[1]
            sides = read_dump(path), read_dump(theirs[name])
            for side in ("input", "output"):
                for i, pair in enumerate(zip(sides[0][side], sides[1][side], strict=True)):
                    writer.writerow([f"{name}:{side}:{i}", *texts(measures(*pair))])


def rows_of(path: Path) -> dict[str, list[str]]:
    """Values by tensor."""
    with path.open(newline="") as file:
        return {row["TensorIndex"]: [row[name] for name in NAMES] for row in csv.DictReader(file)}


def is_near(text: str, other: str) -> bool:
    """Equal but for the last digits of a sum."""
    if text == other:
        return True
    numbers = [[float(part) for part in value.strip("()").replace("),(", ";").split(";")]
               for value in (text, other)]
    return bool(np.allclose(*numbers, rtol=1e-9, atol=1.1e-6 if "(" not in text else 1.1e-3))


def differences(ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> list[str]:
    """Rows that are missing or whose values are others."""
    wrong = [name for name in theirs if name not in ours] + [n for n in ours if n not in theirs]
    return wrong + [name for name in ours if name in theirs
                    and not all(map(is_near, ours[name], theirs[name]))]


def timed(samples: int, work: Any) -> tuple[float, float]:
    """Medians of wall and CPU seconds, children included."""
    walls, cpus = [], []
    for _ in range(samples):
        before, start = os.times(), time.perf_counter()
        work()
        walls.append(time.perf_counter() - start)
        cpus.append(sum(os.times()[:4]) - sum(before[:4]))
    return statistics.median(walls), statistics.median(cpus)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", default=str(Path(sys.executable).with_name("plumb")))
    parser.add_argument("--operators", type=int, default=5000)
    parser.add_argument("--tensors", choices=SHAPES, default="network", help="their sizes")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--json", type=Path, help="append a JSON line here")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        mine, golden = top / "mine", top / "golden"
        make_tree(mine, args.operators, 0.001, SHAPES[args.tensors])
        make_tree(golden, args.operators, 0, SHAPES[args.tensors])

        def native() -> None:
            subprocess.run([args.plumb, "msaccucmp", "compare", "-m", mine, "-g", golden, "-out",
                            top], check=True, capture_output=True)

        native()
        (result,) = top.glob("result_*.csv")
        compare_by_numpy(mine, golden, top)
        wrong = differences(rows_of(result), rows_of(top / "numpy.csv"))
        if wrong:
            print("values differ:", wrong[:5], file=sys.stderr)
            return 1
        ours = timed(args.samples, native)
        theirs = timed(args.samples, lambda: compare_by_numpy(mine, golden, top))
    result = {"benchmark": "operator_pairs", "operators": args.operators, "tensors": args.tensors,
              "plumb_s": round(ours[0], 3), "plumb_cpu_s": round(ours[1], 3),
              "numpy_s": round(theirs[0], 3), "numpy_cpu_s": round(theirs[1], 3),
              "numpy_over_plumb": round(theirs[0] / ours[0], 1),
              "numpy_over_plumb_cpu": round(theirs[1] / ours[1], 1)}
    print(json.dumps(result), flush=True)
    overhead.append_json(args.json, overhead.machine(), [result])
    return 0


if __name__ == "__main__":
    sys.exit(main())
