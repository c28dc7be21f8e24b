"""The first wrong call is the one that plumb compare names wherever the viewer says it, of forty
faults, with tensors and with statistics: in the first row of what the server of plumb view answers,
in that of a page in one file, and in the files of plumb graph.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from evaluate import (  # noqa: E402
    PLUMB,
    TASKS,
    Pair,
    folder_of,
    listing,
    record,
    write_statistics,
)
from served_first import first_in_files, first_of, viewer  # noqa: E402

pytestmark = pytest.mark.slow

MOST = 40
TOP = "Module.model.Model.forward.0"
MODELS = ("plain", "plain_half", "conv")
SAID = ("name", "item", "cause", "what")
Answer = dict[str, Any] | None  # SAID of the first wrong call; None: there is none


@pytest.fixture(scope="module")
def pairs(work: Path) -> list[Pair]:
    """Cases with a fault."""
    names = [case["name"] for case in listing()
             if case["model"] in MODELS and case["culprits"]][:MOST]
    found = record(work, names)
    assert len(found) == len(names) == MOST
    return found


def with_tree(rank: Path, task: str, place: Path) -> Path:
    """A copy of a recording with all calls in one module: the suite records no modules."""
    if task == "statistics" and not folder_of(rank, task).exists():
        write_statistics(rank, folder_of(rank, task))
    shutil.copytree(folder_of(rank, task), place, copy_function=os.link,
                    ignore=shutil.ignore_patterns("result", "construct.json"))
    calls: list[str] = list(json.loads((place / "dump.json").read_text())["data"])
    (place / "construct.json").write_text(json.dumps({**dict.fromkeys(calls, TOP), TOP: None}))
    return place


def said(*words: Any) -> Any:
    """The JSON that a command prints."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False,
                          timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def answer_of(row: dict[str, Any] | None, first: dict[str, Any] | None) -> Answer:
    """What a page shows: the first row, and the head above all rows."""
    if row is None or row["kind"] != "first":
        assert first is None
        return None
    assert first is not None and (row["name"], row["id"]) == (first["name"], first["id"])
    return {key: first[key] for key in SAID} | {"what": row["why"]}


def graph_answers(target: Path, golden: Path, out: Path) -> set[str]:
    """Names of the first wrong call in the files of plumb graph; empty: none."""
    summary = out.with_suffix(".json")
    subprocess.run([PLUMB, "graph", target, golden, "-o", out, "--summary", summary],
                   check=True, capture_output=True, timeout=120)
    [comparison] = json.loads(summary.read_text())["comparisons"]
    [path] = out.glob("*.vis.db")
    [rank] = said(PLUMB, "inspect", path, "--json")["ranks"]
    return {comparison.get("first_wrong_call", {}).get("name", ""), rank["first_wrong_call"]}


@pytest.mark.parametrize("task", TASKS)
def test_the_viewer_says_what_compare_says(pairs: list[Pair], task: str, tmp_path: Path) -> None:
    named: dict[str, Answer] = {}
    pages: list[Path] = []
    different: list[Any] = []
    with viewer(tmp_path / "cache", with_tree(pairs[0].golden, task, tmp_path / "any"),
                "--root", tmp_path) as running:
        for pair in pairs:
            place = tmp_path / pair.name
            target = with_tree(pair.target, task, place / "target")
            golden = with_tree(pair.golden, task, place / "golden")
            result = said(PLUMB, "compare", target, golden, "--json", "-o", place / "compared",
                          "--format", "json,html")
            first = result["first_wrong_call"]
            named[pair.name] = first and {key: first[key] for key in SAID}
            row, meta = first_of(running, target, golden)
            served = answer_of(row, meta["first"])
            if served != named[pair.name]:
                different.append((pair.name, "served", named[pair.name], served))
            in_files = graph_answers(target, golden, place / "graphs")
            if in_files != {first["name"] if first else ""}:
                different.append((pair.name, "graph", named[pair.name], in_files))
            [page] = (place / "compared").glob("*.html")
            pages.append(page.rename(tmp_path / f"{pair.name}.html"))
            shutil.rmtree(place)
    for (name, expected), (row, meta) in zip(named.items(), first_in_files(pages), strict=True):
        in_page = answer_of(row, meta["first"])
        if in_page != expected:
            different.append((name, "page", expected, in_page))
    assert not different
    assert sum(answer is not None for answer in named.values()) > MOST // 2
