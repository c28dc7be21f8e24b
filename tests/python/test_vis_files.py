"""Files for viewers of graphs, read: .vis and .vis.db of several releases, as `plumb inspect` says
what they hold. Files of upstream's own are made by tests/compat/test_graph_upstream.py.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from graph_dumps_for_viewers import INNER, graph, only, pair, write
from recording import PLUMB

G1_SUMMARY = {"#FFFCF3": [0, 0.2], "#FFEDBE": [0.2, 0.4], "#FFDC7F": [0.4, 0.6],
              "#FFC62E": [0.6, 0.8], "#FF704D": [0.8, 1], "#C7C7C7": []}
G1_MD5 = {"#FFFCF3": [1, 1], "#FF704D": [0, 0], "#C7C7C7": []}
NAMES = ("Module.a.A.forward.0", "Module.b.B.forward.0", "Module.c.C.forward.0",
         "Module.d.D.forward.0")


def inspect(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, "inspect", str(path), *words], capture_output=True, text=True,
                          check=False, timeout=60)


def only_rank(path: Path) -> dict[str, Any]:
    """What `plumb inspect --json` says of the one rank of a file."""
    done = inspect(path, "--json")
    assert done.returncode == 0, done.stderr
    [rank] = json.loads(done.stdout)["ranks"]
    return rank


def old_node(name: str, index: Any, side: str = "", **more: Any) -> dict[str, Any]:
    """A node of an old .vis: with keys that later releases left out and marks of sides."""
    values = {f"{name}.output.0": {"type": "torch.Tensor", "Max": 2.0, "shape": [2, 4],
                                   "MaxRelativeErr": "20.0%"}}
    return {"id": name, "node_type": 0, "type": 0, "is_forward": True, "pair": None, "edge": [],
            "inputs": [], "outputs": [], "output_data": values, "input_data": {},
            "upnode": "DefaultModel", "subnodes": [], "matched_node_link":
            [f"{side}DefaultModel", f"{side}{name}"], "suggestions": {}, "stack_info": [],
            "micro_step_id": "0", "data": {} if index is None else {"precision_index": index},
            **more}


def old_vis(path: Path, indices: list[Any], colors: dict[str, list[float]], task: str,
            **more: Any) -> Path:
    """A comparison in the form of 1.2.2."""
    def side(mark: str, with_index: bool) -> dict[str, Any]:
        nodes = {name: old_node(name, index if with_index else None, mark)
                 for name, index in zip(NAMES, indices, strict=True)}
        root = {"id": "DefaultModel", "node_type": 0, "output_data": {}, "input_data": {},
                "upnode": "None", "subnodes": list(nodes), "matched_node_link": ["DefaultModel"],
                "suggestions": {}, "stack_info": [], "data": {}}
        return {"root": "DefaultModel", "dump_data_dir": None,
                "node": {"DefaultModel": root, **nodes}}

    document = {"NPU": side("B___", True), "Bench": side("N___", False), "ToolTip": "{}",
                "Colors": {color: {"value": value, "description": ""}
                           for color, value in colors.items()},
                "MicroSteps": 1, "task": task, "npu_match_nodes": {}, "bench_match_nodes": {},
                **more}
    path.write_text(json.dumps(document, indent=4))
    return path


@pytest.mark.parametrize("colors, task, indices, counts", [
    (G1_SUMMARY, "summary", [0, 0.2, 0.4, 1], (1, 1, 2)),
    (G1_SUMMARY, "summary", [0.1999, 0.39, 0.81, 0.6], (1, 1, 2)),
    (G1_MD5, "md5", [1, 1, 0, 1], (3, 0, 1)),  # 1 is identical
    ({"#FFFCF3": [0, 0.05], "#FFEDBE": [0.05, 0.1], "#FFDC7F": [0.1, 0.15],
      "#FFC62E": [0.15, 0.2], "#FF704D": [0.2, 1]}, "all", [0.06, "0.3", 0, None], (1, 1, 1))])
def test_an_index_means_what_the_colours_say(tmp_path, colors, task, indices, counts):
    rank = only_rank(old_vis(tmp_path / "compare_step2_rank3_x.vis", indices, colors, task))
    assert (rank["pass"], rank["warning"], rank["error"]) == counts
    assert rank["without_level"] == 4 - sum(counts)
    assert (rank["step"], rank["rank"]) == (2, 3)
    assert (rank["unmatched_target"], rank["unmatched_golden"]) == (0, 0)  # marks of sides
    assert "no verdict of plumb compare" in rank["answer"]


def database(path: Path, indices: list[Any], *, colors: dict[str, Any] | None = None,
             distributed: bool = True, drop: str = "") -> Path:
    """A comparison in the form of 8.2.1 (without is_distributed) or newer."""
    columns = ["id", "graph_id", "node_order", "node_name", "node_type", "up_node", "sub_nodes",
               "precision_index", "overflow_level", "micro_step_id", "matched_node_link",
               "stack_id", "parallel_merge_info", "matched_distributed", "modified", "input_data",
               "output_data", "data_source", "dump_data_dir", "step", "rank"]
    columns += ["is_distributed"] if distributed else []
    if drop:
        columns.remove(drop)
    bands = colors or {"#FFFCF3": {"value": [0, 0.3], "accuracy_level": "pass"},
                       "#FFDC7F": {"value": [0.3, 0.6], "accuracy_level": "warning"},
                       "#FF704D": {"value": [0.6, 1], "accuracy_level": "error"},
                       "#C7C7C7": {"value": [], "accuracy_level": "unmatched node"}}
    with sqlite3.connect(path) as db:
        db.execute(f"CREATE TABLE tb_nodes ({', '.join(columns)})")
        db.execute("CREATE TABLE tb_stack (id TEXT PRIMARY KEY, stack_info TEXT)")
        db.execute("CREATE TABLE tb_config (id, graph_type, task, tool_tip, micro_steps, "
                   "overflow_check, node_colors, rank_list, step_list)")
        db.execute("INSERT INTO tb_config VALUES ('1','compare','summary','{}',1,0,?,'[0]','[0]')",
                   [json.dumps(bands)])
        for source in ("NPU", "Bench"):
            db.execute("INSERT INTO tb_stack VALUES (?, '[]')", [f"{source}_0_0_0"])
            rows = [*zip(NAMES, indices, strict=True), ("DefaultModel", None)]
            for order, (name, index) in enumerate(rows):
                is_root = name == "DefaultModel"
                link = ["DefaultModel"] if is_root else ["DefaultModel", name]
                row = {"id": f"{source}_0_0_{name}", "graph_id": f"{source}_0_0",
                       "node_order": order, "node_name": name, "node_type": "0",
                       "up_node": "" if is_root else "DefaultModel",
                       "sub_nodes": json.dumps(NAMES) if is_root else "",
                       "precision_index": index if source == "NPU" else None,
                       "overflow_level": None, "micro_step_id": 0,
                       "matched_node_link": json.dumps(link), "stack_id": f"{source}_0_0_0",
                       "parallel_merge_info": "", "matched_distributed": "{}", "modified": 0,
                       "input_data": "{}", "output_data": "{}", "data_source": source,
                       "dump_data_dir": None, "step": 0, "rank": 0, "is_distributed": 0}
                marks = ", ".join("?" * len(columns))
                db.execute(f"INSERT INTO tb_nodes VALUES ({marks})", [row[key] for key in columns])
    return path


@pytest.mark.parametrize("distributed", [False, True])
def test_databases_with_and_without_the_later_column(tmp_path, distributed):
    rank = only_rank(database(tmp_path / "a.vis.db", [0, 0.5, 1, 0], distributed=distributed))
    assert (rank["pass"], rank["warning"], rank["error"]) == (2, 1, 1)
    assert rank["first_wrong_call"] == NAMES[2]


def test_a_database_may_count_the_other_way_round(tmp_path):
    colors = {color: {"value": value, "description": ""} for color, value in G1_MD5.items()}
    rank = only_rank(database(tmp_path / "a.vis.db", [1, 1, 0, 1], colors=colors))
    assert (rank["pass"], rank["error"], rank["first_wrong_call"]) == (3, 1, NAMES[2])


def test_the_first_error_has_fine_inputs(tmp_path):
    path = database(tmp_path / "a.vis.db", [0, 1, 1, 0])
    with sqlite3.connect(path) as db:
        db.execute("UPDATE tb_nodes SET input_data = ? WHERE node_name = ?", [
            json.dumps({f"{NAMES[1]}.input.0": {"NormRelativeErr": "35.0%"}}), NAMES[1]])
    rank = only_rank(path)
    assert rank["first_wrong_call"] == NAMES[2]
    assert rank["answer"].startswith(f"first error whose inputs are fine: {NAMES[2]} (2 nodes in")


def test_ours_says_what_compare_found(tmp_path):
    target, golden = (write(tmp_path / name, files)
                      for name, files in zip(("t", "g"), pair(), strict=True))
    said = []
    for form in ("db", "vis"):
        done = graph(target, golden, "-o", tmp_path / form, "--file_type", form)
        rank = only_rank(only(tmp_path / form, f"compare_*.vis{'.db' if form == 'db' else ''}"))
        assert rank["answer"] == done.stdout.splitlines()[0]
        assert rank["first_wrong_call"] == f"{INNER}.forward.0"
        counts = f"{rank['error']} error, {rank['warning']} warning, {rank['pass']} pass"
        assert counts in done.stdout
        said.append(rank)
    assert said[0] == said[1]
    text = inspect(only(tmp_path / "db", "*.vis.db")).stdout
    assert "task summary" in text and "written by plumbline" in text


def test_read_only_directory_with_odd_characters(tmp_path):
    place = tmp_path / "a b+c%20#?"
    place.mkdir()
    path = database(place / "a.vis.db", [0, 0, 0, 0])
    path.chmod(0o400)
    place.chmod(0o500)
    try:
        assert only_rank(path)["pass"] == 4
        assert sorted(each.name for each in place.iterdir()) == ["a.vis.db"]
    finally:
        place.chmod(0o700)


def refused(path: Path, status: int, *words: str) -> None:
    """The file is refused in one line that has these words."""
    done = inspect(path)
    assert done.returncode == status, (done.returncode, done.stderr)
    [line] = done.stderr.strip().splitlines()
    assert str(path) in line
    for word in words:
        assert word in line, line


def test_foreign_and_unfinished_databases(tmp_path):
    nothing = tmp_path / "a.vis.db"
    refused(nothing, 3, "no such file")
    nothing.write_bytes(b"no database at all, and long enough to be one" * 100)
    refused(nothing, 4, "no SQLite database")
    nothing.write_bytes(b"")
    refused(nothing, 4, "tb_nodes")
    other = tmp_path / "b.vis.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE songs (name)")
    refused(other, 4, "something else", "tb_nodes")
    refused(database(tmp_path / "c.vis.db", [0] * 4, drop="input_data"), 4, "input_data")
    unfinished = database(tmp_path / "d.vis.db", [0] * 4)
    with sqlite3.connect(unfinished) as db:
        db.execute("DELETE FROM tb_config")
    refused(unfinished, 5, "tb_config", "not finished")
    cut = database(tmp_path / "e.vis.db", [0] * 4)
    os.truncate(cut, cut.stat().st_size // 2)
    assert inspect(cut).returncode in (5, 6)


def test_a_database_that_is_being_written(tmp_path):
    path = database(tmp_path / "a.vis.db", [0] * 4)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("UPDATE tb_nodes SET modified = 1")
    writer.commit()
    refused(path, 5, "being written", "a.vis.db-wal")
    writer.close()
    assert only_rank(path)["pass"] == 4


def test_cut_and_foreign_json(tmp_path):
    path = old_vis(tmp_path / "a.vis", [0] * 4, G1_SUMMARY, "summary")
    whole = path.read_text()
    for size in (0, 1, len(whole) // 3, len(whole) - 1):
        path.write_text(whole[:size])
        done = inspect(path)
        assert done.returncode in (4, 5) and len(done.stderr.strip().splitlines()) == 1
    path.write_text('{"songs": []}')
    refused(path, 4, "no graph")


def test_trees_that_no_writer_writes_are_mended_and_noted(tmp_path):
    path = database(tmp_path / "a.vis.db", [0] * 4)
    with sqlite3.connect(path) as db:
        for name, parent in ((NAMES[0], "Module.lost"), (NAMES[1], NAMES[2]), (NAMES[2], NAMES[1])):
            db.execute("UPDATE tb_nodes SET up_node = ? WHERE node_name = ?", [parent, name])
        db.execute("UPDATE tb_nodes SET matched_node_link = ? WHERE node_name = ?",
                   [json.dumps(["DefaultModel", "Module.nobody"]), NAMES[3]])
    done = inspect(path)
    assert done.returncode == 0
    assert "below a parent that does not exist" in done.stdout
    assert "are below themselves" in done.stdout
    assert "counterpart that does not exist" in done.stdout
    assert only_rank(path)["nodes"] == 4


def test_any_flipped_byte_is_an_answer_or_one_line(tmp_path):
    whole = database(tmp_path / "a.vis.db", [0, 0.5, 1, 0]).read_bytes()
    path = tmp_path / "b.vis.db"
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1:])
        done = inspect(path)
        assert 0 <= done.returncode <= 6, (at, done.returncode)
        assert len(done.stderr.strip().splitlines()) <= 1
