"""plumb view of tables that commands wrote: their rows, in order and by words, with the level of
their own result, and the way from a comparison's row to its graph."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from precheck_files import write_details
from rank_dumps import scenarios, write_step
from recording import PLUMB
from view_client import Viewer, environment, viewer, write_rank

NAMES = ["Functional.linear.0.forward", "Module.fc.Linear.forward.0", "Module.top.Net.forward.0"]


def plumb(*words: object) -> str:
    return subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True,
                          check=True).stdout


def cells(answer: dict[str, Any], column: str) -> list[str]:
    at = answer["columns"].index(column)
    return [row[3][at] for row in answer["rows"]]


def whole(running: Viewer, **parameters: object) -> dict[str, Any]:
    answer: dict[str, Any] = running.get(f"d/{running.dataset()['id']}/table", limit=1000,
                                         **parameters)
    return answer


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("tables")
    for step in ("step0", "step1"):
        for rank in ("rank0", "rank1"):
            is_wrong = (step, rank) == ("step1", "rank1")
            write_rank(top / "new" / step / rank, NAMES, 1.5 if is_wrong else 1.0)
            write_rank(top / "good" / step / rank, NAMES)
    plumb("compare", top / "new", top / "good", "-o", top / "ranks", "--format", "csv,xlsx,json")
    plumb("compare", top / "new/step1/rank1", top / "good/step1/rank1", "-o", top / "one",
          "--format", "csv,xlsx,json")
    return top


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_the_table_of_a_comparison(compared: Path, tmp_path: Path, ending: str) -> None:
    (path,) = (compared / "one").glob(f"compare_result_*.{ending}")
    with viewer(tmp_path, path) as running:
        dataset = running.dataset()
        assert (dataset["kind"], dataset["state"]) == ("table", "ready")
        assert running.lines[0].endswith("; first wrong call: Functional.linear.0.forward")
        answer = whole(running)
        assert answer["parts"] == [path.name] and answer["total"] == answer["all"] == 6
        assert [row[1] for row in answer["rows"]] == ["pass" if verdict in ("same", "within noise")
                                                      else "error" if verdict == "broken"
                                                      else "none"
                                                      for verdict in cells(answer, "Verdict")]
        assert sum(answer["counts"].values()) == 6 and answer["counts"]["error"] > 0
        assert answer["rows"][answer["first"]][1] == "error"
        assert {row[2] for row in answer["rows"]} == set(NAMES)
        assert answer["recordings"] == {"target": str(compared / "new/step1/rank1"),
                                        "golden": str(compared / "good/step1/rank1"),
                                        "step": -1, "rank": -1}


def test_the_first_row_is_that_of_the_comparison(compared: Path, tmp_path: Path) -> None:
    """A row above it is worse by its own word: what the command answered counts all the same."""
    (whole_json,) = (compared / "one").glob("compare_result_*.json")
    told = json.loads(whole_json.read_text())
    name = "compare_result_20260131120000"
    item = "Module.fc.Linear.forward.0.output.0"
    first = {"first_wrong_call": {"name": "Module.fc.Linear.forward.0", "item": item}}
    none, good = {"first_wrong_call": None}, {"counts": {"same": 1, "broken": 1}}
    for facts, text, at in ((first, "first wrong call: Module.fc.Linear.forward.0", 1),
                            (none | good, "no wrong call", -1), (none, "not judged", -1),
                            (none | good | {"complete": False}, "not judged completely", -1)):
        (tmp_path / f"{name}.json").write_text(json.dumps(told | facts))
        (tmp_path / f"{name}.csv").write_text(
            f"NPU Name,Verdict\nModule.top.Net.forward.0.input.0,broken\n{item},suspicious\n")
        for ending in ("csv", "json"):
            with viewer(tmp_path / "cache", tmp_path / f"{name}.{ending}") as running:
                assert running.lines[0].endswith("; " + text), running.lines
                answer = whole(running)
                assert (answer["first"], answer["parts"]) == (at, [f"{name}.csv"])
    (tmp_path / f"{name}.json").unlink()
    with viewer(tmp_path / "cache", tmp_path / f"{name}.csv") as running:
        assert "first row that is not good: Module.top.Net.forward.0" in running.lines[0]
        assert whole(running)["first"] == 0
    alone = tmp_path / f"{name}.json"
    alone.write_text(whole_json.read_text())
    (tmp_path / f"{name}.csv").unlink()
    done = subprocess.run([PLUMB, "view", alone], env=environment(tmp_path / "cache"),
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 3 and "not beside it" in done.stderr, done.stderr


def test_the_first_of_several_ranks(compared: Path, tmp_path: Path) -> None:
    (path,) = (compared / "ranks").glob("compare_ranks_*.json")
    with viewer(tmp_path, path) as running:
        assert running.lines[0].endswith(
            "; first wrong call: step 1 rank 1 Functional.linear.0.forward")
        assert whole(running)["first"] == 3


def test_order_words_and_pages(compared: Path, tmp_path: Path) -> None:
    (path,) = (compared / "one").glob("compare_result_*.csv")
    with viewer(tmp_path, path) as running:
        question = f"d/{running.dataset()['id']}/table"
        answer = whole(running)
        column = answer["columns"].index("NPU Name")
        down = whole(running, sort=f"-{column}")
        assert cells(down, "NPU Name") == sorted(cells(answer, "NPU Name"), reverse=True)
        assert whole(running, sort="level")["rows"][0][1] == "error"
        found = whole(running, q="OUTPUT linear.forward")
        assert cells(found, "NPU Name") == ["Module.fc.Linear.forward.0.output.0"]
        assert whole(running, q="level:pass level:error")["total"] == 0
        page = running.get(question, offset=2, limit=3)
        assert page["rows"] == answer["rows"][2:5]
        row = running.get(f"{question}/row", row=4)
        assert row["rows"][0][:3] == answer["rows"][4][:3]
        for wrong in ("sort=-99", "sort=x", "q=level:bad", "part=1", "limit=0"):
            assert running.ask(f"/api/{question}?{wrong}").status == 400, wrong
        assert running.ask(f"/api/d/{running.dataset()['id']}/children?node=0").status == 404


def test_numbers_are_sorted_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("n\n10\n9\nnan\n1e3\n20%\nword\n\"\"\n-inf\nN/A\n")
    with viewer(tmp_path / "cache", path) as running:
        up = cells(whole(running, sort="0"), "n")
        assert up == ["-inf", "9", "10", "20%", "1e3", "nan", "word", "", "N/A"]
        down = cells(whole(running, sort="-0"), "n")
        assert down == ["nan", "1e3", "20%", "10", "9", "-inf", "word", "", "N/A"]


def test_rows_are_exported(compared: Path, tmp_path: Path) -> None:
    (path,) = (compared / "one").glob("compare_result_*.csv")
    with viewer(tmp_path, path) as running:
        export = f"d/{running.dataset()['id']}/export"
        what = {"format": "csv", "q": "output", "sort": "level", "part": "0"}
        job = running.post(export, what).json()["job"]
        assert running.job(job)["state"] == "done"
        got = running.ask(f"/api/jobs/{job}/file").body.decode()
        rows = list(csv.DictReader(io.StringIO(got)))
        shown = whole(running, q="output", sort="level")
        assert [row["NPU Name"] for row in rows] == cells(shown, "NPU Name")
        job = running.post(export, {"format": "xlsx"}).json()["job"]
        assert running.job(job)["state"] == "done"
        (tmp_path / "again.xlsx").write_bytes(running.ask(f"/api/jobs/{job}/file").body)
        all_rows = whole(running)
        got = running.post(export, {"format": "vis"})
        assert got.status == 400 and "csv, xlsx" in got.json()["error"]["message"]
    with viewer(tmp_path, tmp_path / "again.xlsx") as running:
        assert whole(running)["columns"] == all_rows["columns"]
        assert cells(whole(running), "NPU Name") == cells(all_rows, "NPU Name")


def test_a_directory_of_tables(compared: Path, tmp_path: Path) -> None:
    """The summary over the ranks first; a workbook beside its CSV once; each with its rank."""
    with viewer(tmp_path, compared / "ranks") as running:
        answer = whole(running)
        assert answer["parts"][0].startswith("compare_ranks_")
        assert [part.split("_2")[0] for part in answer["parts"][1:]] == [
            f"step{step}/compare_result_rank{rank}-rank{rank}"
            for step in (0, 1) for rank in (0, 1)]
        assert [row[1] for row in answer["rows"]] == ["pass", "pass", "pass", "error"]
        last = whole(running, part=4)
        assert last["counts"]["error"] > 0 and last["recordings"] == {
            "target": str(compared / "new"), "golden": str(compared / "good"), "step": 1, "rank": 1}


def test_a_row_leads_to_the_graph(compared: Path, tmp_path: Path) -> None:
    (path,) = (compared / "one").glob("compare_result_*.csv")
    with viewer(tmp_path / "cache", path, "--root", compared) as running:
        answer = whole(running)
        row = answer["rows"][answer["first"]]
        both = {side: answer["recordings"][side] for side in ("target", "golden")}
        running.post("open", both)
        graph = running.dataset(1)
        found = running.get(f"d/{graph['id']}/path", name=row[2], place=0, side="target")
        assert graph["kind"] == "graph" and found["exact"] is True
    with viewer(tmp_path / "cache", path) as running:
        assert running.post("open", both).status == 404  # outside of what is served
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / path.name).write_bytes(path.read_bytes())
    with viewer(tmp_path / "cache", moved / path.name) as running:
        assert whole(running)["recordings"] is None


def test_results_of_a_precheck(tmp_path: Path) -> None:
    result = tmp_path / "accuracy_checking_result_20260131120000.csv"
    result.write_text("\ufeffAPI Name,Forward Test Success,Backward Test Success,Message\r\n"
                      "Torch.a.0,pass,pass,\r\nTorch.b.0,pass,error,wrong\r\n"
                      "Torch.c.0,Warning, ,\r\nTorch.d.0,SKIP, ,not known\r\n")
    write_details(tmp_path / "accuracy_checking_details_20260131120000.csv", [
        {"API Name": "Torch.a.0.forward.output.0", "Status": "pass"},
        {"API Name": "Torch.b.0.backward.output.0", "Status": "error"}])
    with viewer(tmp_path / "cache", tmp_path) as running:
        details, of_calls = whole(running, part=0), whole(running, part=1)
        assert [row[1] for row in of_calls["rows"]] == ["pass", "error", "warning", "none"]
        assert [row[1] for row in details["rows"]] == ["pass", "error"]
        assert (of_calls["first"], details["first"]) == (1, 1)
        assert details["recordings"] is None and details["rows"][1][2] == "Torch.b.0.backward"


def test_results_of_overflows(tmp_path: Path) -> None:
    ranks, _ = scenarios()["between_two_collectives"]
    step = write_step(tmp_path / "step0", ranks)
    plumb("overflow", step, "-o", tmp_path / "out")
    plumb("overflow", step, "--grade", "-o", tmp_path / "out")
    (tmp_path / "out" / "overflow_check_result_20260131120000.csv").write_text(
        "API Name,Input Overflow,CPU Overflow,Device Overflow,Result,Message\n"
        "Torch.log.0.forward,False,False,True,abnormal,\nTorch.mul.0.forward,,,,normal,\n")
    with viewer(tmp_path / "cache", tmp_path / "out") as running:
        parts = whole(running)["parts"]
        by_start = {part.rsplit("_", 1)[0]: whole(running, part=i) for i, part in enumerate(parts)}
        assert cells(by_start["anomaly_analyze"], "op_name")[0] == "Torch.log.0.forward"
        assert by_start["anomaly_analyze"]["rows"][0][1] == "error"
        assert cells(by_start["overflow_trace"], "rank")[0].startswith("rank_")
        assert set(cells(by_start["overflow_levels"], "level")) <= {"medium", "high", "critical"}
        assert [row[1] for row in by_start["overflow_check_result"]["rows"]] == ["error", "pass"]


def test_sheets_of_other_columns(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["API Name", "rank0"])
    book.active.append(["Torch.a.0", 1])
    other = book.create_sheet("other")
    other.append(["API Name", "rank1"])
    other.append(["Torch.b.0", 2])
    book.save(tmp_path / "two.xlsx")
    with viewer(tmp_path / "cache", tmp_path / "two.xlsx") as running:
        answer = whole(running)
        assert answer["columns"] == ["API Name", "rank0", "rank1", "sheet"]
        assert cells(answer, "rank1") == ["", "2"] and cells(answer, "sheet") == ["", "2"]


def test_cells_beyond_the_header_are_shown(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    rows = [["API Name", "n"], ["Torch.a.0", "1"], ["Torch.b.0", "2", "3", "4"], ["Torch.c.0"]]
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, rows)) + ",,,,\n")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "w.xlsx")
    for name in ("t.csv", "w.xlsx"):
        with viewer(tmp_path / "cache", tmp_path / name) as running:
            answer = whole(running)
            assert answer["columns"] == ["API Name", "n", "", ""]
            assert [row[3] for row in answer["rows"]] == [
                ["Torch.a.0", "1", "", ""], ["Torch.b.0", "2", "3", "4"], ["Torch.c.0", "", "", ""]]
            assert whole(running, q="4")["total"] == 1


@pytest.mark.parametrize("content", ["a,b\n1,2\n".encode("utf-16"), b"a,b\n1,\0\n"])
def test_bytes_that_are_no_text_are_no_table(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    done = subprocess.run([PLUMB, "view", tmp_path / "t.csv"], env=environment(tmp_path / "cache"),
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 4 and "no text" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("name, text", [("t.csv", ""), ("t.csv", 'a,b\n"x'), ("t.xlsx", "no zip"),
                                        ("overflow_trace_1.json", '{"origins": [{"a"')])
def test_what_is_no_table_is_one_line(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    done = subprocess.run([PLUMB, "view", tmp_path / name], env=environment(tmp_path / "cache"),
                          capture_output=True, text=True, timeout=30)
    assert done.returncode in (4, 5) and done.stderr.count("\n") == 1 and name in done.stderr


def test_hostile_cells_come_verbatim(tmp_path: Path) -> None:
    cell = "<script>alert(1)</script>\u202e\U0001f600"
    (tmp_path / "t.csv").write_text(f"API Name,stack\n{cell},{'x' * 5000}\n")
    with viewer(tmp_path / "cache", tmp_path / "t.csv") as running:
        row = whole(running)["rows"][0]
        assert row[3][0] == cell and len(row[3][1]) < 200
        question = f"d/{running.dataset()['id']}/table/row"
        assert len(running.get(question, row=0)["rows"][0][3][1]) == 5000


def test_two_paths_are_no_table(compared: Path, tmp_path: Path) -> None:
    (path,) = (compared / "one").glob("compare_result_*.csv")
    with viewer(tmp_path, path, "--root", compared) as running:
        got = running.post("open", {"target": str(path), "golden": str(compared / "new")})
        assert got.status == 200
        assert running.dataset(1)["state"] == "failed"
        assert "is a table" in json.dumps(running.dataset(1))
