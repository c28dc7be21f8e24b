"""Files of upstream's own, read by us, and links between ranks as its own analyzer makes them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, run, upstream_python

sys.path.insert(0, str(ROOT / "tests" / "python"))

from graph_dumps_for_viewers import config_of, graph, only, pair, read_db, write
from recording import PLUMB
from test_graph_compare import stored
from test_graph_ranks import calls

pytestmark = pytest.mark.upstream


def newest(out: Path, target: Path, golden: Path | None = None) -> Path:
    """What graph_visualize of 26.2.0 writes."""
    words: list[Any] = [upstream_python("26.2.0").with_name("msprobe"), "graph_visualize", "-tp",
                        target, "-o", out]
    done = run([*words, *(["-gp", golden] if golden else [])], timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return only(out, "*.vis.db")


def older(out: Path, target: Path, golden: Path | None = None) -> Path:
    """What graph of 1.2.2 writes into `out`."""
    request = out.with_suffix(".json")
    request.write_text(json.dumps({"npu_path": str(target),
                                   **({"bench_path": str(golden)} if golden else {})}))
    done = run([upstream_python().with_name("msprobe"), "-f", "pytorch", "graph", "-i", request,
                "-o", out], timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return out


def said(path: Path) -> dict[str, Any]:
    """What we say of the one rank of a file."""
    done = subprocess.run([PLUMB, "inspect", path, "--json"], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    [rank] = json.loads(done.stdout)["ranks"]
    return rank


def both(root: Path) -> tuple[Path, Path]:
    target, golden = (write(root / name, files)
                      for name, files in zip(("target", "golden"), pair(), strict=True))
    return target, golden


def counted(levels: Counter[str], nodes: list[Any]) -> dict[str, int]:
    return {"nodes": len(nodes), **{key: levels[key] for key in (
        "pass", "warning", "error", "without_level", "unmatched_target")}}


def test_a_database_of_the_newest_release_is_read(tmp_path):
    path = newest(tmp_path / "out", *both(tmp_path))
    rows = [row for name, row in read_db(path).items() if name != "DefaultModel"]
    words = {None: "without_level", 0: "pass", 0.5: "warning", 1: "error"}
    levels = Counter(words[row["precision_index"]] if row["matched_node_link"]
                     else "unmatched_target" for row in rows if row["node_type"] != "9")
    rank = said(path)
    assert {key: rank[key] for key in counted(levels, rows)} == counted(levels, rows)
    assert levels["error"] > 0 and rank["first_wrong_call"]
    assert "no verdict of plumb compare" in rank["answer"]


def test_a_file_of_the_older_release_is_read(tmp_path):
    out = older(tmp_path / "out", *both(tmp_path))
    path = only(out, "compare_*.vis")
    nodes = json.loads(path.read_text())["NPU"]["node"]
    rows = [row for name, row in nodes.items() if name != "DefaultModel"]

    def level(row: dict[str, Any]) -> str:
        if not row["matched_node_link"]:
            return "unmatched_target"
        index = row["data"].get("precision_index")
        if index is None:
            return "without_level"
        return "pass" if index < 0.2 else "warning" if index < 0.4 else "error"

    levels = Counter(level(row) for row in rows if row["node_type"] != 9)
    rank = said(path)
    # Nodes that this release cannot reach are on the top level with us, and count.
    assert {key: rank[key] for key in counted(levels, rows)} == counted(levels, rows)
    assert levels["pass"] > 0


def same_links(ours: Any, theirs: Any) -> bool:
    """The same apart from what we say of values."""
    if isinstance(ours, list):
        return isinstance(theirs, list) and all(map(same_links, ours, theirs))
    return {key: value for key, value in ours.items() if key != "mismatch"} == theirs


def test_where_the_newest_release_links_so_do_we(tmp_path):
    for rank in range(2):
        write(tmp_path / "in" / f"rank{rank}", calls(rank))
    assert graph(tmp_path / "in", "-o", tmp_path / "ours").returncode == 0
    theirs = newest(tmp_path / "theirs", tmp_path / "in")
    ours = only(tmp_path / "ours", "*.vis.db")
    linked = set()
    for rank in range(2):
        own = read_db(ours, rank=rank)
        for name, node in read_db(theirs, rank=rank).items():
            link = json.loads(node["matched_distributed"])
            if not link:
                continue
            linked.add(name)
            assert same_links(json.loads(own[name]["matched_distributed"]), link), name
    assert {name.split(".")[1] for name in linked} >= {"isend", "irecv", "all_reduce", "broadcast"}
    assert config_of(ours)["rank_list"] == config_of(theirs)["rank_list"]


def test_where_the_older_release_links_so_do_we(tmp_path):
    for rank in range(2):
        write(tmp_path / "in" / f"rank{rank}", calls(rank))
    assert graph(tmp_path / "in", "-o", tmp_path / "ours", "--file_type", "vis").returncode == 0
    out = older(tmp_path / "theirs", tmp_path / "in")
    linked = set()
    for rank in range(2):
        own, theirs = (json.loads(only(place, f"build_rank{rank}_*.vis").read_text())["node"]
                       for place in (tmp_path / "ours", out))
        for name, node in theirs.items():
            if "matched_distributed" not in node:
                continue
            linked.add(name)
            assert same_links(own[name]["matched_distributed"], node["matched_distributed"]), name
    assert {name.split(".")[1] for name in linked} >= {"all_reduce", "batch_isend_irecv"}


METRICS = ("Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr",
           "MeanRelativeErr", "NormRelativeErr", "Cosine", "EucDist", "MaxAbsErr",
           "One Thousandth Err Ratio", "Five Thousandths Err Ratio")


def metrics_of(path: Path) -> dict[str, list[Any]]:
    """The metrics of every value that has some: all their digits count."""
    values = [item for node in read_db(path).values() for part in ("input_data", "output_data")
              for item in node[part].items()]
    return {name: [value.get(metric) for metric in METRICS] for name, value in values
            if "Max diff" in value or "Cosine" in value}


def make_statistics(side: Path) -> None:
    """Makes a recording of tensors one of their statistics."""
    content = json.loads((side / "dump.json").read_text())
    content["task"] = "statistics"
    for entry in content["data"].values():
        for value in entry["output"]:
            value.pop("data_name", None)
    (side / "dump.json").write_text(json.dumps(content))


@pytest.mark.parametrize("keep", [False, True])
def test_metrics_have_all_digits(tmp_path, keep):
    """Positive ones had six decimals with us."""
    numbers = [[1.0, 2.123456789, 3.0, 5.0], [1.000123456, 2.0, 3.3333333, 4.0]]
    sides = [stored(tmp_path / name, values) for name, values in zip("ab", numbers, strict=True)]
    for side in () if keep else sides:
        make_statistics(side)
    theirs = metrics_of(newest(tmp_path / "theirs", *sides))
    assert graph(*sides, "-o", tmp_path / "ours").returncode == 0
    ours = metrics_of(only(tmp_path / "ours", "*.vis.db"))
    assert any(len(text or "") > 10 for texts in theirs.values() for text in texts)
    assert ours == theirs
