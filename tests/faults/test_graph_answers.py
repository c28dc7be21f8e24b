"""The first wrong call in the files of plumb graph is the one that plumb compare names, of every
case of the plain model, with tensors and with statistics.
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

sys.path.insert(0, str(Path(__file__).resolve().parent))

from evaluate import PLUMB, TASKS, Pair, folder_of, listing, record, write_statistics

pytestmark = pytest.mark.slow

MOST = 40
TOP = "Module.model.Model.forward.0"


@pytest.fixture(scope="module")
def pairs(work: Path) -> list[Pair]:
    """Cases with a fault."""
    names = [case["name"] for case in listing()
             if case["model"] in ("plain", "plain_half") and case["culprits"]][:MOST]
    found = record(work, names)
    assert len(found) == len(names) >= MOST // 2
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


def said(*words: Any) -> dict[str, Any]:
    """The JSON that a command prints."""
    done = subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True, check=False,
                          timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("task", TASKS)
def test_the_file_says_what_compare_says(pairs: list[Pair], task: str, tmp_path: Path) -> None:
    different = []
    for pair in pairs:
        place = tmp_path / pair.name
        target = with_tree(pair.target, task, place / "target")
        golden = with_tree(pair.golden, task, place / "golden")
        first = said("compare", target, golden, "--json", "-o", place / "compared", "--format",
                     "json")["first_wrong_call"] or {}
        named = first.get("name", "")
        out = place / "graphs"
        summary = place / "summary.json"
        subprocess.run([PLUMB, "graph", target, golden, "-o", out, "--summary", summary],
                       check=True, capture_output=True, timeout=120)
        [comparison] = json.loads(summary.read_text())["comparisons"]
        [path] = out.glob("*.vis.db")
        [rank] = said("inspect", path, "--json")["ranks"]
        answers = (comparison.get("first_wrong_call", {}).get("name", ""), rank["first_wrong_call"])
        if answers != (named, named):
            different.append((pair.name, named, *answers))
        shutil.rmtree(place)
    assert not different
