"""Static-graph dumps: statistics of many small tensors, and the index of a large tree.

    python benchmarks/end_to_end/graph_dumps.py [--tensors N] [--files N] [--work DIR]

--tensors: that many files of 1024 float32 are turned into statistic.csv by `plumb dump-config
finish` and by a Python loop over NumPy in the same run. Both tables must agree, reals to six digits
and counts and digests exactly, before a figure is printed. The first line is of the four default
categories, the second of all eleven statistics, the third of these and MD5, by both sides. Seconds
are given twice, by the clock and by the processors, because other programs may take the cores;
NumPy uses one core and `finish` all of them. On two quiet cores 100,000 tensors took 0.35 s on
tmpfs, 25 times less than NumPy (28 times with eleven statistics), and 0.42 s on ext4, 24 times.

What limits it: one file per tensor, as MindSpore writes them. For 100,000 files on tmpfs `finish`
takes 0.68 to 0.72 processor seconds (Linux 6.18, two cores that other programs use, too). Four
fifths of the samples are in the kernel: 28 % in openat, 28 % in read, 8 % in close, 7 % in the
list, 5 % in page faults. A loop in C that does nothing but openat, read and close takes 0.44 to
0.47 there in the order of the list and 0.53 to 0.62 in that of the names: that is why `finish`
reads the files as they are listed. For 50,000 files on ext4, whose list is in no order, the loop
takes 0.25 to 0.28, by name 0.28 to 0.38, by inode 0.25 to 0.26. Other ways to read were no
better: a table of descriptors for each thread, 64 of them closed by one close_range, and io_uring
in batches of 64 (0.48 to 0.51 in the order of the list). The loop takes the same with two threads.

--files: a tree of that many (empty) files over 10 iterations is
indexed; the index must hold them all.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from plumbline import _compare

ELEMENTS = 1024
REPEATS = 3
HEADER = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape"
FIXED = 10  # columns in front of the statistics
Columns = dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], object]]]
# Columns of statistic_category and what NumPy computes, accumulated in double as MindSpore does.
# The counts and the digest are only taken where they are asked for.
DEFAULT: Columns = {
    "max": ("Max Value", lambda x, wide: f"{wide.max():g}"),
    "min": ("Min Value", lambda x, wide: f"{wide.min():g}"),
    "avg": ("Avg Value", lambda x, wide: f"{wide.mean():g}"),
    "l2norm": ("L2Norm Value", lambda x, wide: f"{np.sqrt((wide * wide).sum()):g}"),
}
STATISTICS = DEFAULT | {
    "count": ("Count", lambda x, wide: x.size),
    "negative zero count": ("Negative Zero Count", lambda x, wide: np.count_nonzero(x < 0)),
    "positive zero count": ("Positive Zero Count", lambda x, wide: np.count_nonzero(x > 0)),
    "nan count": ("NaN Count", lambda x, wide: np.count_nonzero(np.isnan(x))),
    "negative inf count": ("Negative Inf Count", lambda x, wide: np.count_nonzero(np.isneginf(x))),
    "positive inf count": ("Positive Inf Count", lambda x, wide: np.count_nonzero(np.isposinf(x))),
    "zero count": ("Zero Count", lambda x, wide: np.count_nonzero(x == 0)),
}
WITH_DIGEST = STATISTICS | {"md5": ("MD5", lambda x, wide: hashlib.md5(x.data).hexdigest())}


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


def table_by_numpy(directory: Path, table: Path, columns: Columns) -> None:
    """The same table by a loop over NumPy."""
    rows = []
    for path in directory.glob("*.npy"):
        kind, name, task, stream, stamp, io, slot, _, dtype, _ = path.name.split(".")
        values = np.load(path)
        wide = values.astype(np.float64)
        found = ",".join(str(take(values, wide)) for _, take in columns.values())
        shape = ",".join(map(str, values.shape))
        rows.append((int(stamp), f'{kind},{name},{task},{stream},{stamp},{io},{slot},'
                     f'{values.nbytes},{dtype.lower()},"({shape})",{found},\n'))
    rows.sort()
    header = ",".join([HEADER, *(column for column, _ in columns.values())])
    table.write_text(header + "\n" + "".join(row for _, row in rows))


def check_tables(ours: Path, theirs: Path) -> None:
    """Raises unless both tables hold the same, but for the last of six digits."""
    with ours.open(newline="") as left, theirs.open(newline="") as right:
        pairs = list(zip(csv.reader(left), csv.reader(right), strict=True))
    for mine, numpy in pairs[1:]:
        reals = slice(FIXED, FIXED + len(DEFAULT))
        exact = slice(reals.stop, None)
        if mine[:FIXED] != numpy[:FIXED] or mine[exact] != numpy[exact] or not np.allclose(
                np.array(mine[reals], float), np.array(numpy[reals], float), rtol=1e-5,
                atol=1e-12):
            raise SystemExit(f"{ours}: {mine}, NumPy has {numpy}")


def take_time(times: dict[str, list[float]], name: str, action: Callable[[], object]) -> None:
    """Adds the seconds of `action`, and those that processors spent on it: others may run here."""
    def cpu() -> float:
        return sum(sum(resource.getrusage(who)[:2])
                   for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    begin, cpu_begin = time.perf_counter(), cpu()
    action()
    times.setdefault(f"{name}_s", []).append(time.perf_counter() - begin)
    times.setdefault(f"{name}_cpu_s", []).append(cpu() - cpu_begin)


def time_statistics(directory: Path, work: Path, plumb: str, columns: Columns) -> dict[str, float]:
    """Median times of both, each right after the other."""
    table = directory / "statistic.csv"
    times: dict[str, list[float]] = {}
    for _ in range(REPEATS):
        table.unlink(missing_ok=True)
        take_time(times, "finish", lambda: subprocess.run(
            [plumb, "dump-config", "finish", directory, "--statistic-category", *columns],
            check=True, capture_output=True))
        take_time(times, "numpy", lambda: table_by_numpy(directory, work / "numpy.csv", columns))
        check_tables(table, work / "numpy.csv")
    middle = {name: sorted(values)[REPEATS // 2] for name, values in times.items()}
    return {"categories": len(columns), **middle,
            "times_faster": middle["numpy_s"] / middle["finish_s"],
            "times_less_cpu": middle["numpy_cpu_s"] / middle["finish_cpu_s"]}


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
            directory = Path(work) / "tensors/rank_0/Net/0/0"
            make_tensors(directory, arguments.tensors)
            for columns in (DEFAULT, STATISTICS, WITH_DIGEST):
                print(json.dumps({"tensors": arguments.tensors, **time_statistics(
                    directory, Path(work), plumb, columns)}), flush=True)
        if arguments.files:
            print(json.dumps(time_index(Path(work), arguments.files)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
