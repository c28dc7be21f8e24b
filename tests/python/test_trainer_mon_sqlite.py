"""TrainerMon's database against values by NumPy, and what reads it."""

from __future__ import annotations

import json
import math
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor_training import (
    ALL_OPS,
    EVERYTHING,
    Truth,
    TwoLayers,
    directory_of,
    statistics,
    train,
    watched,
)
from recording import PLUMB
from trend_dumps import query

DATABASE = "monitor_data.trend.db"
ROWS = f"""SELECT metric_name, target_name, step, micro_step, {", ".join(ALL_OPS)}
    FROM trend_data JOIN monitoring_targets USING (target_id)
    JOIN monitoring_metrics USING (metric_id)"""

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


def two_layers() -> tuple[TwoLayers, torch.optim.Optimizer]:
    """The same ones each time."""
    torch.manual_seed(0)
    model = TwoLayers()
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def trained(directory: Path, **options: Any) -> None:
    """Two layers in three watched steps of two micro-batches."""
    model, optimizer = two_layers()
    with watched(directory, **{**EVERYTHING, "format": "sqlite", **options}) as monitor:
        monitor.set_monitor(model, grad_acc_steps=2, optimizer=optimizer)
        train(model, optimizer, micro_batches=2)


def values_of_trained() -> Truth:
    """What must be there."""
    model, optimizer = two_layers()
    truth = Truth(model, optimizer)
    for batch in range(6):
        model(torch.randn(5, 4)).square().sum().backward()
        truth.end_batch()
        if batch % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
            truth.end_step()
    return truth


def plumb(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Runs the program, which must succeed."""
    done = subprocess.run([PLUMB, *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done


def number(cell: float | None) -> float:
    """What null stands for."""
    return math.nan if cell is None else cell


def test_every_cell_is_numpys(tmp_path: Path) -> None:
    trained(tmp_path)
    truth = values_of_trained()
    assert sorted(one.name for one in directory_of(tmp_path).iterdir()) == [
        DATABASE, "names.json"]
    found = {(metric, name, step, micro): values for metric, name, step, micro, *values
             in query(directory_of(tmp_path) / DATABASE, ROWS)}
    expected = {
        ("param_origin" if kind == "param" else kind, name, step, *(micro or [0])):
            statistics(value)
        for kind, values in truth.kinds.items() for (name, step, *micro), value in values.items()}
    assert found.keys() == expected.keys() and len(found) > 100
    for key, values in expected.items():
        for op, cell in zip(ALL_OPS, found[key], strict=True):
            assert number(cell) == pytest.approx(values[op], rel=1e-12, nan_ok=True), f"{key} {op}"


def test_readers_see_what_they_see_in_csv_files(tmp_path: Path) -> None:
    reports = {}
    for form in ("csv", "sqlite"):
        trained(tmp_path / form, format=form, ndigits=15)
        out = tmp_path / form / "out"
        plumb("trend", out, "-o", tmp_path / f"{form}.html")
        plumb("data2db", "--db", tmp_path / form / "db", "--data", out, "--format", "monitor")
        fired = subprocess.run(
            [PLUMB, "watch", out, "--when", "tensor_too_large(max_gt=1.5)", "--format", "json"],
            capture_output=True, text=True, check=False)
        database = tmp_path / form / "db" / DATABASE
        reports[form] = (
            query(database, ROWS), query(database, "SELECT * FROM global_stats"),
            fired.returncode, len(fired.stdout.splitlines()))
    csv, sqlite = reports["csv"], reports["sqlite"]
    assert len(csv[0]) > 100 and csv[1:] == sqlite[1:]
    by_key = {row[:4]: row[4:] for row in sqlite[0]}
    for *key, norm, _, _, mean, nans, zeros in csv[0]:
        values = [number(cell) for cell in by_key.pop(tuple(key))]
        rounded = (norm, values[1], values[2], mean, nans, zeros)
        for value, cell in zip(values, rounded, strict=True):
            assert value == pytest.approx(number(cell), abs=2e-15, rel=1e-14, nan_ok=True), key
    assert not by_key
    sizes = [(tmp_path / f"{form}.html").stat().st_size for form in reports]
    assert min(sizes) > 10_000 and abs(sizes[0] - sizes[1]) < 0.1 * sizes[0]


def test_it_is_read_while_the_training_runs(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = TwoLayers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen: list[int] = []

    def look(step: int) -> None:
        if step >= 5:
            path = directory_of(tmp_path) / DATABASE
            with sqlite3.connect(path) as database:
                seen.append(database.execute("SELECT max_step FROM global_stats").fetchone()[0])
                database.execute("SELECT SUM(norm) FROM trend_data").fetchone()

    with watched(tmp_path, param_distribution=True, format="sqlite") as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        train(model, optimizer, 20, at_step=look)
    assert len(seen) == 15 and all(step >= at + 5 - 3 for at, step in enumerate(seen))
    assert query(directory_of(tmp_path) / DATABASE, "SELECT max_step FROM global_stats") == [(19,)]


def test_a_changed_configuration_adds_columns(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = TwoLayers()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    begin = {"param_distribution": True, "format": "sqlite", "ops": ["norm"], "dynamic_on": True}

    def edit(step: int) -> None:
        if step == 2:
            (tmp_path / "monitor_config.json").write_text(json.dumps(
                {**begin, "ops": ["max", "norm"], "mv_distribution": True}))

    with watched(tmp_path, dynamic=True, **begin) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        train(model, optimizer, 6, at_step=edit)
    rows = query(directory_of(tmp_path) / DATABASE,
                 "SELECT DISTINCT step, metric_name, norm IS NULL, max IS NULL FROM trend_data "
                 "JOIN monitoring_metrics USING (metric_id)")
    assert set(rows) == {(step, metric, 0, int(step < changed))
                         for changed in [4] for step in range(1, 6)
                         for metric in ("param_origin", "exp_avg", "exp_avg_sq")
                         if step >= changed or metric == "param_origin"}
