"""What the page is held to, read from files with nothing but Python's own library.

    python tests/page/truth.py trend DATABASE METRIC STATISTIC    values by "target rank step"
    python tests/page/truth.py worst TARGET.pt GOLDEN.pt          the largest absolute difference
    python tests/page/truth.py counts TENSOR.pt EDGES             how its elements are distributed
    python tests/page/truth.py sheet FILE.xlsx                    the rows of its first sheet
    python tests/page/truth.py graph FILE.vis.db                  its calls, their levels and links
"""

from __future__ import annotations

import array
import bisect
import json
import math
import re
import sqlite3
import sys
import zipfile
from typing import Any
from xml.etree import ElementTree


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


def counts(path: str, edges: str) -> dict[str, Any]:
    """Finite elements other than 0 by the bins between `edges`, a JSON list; the last is closed."""
    limits, values = json.loads(edges), elements(path)
    finite = [value for value in values if math.isfinite(value)]
    bins = [0] * (len(limits) - 1)
    for value in finite:
        if value != 0:
            bins[min(bisect.bisect_right(limits, value), len(bins)) - 1] += 1
    return {"bins": bins, "elements": len(values), "nan": sum(map(math.isnan, values)),
            "inf": values.count(math.inf), "minus_inf": values.count(-math.inf),
            "zero": finite.count(0.0), "min": min(finite), "max": max(finite),
            "mean": math.fsum(finite) / len(finite),
            "norm": math.sqrt(math.fsum(value * value for value in finite))}


SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def sheet(path: str) -> list[list[str]]:
    """Texts of the cells, empty ones too."""
    with zipfile.ZipFile(path) as archive:
        shared = []
        if "xl/sharedStrings.xml" in archive.namelist():
            strings = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
            shared = ["".join(entry.itertext()) for entry in strings.iter(f"{SHEET}si")]
        first = next(name for name in archive.namelist() if "sheet1" in name)
        root = ElementTree.fromstring(archive.read(first))
    rows = []
    for row in root.iter(f"{SHEET}row"):
        cells: list[str] = []
        for cell in row.iter(f"{SHEET}c"):
            letters = re.match("[A-Z]+", cell.get("r", "A"))
            column = 0
            for letter in letters.group() if letters else "A":
                column = column * 26 + ord(letter) - 64
            cells += [""] * (column - 1 - len(cells))
            text = "".join(cell.itertext())
            cells.append(shared[int(text)] if cell.get("t") == "s" else text)
        rows.append(cells)
    return rows


def graph(path: str) -> dict[str, Any]:
    """By side, step and rank: level and counterpart of each node."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    found: dict[str, Any] = {}
    for side, step, rank, name, level, link, outputs in database.execute(
            "select data_source, step, rank, node_name, precision_index, matched_node_link,"
            " output_data from tb_nodes"):
        path_to = json.loads(link or "[]")
        found.setdefault(f"{side} {step} {rank}", {})[name] = {
            "level": level, "partner": path_to[-1] if path_to else None,
            "outputs": json.loads(outputs or "{}")}
    return found


if __name__ == "__main__":
    questions = {"trend": trend, "worst": worst, "counts": counts, "sheet": sheet, "graph": graph}
    print(json.dumps(questions[sys.argv[1]](*sys.argv[2:])))
