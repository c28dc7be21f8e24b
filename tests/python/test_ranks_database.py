"""`plumb compare --format sqlite` of several ranks: one database over all, with what the tables of
the ranks hold.
"""

from __future__ import annotations

import ast
import csv
import json
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB
from test_shards import facts, plumb, shard, shards, whole

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps  # noqa: E402

# Of all modes, so that not every rank has every column.
PAIRS = [("wrong_scale", "sound"), ("missing_call", "extra_call"), ("odd_target", "odd_golden"),
         ("wrong_scale_md5", "sound_md5"), ("wrong_scale_tensor", "sound_tensor")]
STATISTICS = {"max": "max", "min": "min", "mean": "mean", "norm": "l2norm"}
COLUMNS = {
    "Verdict": "verdict", "Reason": "reason", "Result": "result", "Err_message": "notes",
    "Accuracy Reached or Not": "result", "NPU Dtype": "target_dtype", "Bench Dtype": "golden_dtype",
    "NPU Tensor Shape": "target_shape", "Bench Tensor Shape": "golden_shape",
    "NPU MD5": "target_md5", "BENCH MD5": "golden_md5", "Cosine": "cosine",
    "MaxAbsErr": "max_abs_error", "One Thousandth Err Ratio": "below_thousandth_ratio",
    "Five Thousandths Err Ratio": "below_five_thousandths_ratio",
    **{f"NPU {theirs}": f"target_{ours}" for ours, theirs in STATISTICS.items()},
    **{f"Bench {theirs}": f"golden_{ours}" for ours, theirs in STATISTICS.items()},
    **{f"{theirs[0].upper()}{theirs[1:]} diff": f"{ours}_diff"
       for ours, theirs in STATISTICS.items()},
    **{f"{ours.capitalize()}RelativeErr": f"{ours}_percent" for ours in STATISTICS},
}
NOTHING = {"N/A", "None", "", "unsupported", "shape unmatched", "Nan"}


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """Two steps of ranks that differ in many ways; one rank has no counterpart."""
    for rank, names in enumerate(PAIRS):
        for side, name in zip(("target", "golden"), names, strict=True):
            (tmp_path / side).mkdir(exist_ok=True)
            getattr(make_dumps, name)(str(tmp_path / side / f"rank{rank}"))
    make_dumps.sound(str(tmp_path / "golden" / "rank9"))
    return tmp_path / "target", tmp_path / "golden"


def query(path: Path, sql: str) -> list[sqlite3.Row]:
    """The rows that it gives."""
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        return database.execute(sql).fetchall()


def is_same(cell: str, value: Any) -> bool:
    """Whether a cell of a table says what the database does."""
    if value is None:
        return cell in NOTHING
    if value == "nan":
        return cell.strip().lower() == "nan"
    if isinstance(value, str):
        return cell.strip() == value.strip()
    return {"True": 1.0, "False": 0.0}.get(cell) == value or float(cell.rstrip("%\t")) == value


def compare_row(row: sqlite3.Row, line: dict[str, str]) -> set[str]:
    """The columns of a table's line that a row of the database repeats."""
    assert row["name"] in (line["NPU Name"].strip(), line["Bench Name"].strip())
    assert (row["target_name"] is None) <= (line["NPU Name"] == "N/A")
    assert (row["golden_name"] is None) <= (line["Bench Name"] == "N/A")
    if line.get("NPU_Stack_Info", "None") != "None":
        assert ast.literal_eval(line["NPU_Stack_Info"]) == json.loads(row["stack"])
    columns = COLUMNS | ({"MaxRelativeErr": "max_relative_error"} if "Cosine" in line else {})
    seen = set(line) & set(columns)
    assert set(line) - seen <= {"NPU Name", "Bench Name", "Data_name", "NPU_Stack_Info"}
    for name in seen:
        assert is_same(line[name], row[columns[name]]), (line["NPU Name"], name, line[name])
    return seen


def test_it_holds_every_cell_of_the_tables(tmp_path, runs):
    out = tmp_path / "out"
    done = plumb("compare", *runs, "-o", out, "--format", "csv,sqlite", "--json")
    assert done.returncode == 3, done.stderr
    [path] = out.glob("compare_ranks_*.db")
    assert query(path, "PRAGMA integrity_check")[0][0] == "ok"
    seen = set()
    for rank in range(len(PAIRS)):
        [table] = out.glob(f"compare_result_rank{rank}-rank{rank}_*.csv")
        cells = list(csv.DictReader(table.read_text().splitlines()))
        rows = query(path, "SELECT rows.*, stack, target_name, golden_name FROM rows JOIN calls "
                           "USING (rank_id, call) JOIN ranks USING (rank_id) "
                           f"WHERE ranks.rank = {rank} ORDER BY row")
        assert cells and len(rows) == len(cells)
        for row, line in zip(rows, cells, strict=True):
            seen |= compare_row(row, line)
    assert seen == set(COLUMNS)


def test_it_holds_the_answer(tmp_path, runs):
    out = tmp_path / "out"
    done = plumb("compare", *runs, "-o", out, "--format", "sqlite", "--json")
    summary = json.loads(done.stdout)
    [path] = out.glob("compare_ranks_*.db")
    assert str(path) in summary["files"]
    told = dict(query(path, "SELECT name, value FROM facts"))
    assert told["answer"] == summary["answer"]
    assert json.loads(told["summary"]) == summary
    ranks = query(path, "SELECT * FROM ranks ORDER BY rank_id")
    for row, rank in zip(ranks, summary["ranks"], strict=True):
        for key in ("step", "rank", "state", "target", "golden"):
            assert row[key] == rank[key]
        for key in ("answer", "mode", "wrong_calls", "error"):
            assert row[key] == rank.get(key)
        counts = rank.get("counts", {})
        assert row["within_noise"] == counts.get("within noise")
        assert row["broken"] == counts.get("broken")
    assert ranks[-1]["state"] == "missing" and ranks[-1]["answer"] is None
    [first] = query(path, "SELECT ranks.rank, origins.* FROM origins JOIN ranks USING (rank_id) "
                          "WHERE origin = 0")
    answer = summary["first_wrong_call"]
    assert (first["rank"], first["name"], first["item"]) == (
        answer["rank"], answer["name"], answer["item"])
    [(wrong,)] = query(path, "SELECT count(*) FROM wrong WHERE rank >= 0 AND step IS NULL")
    assert wrong == summary["counts"]["suspicious"] + summary["counts"]["broken"]


def test_parts_give_the_same_database(tmp_path, runs):
    """Byte for byte; and none, where a part's tables are gone."""
    out = tmp_path / "out"
    words = [*runs, "--format", "sqlite"]
    expected = whole(out, *words)
    assert "compare_ranks_T.db" in expected[2]
    shards(out, 3, *words)
    [lost] = out.glob("compare_result_rank3-rank3_*.db")
    kept = lost.rename(tmp_path / "kept.db")
    told_without(plumb("merge", out), out, 6,
                 f"{lost}: is gone. Run `plumb compare ... --shard 0/3` again")
    kept.rename(lost)
    assert facts(out, plumb("merge", out)) == expected


def told_without(done: Any, out: Path, status: int, line: str) -> None:
    """The answer and its summary are there, the database over all ranks is not."""
    assert done.returncode == status and done.stderr.count("\n") == 1, done.stderr
    assert line in done.stderr and "Did you mean" not in done.stderr
    [summary] = out.glob("compare_ranks_*.json")
    assert done.stdout.startswith(json.loads(summary.read_text())["answer"] + "\n")
    assert f"file: {summary}\n" in done.stdout
    assert f"file: {summary.with_suffix('.db')}\n" not in done.stdout
    assert not list(out.glob("*compare_ranks_*.db*")), list(out.iterdir())


CHANGES = {
    "UPDATE rows SET verdict = 'same'": "has changed since it was written (expected ",
    "DELETE FROM rows WHERE row > 3": "has changed since it was written (expected ",
    "DROP TABLE rows": "cannot be read as the database of rank 1: no such table: part.rows",
    "cut": "cannot be read as the database of rank 1: ",
    "text": "cannot be read as the database of rank 1: file is not a database"}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_part_is_refused(tmp_path, runs, change):
    """What is wrong of it is said once it ran again."""
    out = tmp_path / "out"
    words = [*runs, "--format", "sqlite"]
    expected = whole(out, *words)
    shards(out, 2, *words)
    [part] = out.glob("compare_result_rank1-rank1_*.db")
    if change in ("cut", "text"):
        part.write_bytes(part.read_bytes()[:8192] if change == "cut" else b"rows, " * 4096)
    else:
        with closing(sqlite3.connect(part)) as database, database:
            database.execute(change)
    done = plumb("merge", out)
    told_without(done, out, 5, f"{part}: {CHANGES[change]}")
    assert done.stderr.endswith(". Run `plumb compare ... --shard 1/2` again\n")
    assert shard(out, "1/2", *words).returncode == 0
    assert facts(out, plumb("merge", out)) == expected


@pytest.mark.parametrize("form", ["sqlite", "html"])
@pytest.mark.parametrize("merges", [False, True])
def test_the_answer_is_told_where_the_file_cannot_grow(tmp_path, runs, form, merges):
    """Those of single ranks are there, and the summary is below the limit."""
    out = tmp_path / "out"
    words = [*runs, "-o", out, "--format", form, "--json"]
    command = ["compare", *words]
    if merges:
        shards(out, 2, *runs, "--format", form, "--json")
        command = ["merge", out]
    else:
        assert plumb(*command).returncode == 3
        for made in out.glob("compare_ranks_*"):
            made.unlink()
    limit = 20_000
    done = subprocess.run(
        [PLUMB, *map(str, command)], text=True, capture_output=True, check=False, timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    [path] = out.glob("compare_ranks_*.json")
    lost = path.with_suffix(".db" if form == "sqlite" else ".html")
    assert done.returncode == 6 and done.stderr.count("\n") == 1 and lost.name in done.stderr
    assert "Did you mean" not in done.stderr
    assert done.stdout == path.read_text() and json.loads(done.stdout)["answer"]
    assert str(lost) not in done.stdout and str(path) in json.loads(done.stdout)["files"]
    assert not list(out.glob(".*.tmp")) and not lost.exists()
