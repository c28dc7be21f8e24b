"""What the viewer says of databases of trends, against Python's sqlite3."""

from __future__ import annotations

import json
import math
import sqlite3
import statistics
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB
from trend_dumps import api, tensor, write

from plumbline import CorruptDataError, UnsupportedError, _compare

SCHEMA = """
CREATE TABLE monitoring_targets (target_id INTEGER PRIMARY KEY AUTOINCREMENT,
  target_name TEXT NOT NULL, vpp_stage INTEGER NOT NULL, micro_step INTEGER NOT NULL DEFAULT 0,
  UNIQUE(target_name, vpp_stage, micro_step));
CREATE TABLE monitoring_metrics (metric_id INTEGER PRIMARY KEY AUTOINCREMENT,
  metric_name TEXT UNIQUE NOT NULL);
CREATE TABLE monitoring_tags (tag_id INTEGER PRIMARY KEY AUTOINCREMENT, tag_name TEXT NOT NULL,
  category TEXT NOT NULL, metric_id INTEGER NOT NULL, UNIQUE(tag_name, category, metric_id));
CREATE TABLE tag_target_mapping (tag_id INTEGER NOT NULL, target_id INTEGER NOT NULL,
  PRIMARY KEY (tag_id, target_id));
CREATE TABLE trend_data (rank INTEGER NOT NULL, step INTEGER NOT NULL, target_id INTEGER NOT NULL,
  metric_id INTEGER NOT NULL, norm REAL DEFAULT NULL, max REAL DEFAULT NULL,
  PRIMARY KEY (rank, step, target_id, metric_id)) WITHOUT ROWID;
CREATE TABLE global_stats (max_rank INTEGER DEFAULT 0, min_step INTEGER DEFAULT 0,
  max_step INTEGER DEFAULT 0, forward TEXT DEFAULT NULL, backward TEXT DEFAULT NULL);
INSERT INTO monitoring_metrics (metric_name) VALUES ('forward'), ('backward');
INSERT INTO global_stats VALUES (1, 0, 3, 'norm,max', 'norm');
"""

# rank, step, target, metric, norm, max; step 2 is missing on rank 1, target 3 has no step 1.
ROWS = [(rank, step, target, metric, 100 * rank + 10 * step + target, -1.0)
        for rank in (0, 1) for step in (0, 1, 2, 5) for target in (1, 2, 3) for metric in (1, 2)
        if (rank, step) != (1, 2) and (target, step) != (3, 1)]


def make(path: Path, rows: list[tuple] = ROWS, names: tuple[str, ...] = ("a.0.x", "a.1.x", "b.y"),
         ) -> Path:
    """A database; a.0.x and a.1.x have the tag a, all have their last part as one."""
    with sqlite3.connect(path) as database:
        database.executescript(SCHEMA)
        for name in names:
            database.execute(
                "INSERT INTO monitoring_targets (target_name, vpp_stage) VALUES (?, 0)", (name,))
        for metric in (1, 2):
            for at, name in enumerate(names):
                for tag in {name.split(".")[0], name.split(".")[-1]}:
                    database.execute("INSERT OR IGNORE INTO monitoring_tags (tag_name, category, "
                                     "metric_id) VALUES (?, 'module', ?)", (tag, metric))
                    database.execute(
                        "INSERT INTO tag_target_mapping SELECT tag_id, ? FROM monitoring_tags "
                        "WHERE tag_name = ? AND metric_id = ?", (at + 1, tag, metric))
        database.executemany("INSERT INTO trend_data VALUES (?, ?, ?, ?, ?, ?)", rows)
    database.close()
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return make(tmp_path / "small.trend.db")


def ask(path: Path, question: str, against: Path | None = None, **parameters: object,
        ) -> dict[str, Any]:
    other = None if against is None else _compare.TrendDatabase.open(against)
    texts = {name: str(value) for name, value in parameters.items()}
    return json.loads(_compare.TrendDatabase.open(path).ask(question, texts, other))


def value_at(rank: int, step: int, target: int) -> float | None:
    """The norm that a row holds."""
    found = [row[4] for row in ROWS if row[:4] == (rank, step, target, 1)]
    return found[0] if found else None


def test_meta_lists_what_there_is(small: Path) -> None:
    answer = ask(small, "meta")
    assert answer["metrics"] == [{"name": "forward", "statistics": ["norm", "max"]},
                                 {"name": "backward", "statistics": ["norm"]}]
    assert answer["ranks"] == [0, 1] and answer["steps"] == [0, 1, 2, 5]
    assert answer["exact_steps"] and answer["metric"] == "forward"
    assert sorted(answer["tags"]["module"]) == ["a", "b", "x", "y"]
    assert answer["targets"] == {"total": 3, "offset": 0, "rows": [
        [1, "a.0.x", 0, 0], [2, "a.1.x", 0, 0], [3, "b.y", 0, 0]]}


@pytest.mark.parametrize(("parameters", "ids"), [
    ({"tags": "a"}, [1, 2]), ({"tags": "a,x"}, [1, 2]), ({"tags": "a,y"}, []), ({"q": "B.Y"}, [3]),
    ({"q": "%"}, []), ({"q": "x", "offset": 1}, [2]), ({"limit": 1}, [1])])
def test_targets_are_found(small: Path, parameters: dict[str, object], ids: list[int]) -> None:
    rows = ask(small, "meta", **parameters)["targets"]["rows"]
    assert [row[0] for row in rows] == ids


def test_heat_maps_have_gaps(small: Path) -> None:
    step = ask(small, "heat", metric="forward", stat="norm", dimension="step", value=1)
    assert step["x"]["labels"] == [0, 1] and step["x"]["kind"] == "rank"
    assert [label[0] for label in step["y"]["labels"]] == [1, 2, 3]
    assert step["cells"] == [[value_at(rank, 1, t) for rank in (0, 1)] for t in (1, 2, 3)]
    assert step["cells"][2] == [None, None]
    rank = ask(small, "heat", metric="forward", stat="norm", dimension="rank", value=1)
    assert rank["x"]["labels"] == [0, 1, 2, 5]
    assert rank["cells"] == [[value_at(1, s, t) for s in (0, 1, 2, 5)] for t in (1, 2, 3)]
    module = ask(small, "heat", metric="forward", stat="norm", dimension="module", value=3)
    assert module["cells"] == [[value_at(r, s, 3) for s in (0, 1, 2, 5)] for r in (0, 1)]
    plain = [cell for row in rank["cells"] for cell in row if cell is not None]
    assert (rank["min"], rank["max"]) == (min(plain), max(plain))
    assert rank["mean"] == pytest.approx(statistics.fmean(plain))
    assert rank["deviation"] == pytest.approx(statistics.pstdev(plain))


def test_heat_map_of_a_window(small: Path) -> None:
    answer = ask(small, "heat", metric="forward", stat="norm", dimension="rank", value=0, tags="x",
                 x_offset=1, x_limit=2, y_offset=1, y_limit=5)
    assert answer["x"] == {"kind": "step", "total": 4, "offset": 1, "labels": [1, 2]}
    assert answer["y"]["total"] == 2 and answer["cells"] == [[12, 22]]


def test_difference_is_a_minus_b(small: Path, tmp_path: Path) -> None:
    changed = [(r, s, 4 - t, m, 2 * n, x) for r, s, t, m, n, x in ROWS]
    other = make(tmp_path / "other.trend.db", changed, ("b.y", "a.1.x", "a.0.x"))
    answer = ask(small, "heat", other, metric="forward", stat="norm", dimension="rank", value=1)
    for target in (1, 2, 3):
        for x, step in enumerate((0, 1, 2, 5)):
            own = value_at(1, step, target)
            expected = None if own is None else own - 2 * own
            assert answer["cells"][target - 1][x] == expected
    missing = make(tmp_path / "third.trend.db", ROWS, ("a.0.x", "c.z", "b.y"))
    answer = ask(small, "heat", missing, metric="forward", stat="norm", dimension="step", value=0)
    assert answer["cells"] == [[0, 0], [None, None], [0, 0]]
    assert answer["notes"] == [f"1 of 3 modules are not in {missing}"]


def test_lines_follow_steps_and_ranks(small: Path, tmp_path: Path) -> None:
    answer = ask(small, "line", metric="forward", stat="norm", targets="3,1", ranks="1")
    assert answer["x"] == [0, 1, 2, 5] and answer["series_total"] == 2
    for series, target in zip(answer["series"], (1, 3), strict=True):
        assert series["target"][0] == target and series["rank"] == 1
        assert series["values"] == [value_at(1, s, target) for s in (0, 1, 2, 5)]
    along = ask(small, "line", metric="forward", stat="norm", targets="2", along="rank", steps="2")
    assert along["x"] == [0, 1] and along["series"][0]["values"] == [22, None]
    other = make(tmp_path / "other.trend.db", [(*row[:4], 7, 7) for row in ROWS])
    both = ask(small, "line", other, metric="forward", stat="norm", targets="1", ranks="0", limit=2)
    assert [(s["side"], s["values"]) for s in both["series"]] == [("target", [1, 11]),
                                                                   ("against", [7, 7])]
    tagged = ask(small, "line", metric="forward", stat="norm", tags="a", ranks="0")
    assert [s["target"][0] for s in tagged["series"]] == [1, 2]


def test_many_series_are_cut_and_it_is_said(tmp_path: Path) -> None:
    names = tuple(f"m.{i}.x" for i in range(250))
    path = make(tmp_path / "many.trend.db", [(0, 0, i + 1, 1, i, i) for i in range(250)], names)
    answer = ask(path, "line", metric="forward", stat="norm")
    assert len(answer["series"]) == 100 and answer["notes"] == ["100 of 250 series are shown"]


def test_marks_of_the_importer_are_numbers_again(tmp_path: Path) -> None:
    rows = [(0, 0, 1, 1, 1e9 + 1, 1.0), (0, 1, 1, 1, -1e9 - 1, 1.0), (0, 2, 1, 1, 1e9, 1.0),
            (0, 3, 1, 1, None, None), (0, 4, 1, 1, None, 1.0)]
    path = make(tmp_path / "marks.trend.db", rows, ("a.0.x",))
    [series] = ask(path, "line", metric="forward", stat="norm", targets="1")["series"]
    assert series["values"] == ["inf", "-inf", 1e9, "nan", None]


def test_import_of_a_recording(tmp_path: Path) -> None:
    for step in (0, 2):
        values = {"Max": math.inf if step else 2.0, "Min": math.nan, "Mean": 0.0, "Norm": 3.0}
        write(tmp_path / "dump" / f"step{step}" / "rank0",
              {"Module.fc.Linear.forward.0": api({**tensor(), **values})},
              {"Module.fc.Linear.forward.0": None})
    subprocess.run([PLUMB, "data2db", "--db", tmp_path / "db", "--data", tmp_path / "dump",
                    "--micro_step", "false"], check=True, capture_output=True)
    path = tmp_path / "db" / "dump_data.trend.db"
    assert ask(path, "meta")["steps"] == [0, 2]
    answer = ask(path, "line", metric="forward", stat="max", q="input.0")
    assert answer["series"][0]["values"] == [2.0, "inf"]


def series_alerts(tmp_path: Path, values: list[float | None], **parameters: object,
                  ) -> list[tuple[int, str]]:
    """Steps and kinds of alerts of one series."""
    rows = [(0, step, 1, 1, value, value) for step, value in enumerate(values)]
    path = make(tmp_path / f"{len(list(tmp_path.iterdir()))}.trend.db", rows, ("a.0.x",))
    answer = ask(path, "alerts", metric="forward", stat="norm", **parameters)
    assert answer["total"] == len(answer["alerts"]) and "standard deviations" in answer["rule"]
    return [(alert["step"], alert["kind"]) for alert in answer["alerts"]]


def test_alerts(tmp_path: Path) -> None:
    calm = [1 + 0.1 * math.sin(7 * i) for i in range(40)]
    assert series_alerts(tmp_path, calm) == []
    assert series_alerts(tmp_path, [*calm, 1.5, *calm]) == [(40, "z")]
    assert series_alerts(tmp_path, [*calm, 100.0]) == [(40, "ratio")]
    assert series_alerts(tmp_path, [*calm, None, 1e9 + 1, -1e9 - 1]) == [
        (40, "nan"), (41, "inf"), (42, "inf")]
    assert series_alerts(tmp_path, [1.0] * 20 + [1.0001]) == []
    assert series_alerts(tmp_path, [0.0] * 20 + [1e-9]) == [(20, "ratio")]
    assert series_alerts(tmp_path, [1.0, 1.0, 1.0, 1.0, 100.0]) == []  # too few before it
    grows = [1.2 ** i for i in range(30)]
    assert series_alerts(tmp_path, grows, window=5) == []


def test_alerts_count_from_each_rank(tmp_path: Path) -> None:
    rows = [(rank, step, 1, 1, 100.0 ** rank, 1.0) for rank in (0, 1) for step in range(10)]
    path = make(tmp_path / "x.trend.db", rows, ("a.0.x",))
    assert ask(path, "alerts", metric="forward", stat="norm")["total"] == 0


def test_what_is_no_database(tmp_path: Path, small: Path) -> None:
    bad = tmp_path / "bad.trend.db"
    with pytest.raises(FileNotFoundError, match="no such file"):
        ask(bad, "meta")
    for content in (b"", b"SQLite format 3\0", b"{}" * 200):
        bad.write_bytes(content)
        with pytest.raises(UnsupportedError, match="is no SQLite database"):
            ask(bad, "meta")
    whole = small.read_bytes()
    bad.write_bytes(whole[:len(whole) // 2])
    with pytest.raises(CorruptDataError, match=f"is cut: {len(whole) // 2} bytes, expected"):
        ask(bad, "meta")
    bad.unlink()
    with sqlite3.connect(bad) as database:
        database.execute("CREATE TABLE notes (text)")
    with pytest.raises(UnsupportedError, match="has no table trend_data"):
        ask(bad, "meta")


def test_database_that_is_written(small: Path) -> None:
    writer = sqlite3.connect(small, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OSError, match="another program is writing it"):
        ask(small, "meta")
    opened = None
    writer.execute("ROLLBACK")
    opened = _compare.TrendDatabase.open(small)
    assert json.loads(opened.ask("meta"))["steps"] == [0, 1, 2, 5]
    writer.execute("INSERT INTO trend_data VALUES (0, 9, 1, 1, 4.0, 4.0)")
    writer.close()
    assert json.loads(opened.ask("meta"))["steps"] == [0, 1, 2, 5, 9]


def test_live_database_is_read_as_it_grows(small: Path) -> None:
    writer = sqlite3.connect(small, isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("INSERT INTO trend_data VALUES (0, 7, 1, 1, 4.0, 4.0)")
    opened = _compare.TrendDatabase.open(small)
    assert json.loads(opened.ask("meta"))["steps"] == [0, 1, 2, 5, 7]
    writer.execute("INSERT INTO trend_data VALUES (0, 8, 1, 1, 4.0, 4.0)")
    assert json.loads(opened.ask("meta"))["steps"][-1] == 8
    writer.close()


def test_read_only_place_stays_untouched(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "100% of #1?"
    folder.mkdir()
    path = folder / "x.trend.db"
    path.write_bytes(small.read_bytes())
    path.chmod(0o444)
    folder.chmod(0o555)
    before = path.read_bytes()
    assert ask(path, "meta")["ranks"] == [0, 1]
    folder.chmod(0o755)
    assert [p.name for p in folder.iterdir()] == ["x.trend.db"] and path.read_bytes() == before


@pytest.mark.parametrize(("question", "parameters", "message"), [
    ("heat", {"metric": "x", "stat": "norm"}, "metric: .* has forward, backward, got 'x'"),
    ("heat", {"metric": "backward", "stat": "max"}, "stat: backward has norm, got 'max'"),
    ("heat", {"metric": "forward", "stat": "norm", "dimension": "time"}, "dimension: expected"),
    ("heat", {"metric": "forward", "stat": "norm", "dimension": "module", "value": 9},
     "value: .* has no module 9"),
    ("heat", {"metric": "forward", "stat": "norm", "dimension": "step", "x_limit": 99999},
     "x_limit"),
    ("line", {"metric": "forward", "stat": "norm", "targets": "1;2"}, "targets: expected"),
    ("line", {"metric": "forward", "stat": "norm", "along": "x"}, "along: expected step or rank"),
    ("alerts", {"metric": "forward", "stat": "norm", "window": 1}, "window"),
    ("meta", {"metric": "x"}, "metric: "), ("rows", {}, "question: expected one of")])
def test_bad_questions(small: Path, question: str, parameters: dict[str, object],
                       message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask(small, question, **parameters)


def test_hostile_names_are_texts(tmp_path: Path) -> None:
    names = ('<script>"', "x'; DROP TABLE trend_data; --", "\U0001f600" * 1000)
    path = make(tmp_path / "x.trend.db", [(0, 0, t, 1, t, t) for t in (1, 2, 3)], names)
    answer = ask(path, "meta")
    assert [row[1] for row in answer["targets"]["rows"]] == list(names)
    assert ask(path, "meta", q="DROP TABLE")["targets"]["total"] == 1
    assert ask(path, "meta", tags="' OR 1=1")["targets"]["total"] == 0
