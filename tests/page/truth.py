"""What the page is held to, read from files with nothing but Python's own library.

    python tests/page/truth.py trend DATABASE METRIC STATISTIC    values by "target rank step"
    python tests/page/truth.py worst TARGET.pt GOLDEN.pt          the largest absolute difference
    python tests/page/truth.py opens FILE...                      whether .xlsx, .vis.db can be read
"""

from __future__ import annotations

import array
import json
import sqlite3
import sys
import zipfile


def trend(database: str, metric: str, statistic: str) -> dict[str, float]:
    if statistic not in ("norm", "max", "min", "mean"):
        raise SystemExit(f"{statistic}: no statistic")
    rows = sqlite3.connect(f"file:{database}?mode=ro", uri=True).execute(
        f"select target_name, micro_step, rank, step, {statistic} from trend_data "
        "join monitoring_targets using (target_id) join monitoring_metrics using (metric_id) "
        "where metric_name = ?", (metric,))
    return {f"{name}{f' #{micro}' if micro else ''} {rank} {step}": value
            for name, micro, rank, step, value in rows}


def elements(path: str) -> array.array[float]:
    """Of a contiguous float32 tensor as torch.save() writes it."""
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/data/0"))
        return array.array("f", archive.read(name))


def worst(target: str, golden: str) -> dict[str, float]:
    pairs = list(zip(elements(target), elements(golden), strict=True))
    at = max(range(len(pairs)), key=lambda i: abs(pairs[i][0] - pairs[i][1]))
    return {"elements": len(pairs), "at": at, "target": pairs[at][0], "golden": pairs[at][1]}


def opens(*paths: str) -> dict[str, int]:
    found = {}
    for path in paths:
        if path.endswith(".xlsx"):
            with zipfile.ZipFile(path) as archive:
                sheet = next(name for name in archive.namelist() if "sheet1" in name)
                found[path] = archive.read(sheet).count(b"<row")
        else:
            database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            found[path] = database.execute("select count(*) from tb_nodes").fetchone()[0]
    return found


if __name__ == "__main__":
    print(json.dumps({"trend": trend, "worst": worst, "opens": opens}[sys.argv[1]](*sys.argv[2:])))
