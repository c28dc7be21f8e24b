"""plumb graph of recordings of MindSpore: alone, against each other and against PyTorch's."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_ms_compare import PLUMB, recordings

__all__ = ["recordings"]  # the fixture


def plumb(*words: Any) -> str:
    """What a command prints."""
    done = subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def nodes_of(out: Path) -> dict[str, dict[str, Any]]:
    """The target's nodes of the one database in `out`."""
    [path] = out.glob("*.vis.db")
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute("SELECT * FROM tb_nodes WHERE data_source = 'NPU'")
        return {row["node_name"]: dict(row) for row in rows}


def test_a_recording_alone(recordings: Path, tmp_path: Path) -> None:
    assert plumb("graph", recordings / "mindspore", "-o", tmp_path).startswith("graph of ")
    nodes = nodes_of(tmp_path)
    assert {name.split(".")[0] for name in nodes} >= {"DefaultModel", "Cell", "Mint"}
    inner = nodes["Cell.block.first.Linear.forward.0"]
    assert inner["up_node"] == "Cell.block.Block.forward.0" and inner["node_type"] == "0"
    assert any(name.startswith("Mint.matmul.") for name in json.loads(inner["sub_nodes"]))


@pytest.mark.parametrize("golden, options", [("mindspore", ()), ("pytorch", ("-lm",))])
def test_the_first_wrong_call_is_that_of_compare(
    recordings: Path, tmp_path: Path, golden: str, options: tuple[str, ...]
) -> None:
    sides = [recordings / "wrong", recordings / golden]
    compared = plumb("compare", *sides, "-o", tmp_path / "compared", *options)
    said = plumb("graph", *sides, "-o", tmp_path / "out", *options)
    assert said.splitlines()[0] == compared.splitlines()[0]
    assert "Mint.mul.0.forward" in said.splitlines()[0]
    nodes = nodes_of(tmp_path / "out")
    assert nodes["Mint.mul.0.forward"]["precision_index"] == 1
    link = json.loads(nodes["Cell.block.first.Linear.forward.0"]["matched_node_link"])
    prefix = "Cell" if golden == "mindspore" else "Module"
    assert link[-1] == f"{prefix}.block.first.Linear.forward.0"
    good = plumb("graph", recordings / "mindspore", recordings / golden, "-o", tmp_path / "good",
                 *options, "--fail-on", "error")
    assert good.startswith("no ")
    matched = [node for node in nodes_of(tmp_path / "good").values()
               if json.loads(node["matched_node_link"])]
    assert matched and all(node["precision_index"] in (0, None) for node in matched)


def test_both_frameworks_pair_without_a_mapping(recordings: Path, tmp_path: Path) -> None:
    sides = [recordings / "mindspore", recordings / "pytorch"]
    compared = plumb("compare", *sides, "-o", tmp_path / "compared")
    said = plumb("graph", *sides, "-o", tmp_path / "out")
    assert said.splitlines()[0] == compared.splitlines()[0]
    nodes = nodes_of(tmp_path / "out")
    link = json.loads(nodes["Mint.matmul.0.forward"]["matched_node_link"])
    assert link[-2:] == ["Module.block.first.Linear.forward.0", "Torch.matmul.0.forward"]
    assert {node["precision_index"] for node in nodes.values()} <= {0, None}
