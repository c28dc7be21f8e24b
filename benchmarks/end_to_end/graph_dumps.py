"""Static-graph dumps: statistics of many small tensors, and the index of a large tree.

    python benchmarks/end_to_end/graph_dumps.py [--tensors N] [--files N] [--work DIR]

--tensors: that many files of 1024 float32 are turned into statistic.csv by `plumb dump-config
finish` and by a loop over NumPy in the same run. Every number of both tables must agree to six
digits before a figure is printed. --files: a tree of that many (empty) files over 10 iterations is
indexed; the index must hold them all.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from plumbline import _compare

ELEMENTS = 1024
REPEATS = 3
COLUMNS = ("Max Value", "Min Value", "Avg Value", "L2Norm Value")


def file_name(kernel: int, time_us: int) -> str:
    """Of the output of one kernel."""
    name = f"Default_net_layer{kernel % 97}_MatMul-op{kernel}"
    return f"MatMul.{name}.0.0.{1700000000000000 + time_us}.output.0.DefaultFormat.Float32.npy"


def make_tensors(directory: Path, count: int) -> None:
    """Writes `count` tensors of 4 KiB."""
    directory.mkdir(parents=True)
    random = np.random.default_rng(1)
    for i in range(count):
        np.save(directory / file_name(i, i), random.standard_normal(ELEMENTS).astype(np.float32))


def statistics_by_numpy(directory: Path) -> dict[str, tuple[float, ...]]:
    """Maximum, minimum, mean and norm of every file, as a script would compute them."""
    table = {}
    for path in sorted(directory.glob("*.npy")):
        values = np.load(path)
        table[path.name.split(".")[1]] = (values.max(), values.min(), values.mean(),
                                          np.linalg.norm(values))
    return table


def check_table(path: Path, expected: dict[str, tuple[float, ...]]) -> None:
    """Raises unless every row of statistic.csv agrees with NumPy to six digits."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    if len(rows) != len(expected):
        raise SystemExit(f"{path}: {len(rows)} rows, expected {len(expected)}")
    for row in rows:
        cells = dict(zip(header, row, strict=False))
        for column, value in zip(COLUMNS, expected[cells["Op Name"]], strict=True):
            if not np.isclose(float(cells[column]), value, rtol=2e-5, atol=1e-6):
                raise SystemExit(f"{path}: {cells['Op Name']} {column} is {cells[column]}, "
                                 f"NumPy has {value}")


def time_statistics(work: Path, plumb: str, count: int) -> dict[str, float]:
    """Median times of both, each right after the other."""
    directory = work / "tensors/rank_0/Net/0/0"
    make_tensors(directory, count)
    table = directory / "statistic.csv"
    ours, theirs = [], []
    for _ in range(REPEATS):
        table.unlink(missing_ok=True)
        begin = time.perf_counter()
        subprocess.run([plumb, "dump-config", "finish", work / "tensors"], check=True,
                       capture_output=True)
        ours.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        expected = statistics_by_numpy(directory)
        theirs.append(time.perf_counter() - begin)
        check_table(table, expected)
    mine, numpy = sorted(ours)[REPEATS // 2], sorted(theirs)[REPEATS // 2]
    return {"tensors": count, "finish_s": mine, "numpy_s": numpy, "times_faster": numpy / mine}


def time_index(work: Path, count: int) -> dict[str, float]:
    """Seconds for the index of `count` files."""
    root = work / "tree"
    for step in range(10):
        directory = root / f"rank_0/Net/0/{step}"
        directory.mkdir(parents=True)
        for i in range(count // 10):
            os.close(os.open(directory / file_name(i, i), os.O_CREAT | os.O_WRONLY))
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        index = _compare.index_graph_dump(str(root))
        seconds.append(time.perf_counter() - begin)
        if len(index) != count // 10 * 10 or index.left_out:
            raise SystemExit(f"{len(index)} tensors and {index.left_out} others, expected {count}")
        del index
    return {"files": count, "index_s": sorted(seconds)[REPEATS // 2]}


def main() -> int:
    """Prints one JSON line per figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tensors", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--work", help="where the trees go (a temporary directory)")
    arguments = parser.parse_args()
    plumb = os.environ.get("PLUMB") or shutil.which("plumb") or "plumb"
    with tempfile.TemporaryDirectory(dir=arguments.work) as work:
        if arguments.tensors:
            print(json.dumps(time_statistics(Path(work), plumb, arguments.tensors)), flush=True)
        if arguments.files:
            print(json.dumps(time_index(Path(work), arguments.files)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
