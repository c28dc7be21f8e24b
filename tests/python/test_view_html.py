"""plumb view RESULT --html: the page in one file of what a file for viewers, or one recording,
holds; the same as the page of the comparison where both have it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import page_data
import pytest
from recording import PLUMB
from view_client import environment, viewer, write_rank

NAMES = ["Functional.linear.0.forward", "Module.fc.Linear.forward.0", "Module.top.Net.forward.0"]
OTHER = [name.replace("fc.Linear", "dense.Dense") for name in NAMES]


def run(tmp_path: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True, timeout=60,
                          env=environment(tmp_path / "cache"))


def page_of(tmp_path: Path, *words: object) -> tuple[dict[str, Any], str]:
    done = run(tmp_path, "view", *words, "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    return page_data.read(tmp_path / "page.html"), done.stdout


def nodes(part: dict[str, Any], side: str) -> list[tuple[object, ...]]:
    """Names, types, levels and counterparts by name."""
    own, other = part["tree"][side], part["tree"]["golden" if side == "target" else "target"]
    names = [name or part["tree"]["target"]["names"][own["partners"][i]]
             for i, name in enumerate(own["names"])]
    partners = [other["names"][at] or names[i] if at >= 0 else at
                for i, at in enumerate(own["partners"])]
    return list(zip(names, own["types"], own["levels"], own["parents"], partners, strict=True))


def values_of(part: dict[str, Any]) -> dict[tuple[str, str], list[Any]]:
    """What both sides recorded, by call and value."""
    names, nodes_of_calls = part["tree"]["target"]["names"], part["calls"]["target"]
    return {(names[nodes_of_calls[row[0]]], row[1]): row[12:14]
            for row in part["rows"] if nodes_of_calls[row[0]] >= 0}


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    return (write_rank(tmp_path / "new", NAMES, 1.5), write_rank(tmp_path / "good", OTHER))


@pytest.mark.parametrize("form", ["vis", "db"])
def test_the_page_of_a_file(sides: tuple[Path, Path], tmp_path: Path, form: str) -> None:
    direct, said = page_of(tmp_path, *sides)
    assert run(tmp_path, "graph", *sides, "--file_type", form, "-o", tmp_path / "out"
               ).returncode == 0
    (path,) = (tmp_path / "out").glob("*.vis*")
    page, answer = page_of(tmp_path, path)
    assert answer.splitlines()[0] == said.splitlines()[0]
    ours, theirs = page["parts"][0], direct["parts"][0]
    for side in ("target", "golden"):
        assert sorted(nodes(ours, side)) == sorted(nodes(theirs, side))
    assert ours["tree"]["counts"] == theirs["tree"]["counts"]
    first = [each["part"]["header"]["first_wrong_call"] for each in (ours, theirs)]
    assert first[0]["name"] == first[1]["name"] == NAMES[0]
    values = [values_of(each) for each in (ours, theirs)]
    assert set(values[0]) == set(values[1]) and values[0]
    for key, (target, golden) in values[0].items():
        assert [target, golden] == values[1][key], key


def test_the_page_of_ranks_in_a_file(tmp_path: Path) -> None:
    for rank, value in (("rank0", 1.0), ("rank1", 1.5)):
        write_rank(tmp_path / "new" / rank, NAMES, value)
        write_rank(tmp_path / "good" / rank, NAMES)
    assert run(tmp_path, "graph", tmp_path / "new", tmp_path / "good", "-o", tmp_path / "out"
               ).returncode == 0
    (path,) = (tmp_path / "out").glob("*.vis.db")
    page, answer = page_of(tmp_path, path)
    assert answer.startswith("first wrong call: rank 1 ")
    assert [part["part"]["rank"] for part in page["parts"]] == [0, 1]
    named = [part["part"]["header"]["first_wrong_call"] for part in page["parts"]]
    assert named[0] is None and named[1]["name"] == NAMES[0]


def test_the_page_of_one_recording(sides: tuple[Path, Path], tmp_path: Path) -> None:
    page, _ = page_of(tmp_path, sides[0])
    part = page["parts"][0]
    assert part["part"]["header"]["golden"] == "" and len(part["tree"]["golden"]["names"]) == 1
    assert set(NAMES) < set(part["tree"]["target"]["names"])
    assert part["calls"]["unmatched"] == [] and len(part["rows"]) == 6


def test_what_has_no_page(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    done = run(tmp_path, "view", tmp_path / "t.csv", "--html", tmp_path / "page.html")
    assert done.returncode == 4 and "is no graph" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_the_page_is_exported_of_a_file(sides: tuple[Path, Path], tmp_path: Path) -> None:
    assert run(tmp_path, "graph", *sides, "-o", tmp_path / "out").returncode == 0
    (path,) = (tmp_path / "out").glob("*.vis.db")
    with viewer(tmp_path / "cache", path) as running:
        dataset = running.dataset()["id"]
        job = running.post(f"d/{dataset}/export", {"format": "html"}).json()["job"]
        assert running.job(job)["state"] == "done"
        page = page_data.read(running.ask(f"/api/jobs/{job}/file").body.decode())
    assert page["answer"][0].startswith("first wrong call")
