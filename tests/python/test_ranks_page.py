"""The page over all ranks: the machine form's facts, taken-over ranks, and what was not judged."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import page_data
import pytest
from browser import drawn, needs_browser, needs_page, text_of
from rank_dumps import Entry, all_reduce, backward, fine, forward, tensor, write_step
from recording import PLUMB

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))
import make_page_data

EVIL = "Torch.a</script><script>alert(1)</script>.0.forward"


def entries(own: float, total: float) -> list[Entry]:
    """One rank: a call of its own before a sum over ranks, and calls after it."""
    return [fine(0), forward("Torch.exp.0.forward", [tensor(0.5, 0.25)], [tensor(own, 0.5)]),
            all_reduce(0, own, total), forward(EVIL, [tensor(total, 1)], [tensor(total, 2)]),
            backward("Torch.exp.0.backward", [tensor(total, 1)], [tensor(total, 3)])]


def compare(tmp_path: Path, *options: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The page over target and golden below tmp_path, its data, and the machine form."""
    done = subprocess.run(
        [PLUMB, "compare", tmp_path / "target", tmp_path / "golden", "--json", "--format", "html",
         "-o", tmp_path / "out", *options],
        text=True, capture_output=True, check=False, timeout=60)
    assert done.stdout, done.stderr
    machine = json.loads(done.stdout)
    [path] = [file for file in machine["files"] if file.endswith(".html")]
    page = Path(path).read_text("utf-8")
    return page, page_data.read(page), machine


def write_both(tmp_path: Path) -> None:
    """Rank 1 is wrong before the sum, rank 0 after it; only the target has rank 2."""
    right = {"rank0": entries(3, 9), "rank1": entries(4, 9)}
    write_step(tmp_path / "golden", right)
    write_step(tmp_path / "target", {"rank0": entries(3, 15), "rank1": entries(9, 15),
                                     "rank2": entries(5, 15)})


def test_page_holds_the_answer_over_all_ranks_and_every_rank(tmp_path: Path) -> None:
    write_both(tmp_path)
    page, data, machine = compare(tmp_path)
    assert data["overview"] == machine
    assert machine["first_wrong_call"]["rank"] == 1
    assert [part["part"]["label"] for part in data["parts"]] == ["rank 0", "rank 1"]
    for number, (part, rank) in enumerate(zip(data["parts"], machine["ranks"], strict=False)):
        assert (part["part"]["step"], part["part"]["rank"]) == (None, number)
        assert part["part"]["header"]["counts"] == rank["counts"]
        assert len(part["rows"]) == part["end"]["row_total"] == sum(
            rank["counts"][verdict] for verdict in
            ("same", "within noise", "suspicious", "broken", "not comparable"))
    assert page.count("</script>") == 2


def test_ranks_taken_over_keep_their_part(tmp_path: Path) -> None:
    write_both(tmp_path)
    _, first, _ = compare(tmp_path)
    _, second, machine = compare(tmp_path)
    assert [rank["state"] for rank in machine["ranks"]] == ["taken over", "taken over", "missing"]
    assert second["parts"] == first["parts"]


@pytest.mark.parametrize("harm", ["lost", "cut"])
def test_rank_whose_part_was_damaged_is_compared_again(tmp_path: Path, harm: str) -> None:
    write_both(tmp_path)
    _, first, _ = compare(tmp_path)
    [part] = (tmp_path / "out" / ".compare_ranks").glob("rank0-rank0.page")
    if harm == "lost":
        part.unlink()
    else:
        os.truncate(part, 10)
    _, second, machine = compare(tmp_path)
    assert [rank["state"] for rank in machine["ranks"]] == ["compared", "taken over", "missing"]
    assert second["parts"] == first["parts"]


def test_parts_of_other_formats_are_not_written(tmp_path: Path) -> None:
    write_both(tmp_path)
    done = subprocess.run([PLUMB, "compare", tmp_path / "target", tmp_path / "golden", "--format",
                           "csv", "-o", tmp_path / "out"],
                          capture_output=True, check=False, timeout=60)
    assert done.returncode in (0, 1, 3), done.stderr
    assert not [*(tmp_path / "out").rglob("*.html"), *(tmp_path / "out").rglob("*.page")]


@needs_page
@needs_browser
def test_page_draws_the_ranks_without_an_error(tmp_path: Path) -> None:
    write_both(tmp_path)
    (tmp_path / "target" / "rank0" / "dump.json").write_text("{")
    _, _, machine = compare(tmp_path)
    [file] = [file for file in machine["files"] if file.endswith(".html")]
    document = drawn(file, tmp_path)
    assert document.count('class="pick"') == 1  # one strip: rank 1's
    text = text_of(document)
    assert "First wrong call over 3 ranks: rank 1 Torch.exp.0.forward" in text
    ranks = text.split("its first wrong call")[1].split("Where each goes wrong")[0]
    for said in ("it starts here", "dump.json", "not on both sides"):
        assert said in ranks, ranks


@needs_page
@needs_browser
def test_graph_of_every_rank_is_there(tmp_path: Path) -> None:
    write_both(tmp_path)
    _, _, machine = compare(tmp_path)
    [file] = [file for file in machine["files"] if file.endswith(".html")]
    name = "Torch.exp.0.forward"
    text = text_of(drawn(f"{file}#/g/0?rank=0&view=outline&node={name}", tmp_path))
    assert name in text and "output.0" in text


@needs_page
def test_data_that_the_page_is_tested_with_are_what_is_written_today(tmp_path: Path) -> None:
    """Otherwise run tests/data/make_page_data.py."""
    def unpacked(text: str) -> list[str]:
        page = f'<script type="application/octet-stream" id="data">\n{text}</script>'
        lines = [f"{kind} {json.dumps(data)}" for kind, data in page_data.lines_of(page)]
        # Of the ranks, files in a directory of this run; times and numbers in names.
        root = re.search(r'"target": "([^"]*)/target"', lines[0])
        assert root is not None
        return [re.sub(r'"files": \[[^]]*\]', "", line).replace(root[1], "") for line in lines]
    today = make_page_data.data_lines(tmp_path, str(PLUMB))
    assert unpacked(today) == unpacked(make_page_data.FILE.read_text())
