"""plumb graph: which directories it takes, what it writes, what it says of bad ones."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from graph_dumps_for_viewers import (
    INNER,
    LAYER,
    config_of,
    everything,
    graph,
    only,
    read_db,
    write,
)
from rank_dumps import forward, tensor
from recording import PLUMB


def module(entries: list[Any]) -> dict[str, Any]:
    """Files of a rank with these entries in one module."""
    names = [name for name, _ in entries]
    return {"construct.json": {**dict.fromkeys(names, "Module.m.M.forward.0"),
                               "Module.m.M.forward.0": None},
            "stack.json": {}, "dump.json": {"task": "statistics", "data": dict(entries)}}


def test_one_rank_as_database(tmp_path):
    done = graph(write(tmp_path / "rank3", everything()), "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    path = only(tmp_path / "out", "*.vis.db")
    lines = done.stdout.splitlines()
    assert lines[0] == "graph of 26 nodes: 1 rank, 1 step, 2 micro steps"
    assert lines[1] == f"  {path}"
    nodes = read_db(path, rank=3)
    assert len(nodes) == 27 and list(nodes)[-1] == "DefaultModel"
    assert nodes["Apis_Between_Modules.0"]["node_type"] == "9"
    # Run again in the backward pass, and so below the backward call of the block.
    assert nodes[f"{LAYER}.forward.1"]["up_node"] == "Module.block.Block.backward.0"
    assert nodes[f"{INNER}.backward.0"]["up_node"] == f"{LAYER}.backward.0"
    assert nodes[f"{INNER}.parameters_grad.1"]["up_node"] == f"{INNER}.backward.1"
    assert nodes["Module.block.Block.forward.1"]["micro_step_id"] == 1
    assert config_of(path)["rank_list"] == "[3]"


def test_ranks_in_order_of_number_and_others_named(tmp_path):
    for name in ("rank10", "rank0", "rank2"):
        write(tmp_path / "in" / name, everything())
    (tmp_path / "in" / "notes.txt").touch()
    done = graph(tmp_path / "in", "-o", tmp_path / "out")
    assert done.returncode == 0 and "3 ranks" in done.stdout
    assert done.stderr.count("notes.txt") == 1
    assert config_of(only(tmp_path / "out", "*.vis.db"))["rank_list"] == "[0, 2, 10]"
    done = graph(tmp_path / "in", "-o", tmp_path / "vis", "--file_type", "vis", "--ranks", "2,10")
    names = sorted(path.name.rsplit("_", 1)[0] for path in (tmp_path / "vis").iterdir())
    assert names == ["build_rank10", "build_rank2"]


def test_steps_and_a_rank_without_number(tmp_path):
    write(tmp_path / "in" / "step0" / "rank", everything())
    write(tmp_path / "in" / "step5" / "proc812", everything())
    write(tmp_path / "in" / "step7", everything())  # the files of the only rank
    done = graph(tmp_path / "in", "-o", tmp_path / "out", "--file_type", "vis")
    assert done.returncode == 0 and "1 rank, 3 steps" in done.stdout
    names = sorted(path.name.rsplit("_", 1)[0] for path in (tmp_path / "out").iterdir())
    assert names == ["build_step0_rank", "build_step5_proc812", "build_step7_rank"]


def test_nothing_is_replaced(tmp_path):
    place = write(tmp_path / "in", everything())
    for _ in range(3):
        assert graph(place, "-o", tmp_path / "out").returncode == 0
    assert len(list((tmp_path / "out").glob("*.vis.db"))) == 3


@pytest.mark.parametrize("missing", ["construct.json", "stack.json"])
def test_missing_file_is_named(tmp_path, missing):
    place = write(tmp_path / "in", everything())
    (place / missing).unlink()
    done = graph(place, "-o", tmp_path / "out")
    assert done.returncode == 3 and missing in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_empty_construct_says_what_to_record(tmp_path):
    place = write(tmp_path / "in", {**everything(), "construct.json": {}})
    done = graph(place, "-o", tmp_path / "out")
    assert done.returncode == 4 and "L0 or mix" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("name", ["construct.json", "dump.json", "stack.json"])
def test_cut_file_leaves_nothing(tmp_path, name):
    place = write(tmp_path / "in", everything())
    text = (place / name).read_text()
    (place / name).write_text(text[:len(text) // 2])
    done = graph(place, "-o", tmp_path / "out")
    assert done.returncode == 5 and name in done.stderr and "byte" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_two_directories_of_one_rank_are_an_error(tmp_path):
    for name in ("rank", "rank0"):
        write(tmp_path / "in" / name, everything())
    done = graph(tmp_path / "in", "-o", tmp_path / "out")
    assert done.returncode == 2 and "rank and rank0 are both rank 0" in done.stderr


def test_levels_of_overflow(tmp_path):
    nan, inf = float("nan"), float("inf")
    place = write(tmp_path / "in", module([
        forward("Torch.log.0.forward", [tensor(0.5)], [tensor(inf)]),
        forward("Torch.add.0.forward", [tensor(nan)], [tensor(nan)]),
        forward("Torch.where.0.forward", [tensor(nan)], [tensor(1.0)]),
        forward("Torch.mul.0.forward", [tensor(1.0)], [tensor(101.0)]),
        forward("Torch.empty.0.forward", [], [tensor(nan)])]))
    done = graph(place, "-o", tmp_path / "out", "-oc")
    assert "4 nodes with NaN, Inf or a jump of norms" in done.stdout
    path = only(tmp_path / "out", "*.vis.db")
    levels = {name: node["overflow_level"] for name, node in read_db(path).items()
              if node["overflow_level"]}
    assert levels == {"Torch.log.0.forward": "critical", "Torch.add.0.forward": "high",
                      "Torch.where.0.forward": "medium", "Torch.mul.0.forward": "high"}
    assert config_of(path)["overflow_check"] == 1


def test_short_and_full_stacks(tmp_path):
    place = write(tmp_path / "in", everything())
    frames = {}
    for form in ("short", "full", "none"):
        assert graph(place, "-o", tmp_path / form, "--stack", form).returncode == 0
        nodes = read_db(only(tmp_path / form, "*.vis.db"))
        frames[form] = nodes["Tensor.a.0.forward"]["stack_info"]
    assert len(frames["full"]) == 2 and frames["none"] == []
    assert frames["short"] == [frames["full"][1]]


def test_hostile_names_stay_texts(tmp_path):
    name = "Module.<script>alert(1)</script>\u202e\"'; DROP TABLE tb_nodes--." + "x" * 4096
    files = everything()
    files["construct.json"] = {**files["construct.json"], name: None}
    done = graph(write(tmp_path / "in", files), "-o", tmp_path / "out")
    assert done.returncode == 0
    assert name in read_db(only(tmp_path / "out", "*.vis.db"))
    done = graph(tmp_path / "in", "-o", tmp_path / "vis", "--file_type", "vis")
    assert name in json.loads(only(tmp_path / "vis", "*.vis").read_text())["node"]


def test_deep_trees_are_no_recursion(tmp_path):
    names = [f"Module.m{i}.M.forward.0" for i in range(20_000)]
    construct = {name: names[i + 1] if i + 1 < len(names) else None
                 for i, name in enumerate(names)}
    place = write(tmp_path / "in", {"construct.json": construct, "stack.json": {},
                                    "dump.json": {"task": "statistics", "data": {}}})
    done = graph(place, "-o", tmp_path / "out")
    assert done.returncode == 0 and "20000 nodes" in done.stdout


def test_recording_of_plumbline_itself(tmp_path):
    recorded = Path(__file__).parent.parent / "data" / "upstream_26.2.0" / "mix_statistics"
    shutil.copytree(recorded, tmp_path / "a+b c")  # upstream refuses such a path
    done = subprocess.run([PLUMB, "graph", tmp_path / "a+b c", "-o", tmp_path / "out"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
