"""Time of what the viewer asks of tensors and of trends.

    python benchmarks/end_to_end/view_values.py [--gib 1] [--work DIR]

A pair of bfloat16 tensors of `--gib` GiB each (fixed seed) is written as .pt files, and a database
of trends of 20 ranks, 100 steps and 2,000 modules. Before a figure is printed, the counts of the
histograms are compared with those of NumPy, and cells of the heat maps with what sqlite3 reads.
"Cold" is the first question after the start of the process (the files are in the page cache), with
the time of the processors beside it: other programs do not count into that.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from plumbline import _compare

PIECE = 1 << 24  # elements that are looked at at once here
RANKS, STEPS, MODULES, METRICS = 20, 100, 2_000, 2
BUDGETS = {"histogram, cold": 1.5, "histogram, again": 0.01}


def cpu() -> float:
    """Seconds of processors so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def timed(name: str, work: Callable[[], str]) -> dict:
    """Prints the time of a question; its answer."""
    start, used = time.perf_counter(), cpu()
    text = work()
    wall, used = time.perf_counter() - start, cpu() - used
    budget = BUDGETS.get(name)
    said = "" if budget is None else f"  (at most {budget} s: {'yes' if wall <= budget else 'NO'})"
    print(f"{name:32} {wall:9.4f} s, processors {used:7.3f} s, {len(text):8} bytes{said}")
    return json.loads(text)


def make_pair(folder: Path, gib: float) -> tuple[Path, Path]:
    """Golden, and golden with relative noise of a percent."""
    elements = int(gib * (1 << 29)) // PIECE * PIECE
    random = torch.Generator().manual_seed(1)
    golden = torch.empty(elements, dtype=torch.bfloat16)
    target = torch.empty(elements, dtype=torch.bfloat16)
    for at in range(0, elements, PIECE):
        piece = torch.randn(PIECE, generator=random)
        golden[at:at + PIECE] = piece
        target[at:at + PIECE] = piece * (1 + 0.01 * torch.randn(PIECE, generator=random))
    golden[:3] = torch.tensor([torch.nan, torch.inf, 0])
    paths = folder / "target.pt", folder / "golden.pt"
    torch.save(target.reshape(-1, 4096), paths[0])
    torch.save(golden.reshape(-1, 4096), paths[1])
    return paths


def check_histogram(answer: dict, paths: tuple[Path, Path]) -> None:
    """The counts are NumPy's, over all elements."""
    edges = np.array(answer["edges"])
    tiny = torch.finfo(torch.bfloat16).tiny
    tensors = [torch.load(path, mmap=True).reshape(-1) for path in paths]
    counts = {"target": np.zeros(256, np.int64), "golden": np.zeros(256, np.int64)}
    equal = 0
    for at in range(0, len(tensors[0]), PIECE):
        sides = [tensor[at:at + PIECE].float().numpy() for tensor in tensors]
        equal += int((sides[0] == sides[1]).sum())
        for name, values in zip(counts, sides, strict=True):
            plain = values[np.isfinite(values) & (np.abs(values) >= tiny)]
            counts[name] += np.histogram(plain.astype(np.float64), edges)[0]
    for name, expected in counts.items():
        if answer[name]["counts"] != expected.tolist():
            sys.exit(f"{name}: the counts are not NumPy's")
    same_infinite = int((tensors[0][:3] == tensors[1][:3]).logical_and(
        tensors[1][:3].isinf()).sum())
    if answer["errors"]["equal"] != equal - same_infinite:
        sys.exit("the number of equal elements is not NumPy's")


def values(folder: Path, gib: float) -> None:
    """The questions about a pair of tensors."""
    paths = make_pair(folder, gib)
    reader = _compare.ValueReader()
    ask = lambda what, **parameters: (  # noqa: E731
        lambda: reader.ask(*paths, what, parameters))
    answer = timed("histogram, cold", ask("histogram"))
    timed("histogram, again", ask("histogram"))
    timed("histogram, other scale", ask("histogram", scale="symlog"))
    timed("difference pooled to 256 x 256", ask("slice"))
    timed("a thousand worst elements", ask("topk", k="1000"))
    timed("profile of the last axis", ask("profile"))
    timed("statistics", ask("stats"))
    check_histogram(answer, paths)


def make_trends(path: Path) -> None:
    """A database with a row for each rank, step, module and metric."""
    module = [f"Module.layers.{i // 20}.part{i % 20}.Linear.output.0" for i in range(MODULES)]
    with sqlite3.connect(path) as database:
        database.executescript("""
            CREATE TABLE monitoring_targets (target_id INTEGER PRIMARY KEY AUTOINCREMENT,
              target_name TEXT NOT NULL, vpp_stage INTEGER NOT NULL, micro_step INTEGER NOT NULL
              DEFAULT 0, UNIQUE(target_name, vpp_stage, micro_step));
            CREATE TABLE monitoring_metrics (metric_id INTEGER PRIMARY KEY, metric_name TEXT);
            CREATE TABLE monitoring_tags (tag_id INTEGER PRIMARY KEY, tag_name TEXT, category TEXT,
              metric_id INTEGER);
            CREATE TABLE tag_target_mapping (tag_id INTEGER, target_id INTEGER,
              PRIMARY KEY (tag_id, target_id));
            CREATE TABLE trend_data (rank INTEGER, step INTEGER, target_id INTEGER,
              metric_id INTEGER, norm REAL, PRIMARY KEY (rank, step, target_id, metric_id))
              WITHOUT ROWID;
            CREATE TABLE global_stats (max_rank INTEGER, min_step INTEGER, max_step INTEGER,
              forward TEXT, backward TEXT);
            INSERT INTO monitoring_metrics VALUES (1, 'forward'), (2, 'backward');
            INSERT INTO monitoring_tags VALUES (1, 'Module', 'default', 1),
              (2, 'Module', 'default', 2);
        """)
        database.execute("INSERT INTO global_stats VALUES (?, 0, ?, 'norm', 'norm')",
                         (RANKS - 1, STEPS - 1))
        database.executemany("INSERT INTO monitoring_targets VALUES (?, ?, 0, 0)",
                             enumerate(module, 1))
        database.executemany("INSERT INTO tag_target_mapping VALUES (?, ?)",
                             ((t, i + 1) for i in range(MODULES) for t in (1, 2)))
        database.executemany(
            "INSERT INTO trend_data VALUES (?, ?, ?, ?, ?)",
            ((r, s, t, m, (r * 7 + s * 3 + t) % 101 / 10) for r in range(RANKS)
             for s in range(STEPS) for t in range(1, MODULES + 1) for m in (1, 2)))
    database.close()


def trends(folder: Path) -> None:
    """The questions about a database of trends."""
    path = folder / "x.trend.db"
    make_trends(path)
    opened = _compare.TrendDatabase.open(path)
    print(f"trend database: {RANKS * STEPS * MODULES * METRICS:,} rows, {path.stat().st_size:,} "
          "bytes")
    of = {"metric": "forward", "stat": "norm"}
    ask = lambda question, **parameters: (  # noqa: E731
        lambda: opened.ask(question, {**of, **parameters}))
    timed("what there is", ask("meta"))
    heat = timed("heat map, 200 modules, 100 steps", ask("heat", dimension="rank", value="3"))
    timed("heat map, 200 modules, 20 ranks", ask("heat", dimension="step", value="5"))
    timed("heat map, 100 steps, 20 ranks", ask("heat", dimension="module", value="700"))
    timed("lines of a module on all ranks", ask("line", targets="700"))
    timed("alerts", ask("alerts"))
    with sqlite3.connect(path) as database:
        for at in (0, 77, 199):
            rows = database.execute("SELECT norm FROM trend_data WHERE rank = 3 AND target_id = ? "
                                    "AND metric_id = 1 ORDER BY step", (at + 1,)).fetchall()
            if [row[0] for row in rows] != heat["cells"][at]:
                sys.exit(f"module {at}: the heat map is not what sqlite3 reads")


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=1.0, help="GiB of each tensor")
    parser.add_argument("--work", help="directory for the files, which are removed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        values(Path(folder), arguments.gib)
        trends(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
