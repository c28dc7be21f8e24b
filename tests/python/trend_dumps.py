"""Dumps for `plumb data2db` and what its database holds."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from rank_dumps import tensor

DATABASE = "dump_data.trend.db"


def query(database: Path, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with sqlite3.connect(database) as connection:
        return connection.execute(sql).fetchall()


def trend(database: Path) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """(rank, step, metric, target, call number) -> norm, max, min, mean."""
    rows = query(database, """SELECT rank, step, metric_name, target_name, micro_step,
        norm, max, min, mean FROM trend_data JOIN monitoring_targets USING (target_id)
        JOIN monitoring_metrics USING (metric_id)""")
    return {row[:5]: row[5:] for row in rows}


def tags(database: Path, target: str) -> set[tuple[str, str]]:
    """Tag and category of a target."""
    return set(query(database, f"""SELECT tag_name, category FROM monitoring_tags
        JOIN tag_target_mapping USING (tag_id) JOIN monitoring_targets USING (target_id)
        WHERE target_name = '{target}'"""))


def write(directory: Path, entries: dict[str, Any], parents: dict[str, Any] | None = None) -> Path:
    """A rank directory."""
    directory.mkdir(parents=True)
    head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None}
    (directory / "dump.json").write_text(json.dumps({**head, "data": entries}))
    if parents is not None:
        (directory / "construct.json").write_text(json.dumps(parents))
    return directory


def api(*inputs: Any, **keywords: Any) -> dict[str, Any]:
    """A forward entry."""
    return {"input_args": list(inputs), "input_kwargs": keywords, "output": [tensor(2.0)]}


def tensors(value: Any) -> list[dict[str, Any]]:
    """Every tensor object below `value`."""
    if isinstance(value, dict) and value.get("type") == "torch.Tensor":
        return [value]
    below = value.values() if isinstance(value, dict) else value
    return [t for v in below for t in tensors(v)] if isinstance(value, (dict, list)) else []


def tree(micro: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Entries and parents of a root called `micro` times, and of calls outside of it."""
    entries: dict[str, Any] = {"Torch.rand.0.forward": api()}
    parents: dict[str, Any] = {"Torch.rand.0.forward": None}
    for i in range(micro):
        root = f"Module.net.Net.forward.{i}"
        for name, parent in [(f"Functional.relu.{2 * i}.forward", root),
                             (f"Functional.relu.{2 * i + 1}.forward", root), (root, None),
                             (f"Tensor.sum.{i}.forward", None)]:
            entries[name], parents[name] = api(tensor(float(i))), parent
    for i in reversed(range(micro)):
        for name in (f"Tensor.sum.{i}.backward", f"Functional.relu.{2 * i + 1}.backward",
                     f"Functional.relu.{2 * i}.backward"):
            entries[name], parents[name] = {"input": [tensor(float(i))], "output": []}, None
        entries[f"Module.net.Net.parameters_grad.{i}"] = {"w": tensor(float(i))}
    return entries, parents
