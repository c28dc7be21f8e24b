"""Trees of static-graph dumps with tensors of one's own, for tests of watchpoints.

Size caps: a file has as many parts in its name.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


class GraphTree:
    """Writes {rank}/net/{graph}/{iteration}/{type}.{name}.0.0.{time}.output.0.DefaultFormat.npy."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self._time = 1_600_000_000_000_000

    def add(self, name: str, values: Any, iteration: int = 0, rank: int = 0, kind: str = "Conv2D",
            time: int | None = None, graph: int = 0) -> pathlib.Path:
        """One tensor; returns its file."""
        directory = self.root / f"rank_{rank}" / "net" / str(graph) / str(iteration)
        directory.mkdir(parents=True, exist_ok=True)
        (self.root / f"rank_{rank}" / ".dump_metadata").mkdir(exist_ok=True)
        if time is None:
            self._time += 1
            time = self._time
        path = directory / f"{kind}.{name}.0.0.{time}.output.0.DefaultFormat.npy"
        np.save(path, np.asarray(values))
        return path

    def order(self, kernels: Sequence[str], history: Sequence[int] = (), rank: int = 0,
              graph: int = 0) -> None:
        """The tables of execution order and of steps that ran."""
        directory = self.root / f"rank_{rank}" / "execution_order"
        directory.mkdir(parents=True, exist_ok=True)
        text = "NodeExecutionOrder-FullNameWithScope\n" + "".join(f"{k}\n" for k in kernels)
        (directory / f"ms_execution_order_graph_{graph}.csv").write_text(text)
        if history:
            (directory / f"ms_global_execution_order_graph_{graph}.csv").write_text(
                "".join(f"{step}\n" for step in history))


def statistics_table(root: pathlib.Path, rows: Mapping[str, Mapping[str, Any]],
                     iteration: int = 0) -> None:
    """statistic.csv of one iteration: name -> shape and the cells of its statistics."""
    directory = root / "rank_0" / "net" / "0" / str(iteration)
    directory.mkdir(parents=True, exist_ok=True)
    columns = ["Max Value", "Min Value", "Avg Value", "L2Norm Value"]
    lines = ["Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
             + ",".join(columns)]
    for i, (name, row) in enumerate(rows.items()):
        cells = ",".join(str(row.get(column, "null")) for column in columns)
        lines.append(f"Conv2D,{name},0,0,{1_600_000_000_000_000 + i},output,0,16,float32,"
                     f"\"{row['shape']}\",{cells},")
    (directory / "statistic.csv").write_text("\n".join(lines) + "\n")
