"""plumb graph against upstream's own builders: .vis.db of 26.2.0 row by row, .vis of 1.2.2 as JSON.

Where the two differ and why stands in DB_DIFFERENCES and VIS_DIFFERENCES; a line that no run needs
fails. docs/formats/vis_db.md has the same list.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, run, upstream_python
from known_differences import KnownDifference

sys.path.insert(0, str(ROOT / "tests" / "python"))

from graph_dumps_for_viewers import config_of, everything, graph, only, pair, read_db, write

pytestmark = pytest.mark.upstream

FIXTURES = ("upstream_1.2.2/l0_statistics", "upstream_1.2.2/mix_statistics",
            "upstream_1.2.2/mix_md5", "upstream_26.2.0/l0_statistics",
            "upstream_26.2.0/mix_statistics", "upstream_26.2.0/mix_md5")

MICRO_STEPS = KnownDifference(
    # One number for all ranks and steps: upstream's is that of the first rank that was written.
    key="micro-steps-of-all", path=re.compile(r"^micro_steps$"),
    accept=lambda ours, theirs: ours > theirs)

OWN_WORDS = KnownDifference(
    # The frames of a backward call whose forward call was not recorded.
    key="own-words", path=re.compile(r"/stack_info/0$"),
    accept=lambda ours, theirs: "forward" in str(ours) and "forward" in str(theirs))

DB_DIFFERENCES: list[KnownDifference] = [
    KnownDifference(
        # Upstream keeps nothing of a value without Max: type, value and shape are lost.
        key="no-statistics", path=re.compile(r"/(input|output)_data/[^/]+/\w+$"),
        accept=lambda ours, theirs: ours != "null" and theirs is None),
    KnownDifference(
        key="no-statistics-value", path=re.compile(r"/(input|output)_data/[^/]+/value$"),
        accept=lambda ours, theirs: theirs == "null"),
    KnownDifference(
        # The letters None become null also within words.
        key="none-within-words", path=re.compile(r"/(input|output)_data/[^/]+/\w+$"),
        accept=lambda ours, theirs: "None" in str(ours) and "null" in str(theirs)),
    OWN_WORDS, MICRO_STEPS,
]

VIS_DIFFERENCES: list[KnownDifference] = [
    *(each for each in DB_DIFFERENCES if each is not MICRO_STEPS),
    KnownDifference(
        # 1.2.2 leaves these children where the recorder found them, and has no place for gradients.
        key="repaired-tree",
        path=re.compile(r"^([^/]+/(upnode|subnodes/\d+|micro_step_id)|MicroSteps)$"),
        accept=lambda ours, theirs: True),
    KnownDifference(
        # Of a transfer in a batch, 1.2.2 shows the tensor alone, under a name of its own.
        key="transfers", path=re.compile(r"batch_isend_irecv[^/]*/output_data/"),
        accept=lambda ours, theirs: ours is None or theirs is None),
    KnownDifference(
        key="parameter-gradients", path=re.compile(r"^[^/]+\.parameters_grad[^/]*$"),
        accept=lambda ours, theirs: theirs is None),
]


def walk(ours: Any, theirs: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Every place where two documents differ; what one lacks is None."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            below = f"{path}/{key.replace('/', '|')}" if path else key
            yield from walk(ours.get(key), theirs.get(key), below)
    elif isinstance(ours, list) and isinstance(theirs, list) and ours != theirs:
        for i in range(max(len(ours), len(theirs))):
            yield from walk(ours[i] if i < len(ours) else None,
                            theirs[i] if i < len(theirs) else None, f"{path}/{i}")
    elif ours != theirs:
        yield path, ours, theirs


def recordings(root: Path, fixtures: tuple[str, ...]) -> int:
    """The fixtures as ranks of one step, and as the last rank a recording with everything that
    there are rules for. Returns how many."""
    for rank, name in enumerate(fixtures):
        shutil.copytree(ROOT / "tests" / "data" / name, root / f"rank{rank}")
    write(root / f"rank{len(fixtures)}", everything())
    return len(fixtures) + 1


def unexplained(ours: Any, theirs: Any, known: list[KnownDifference],
                used: set[str]) -> list[str]:
    """What differs for no known reason."""
    left = []
    for path, own, upstream in walk(ours, theirs, ""):
        reason = next((each.key for each in known if each.covers(path, own, upstream)), None)
        if reason is None:
            left.append(f"{path}: {own!r} instead of {upstream!r}")
        else:
            used.add(reason)
    return left


def in_one_order(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether the keys that both have come in one order."""
    return [key for key in ours if key in theirs] == [key for key in theirs if key in ours]


def schema(path: Path) -> set[str]:
    """The statements that made upstream's tables and indices."""
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL "
                                "AND name != 'mp_meta'")
        return {row[0] for row in rows}


def test_every_row_of_the_database(tmp_path):
    python, used = upstream_python("26.2.0"), set()
    source = tmp_path / "in"
    count = recordings(source, FIXTURES)
    done = run([python.with_name("msprobe"), "graph_visualize", "-tp", source, "-o",
                tmp_path / "theirs"], timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert graph(source, "-o", tmp_path / "ours").returncode == 0
    upstream, own = only(tmp_path / "theirs", "*.vis.db"), only(tmp_path / "ours", "*.vis.db")
    for rank in range(count):
        ours, theirs = read_db(own, rank=rank), read_db(upstream, rank=rank)
        assert list(ours) == list(theirs)  # in order of nodes
        assert unexplained(ours, theirs, DB_DIFFERENCES, used) == [], rank
    assert unexplained(config_of(own), config_of(upstream), DB_DIFFERENCES, used) == []
    assert schema(own) == schema(upstream)
    assert used == {each.key for each in DB_DIFFERENCES}


def test_every_node_of_the_older_file(tmp_path):
    python, used = upstream_python(), set()
    source, request = tmp_path / "in", tmp_path / "compare.json"
    count = recordings(source, FIXTURES[:3])  # it cannot read the stacks of newer releases
    request.write_text(json.dumps({"npu_path": str(source)}))
    done = run([python.with_name("msprobe"), "-f", "pytorch", "graph", "-i", request, "-o",
                tmp_path / "theirs"], timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert graph(source, "-o", tmp_path / "ours", "--file_type", "vis").returncode == 0
    for rank in range(count):
        name = f"build_rank{rank}_*.vis"
        upstream = json.loads(only(tmp_path / "theirs", name).read_text())
        own = json.loads(only(tmp_path / "ours", name).read_text())
        assert set(own.pop("mp_meta")) >= {"tool", "target"}  # the one key of ours
        assert list(own) == list(upstream)  # keys, in their order
        nodes, their_nodes = own.pop("node"), upstream.pop("node")
        assert all(in_one_order(nodes[key], node) for key, node in their_nodes.items()), rank
        assert unexplained(nodes, their_nodes, VIS_DIFFERENCES, used) == [], rank
        assert unexplained(own, upstream, VIS_DIFFERENCES, used) == [], rank
    assert used == {each.key for each in VIS_DIFFERENCES}


# Of a comparison, besides: levels and their words are our verdicts, and groups of APIs pair by what
# is in them.
COMPARED: list[KnownDifference] = [
    KnownDifference(
        key="verdict", path=re.compile(r"/(precision_index|input_data/.*|output_data/.*)$"),
        accept=lambda ours, theirs: True),
    KnownDifference(
        key="links", path=re.compile(r"/matched_node_link/\d+$"),
        accept=lambda ours, theirs: theirs is None or "Apis_Between" in f"{ours}{theirs}"),
    KnownDifference(
        key="groups", path=re.compile(r"^Apis_Between_Modules\.\d+/matched_node_link/\d+$"),
        accept=lambda ours, theirs: True),
    OWN_WORDS,
]
METRICS = ("Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr",
           "MeanRelativeErr", "NormRelativeErr", "Requires_grad Consistent")


def metrics_of(nodes: dict[str, Any]) -> dict[str, list[str]]:
    """The metrics of every value that has some, by name."""
    values = [item for node in nodes.values() for part in ("input_data", "output_data")
              for item in node[part].items()]
    return {name: [value[metric] for metric in METRICS] for name, value in values
            if "Max diff" in value}


def test_compared_rows_and_their_metrics(tmp_path):
    python = upstream_python("26.2.0")
    target, golden = (write(tmp_path / name, files)
                      for name, files in zip(("target", "golden"), pair(), strict=True))
    done = run([python.with_name("msprobe"), "graph_visualize", "-tp", target, "-gp", golden, "-o",
                tmp_path / "theirs"], timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert graph(target, golden, "-o", tmp_path / "ours").returncode == 0
    upstream, own = only(tmp_path / "theirs", "*.vis.db"), only(tmp_path / "ours", "*.vis.db")
    used: set[str] = set()
    for source in ("NPU", "Bench"):
        ours, theirs = read_db(own, source), read_db(upstream, source)
        assert list(ours) == list(theirs)
        assert unexplained(ours, theirs, COMPARED, used) == []
    assert used == {each.key for each in COMPARED}
    mine, others = metrics_of(read_db(own)), metrics_of(read_db(upstream))
    common = mine.keys() & others.keys()  # upstream pairs no call in a group that moved
    assert len(common) > 40
    assert {key: mine[key] for key in common} == {key: others[key] for key in common}
    assert schema(own) == schema(upstream)
    settings, their_settings = config_of(own), config_of(upstream)
    for key in ("graph_type", "task", "micro_steps", "overflow_check", "rank_list", "step_list"):
        assert settings[key] == their_settings[key]
    colors, their_colors = (json.loads(each["node_colors"]) for each in (settings, their_settings))
    assert [(color, band["value"], band["accuracy_level"]) for color, band in colors.items()] == [
        (color, band["value"], band["accuracy_level"]) for color, band in their_colors.items()]


def test_upstreams_own_reader_opens_ours(tmp_path):
    files = everything()
    place = write(tmp_path / "in", files)
    assert graph(place, place, "-o", tmp_path / "out").returncode == 0
    code = ("import sys; from msprobe.visualization.db_utils import DBActuator\n"
            "with DBActuator(sys.argv[1]) as db: print(len(db.query_distributed_nodes_info()))")
    path = only(tmp_path / "out", "*.vis.db")
    done = run([upstream_python("26.2.0"), "-c", code, path], timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "2" in done.stdout.split()  # of each side one
