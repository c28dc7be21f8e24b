"""plumb code_mapping against the code_mapping of upstream 1.2.2 on the same graph and dumps.

Names of the graph are chosen so that none occurs in another: upstream takes every scope that it
finds in a name for a match (docs/reference/code-mapping.md).
"""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import HERE, run, upstream_python

pytestmark = pytest.mark.upstream

KERNELS = ("Default/net-Net/fc-Dense/MatMul-op10", "Default/net-Net/ReLU-op11",
           "Gradients/Default/Grad_MatMul/MatMul-op12", "Gradients/Default/AddN-op13",
           "Gradients/Default/Grad_ReLU/Neg-op14")
ATTRIBUTES = ('unique_id: "7"', 'unique_id: "70"', 'forward_unique_id: "7"', "",
              'forward_node_name: "Neg_8", forward_unique_id: "8"')


def graph_text() -> str:
    lines = ["# IR entry: @kernel_graph0", "# Total subgraphs: 1", "", "# Attrs:",
             "enable_zero_copy_in_graph: 1", "", "# Total params: 1", "# Params:",
             "%para1_x: <Tensor[Float32], (3, 4)>", "", "subgraph attr:", "core: 1",
             "subgraph @kernel_graph0(%para1_x) {"]
    for i, (name, attributes) in enumerate(zip(KERNELS, ATTRIBUTES, strict=True)):
        lines += [f"  %{i}(equiv_{i}_x) = PrimFunc_X(%para1_x, (I64(1), Bool(0)), Tensor("
                  "shape=[1, 2], dtype=Float32, value=", "[[ 0.00000000e+00  1.00000000e+00]])) "
                  "primitive_attrs: {n: I64(2)} cnode_primal_attrs: {" + attributes + "}",
                  "      : (<Tensor[Float32], (3, 4)>) -> (<Tensor[Float32], (3, 4)>)",
                  "      : (Tensor) -> (Tensor)",
                  f"      # Fullname with scope: ({name})",
                  f"      # In file net.py:{i}~9, 4~20/    y = a / b, \"{i}\"/",
                  f"      # In file ✓.py:{i}/    return y # one/<~~This line of code can be "
                  "shared by multiple nodes, and may be duplicated./"]
        if "forward" in attributes:
            lines += ["      # Corresponding forward node candidate:",
                      "      # In file net.py:1, 4~20/    x = 1/"]
    return "\n".join([*lines, "  Return(%0)", "      : (<null>)",
                      "      # Fullname with scope: (Default/Return-op90)", "}", "# Order:",
                      "#   1: @kernel_graph0:CNode_9{[0]: ValueNode<Primitive> Return}", ""])


def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """Maps tmp_path/dump by both; the directories of results, which have copies of the dump."""
    (tmp_path / "graph.ir").write_text(graph_text())
    program = os.environ.get("PLUMB") or str(request.getfixturevalue("plumb"))
    commands = {"upstream": [upstream_python(), HERE / "run_upstream_code_mapping.py"],
                "own": [program, "msprobe", "-f", "mindspore", "code_mapping"]}
    for name, command in commands.items():
        shutil.copytree(tmp_path / "dump", tmp_path / name / "dump")
        done = run([*command, "--ir", tmp_path / "graph.ir", "--dump_data",
                    tmp_path / name / "dump", "--output", tmp_path / name], timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
    return tmp_path / "upstream", tmp_path / "own"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_same_lines_for_every_tensor(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    step = tmp_path / "dump/rank_0/Net/0/0"
    step.mkdir(parents=True)
    for name in (*KERNELS, "weight"):
        file = f"X.{name.replace('/', '_')}.0.0.1700000000000000.output.0.DefaultFormat.npy"
        np.save(step / file, np.zeros(3, "f4"))
    long_name = f"X.{KERNELS[1].replace('/', '_')}.0.0.1700000000000001.input.0.DefaultFormat.npy"
    np.save(step / "4711.npy", np.zeros(3, "f4"))
    (step / "mapping.csv").write_text(f"4711.npy,{long_name}\n")
    theirs, ours = (
        {Path(row["File Path"]).name: (row["Code Stack"], row["Scope Name"])
         for row in rows(next(place.glob("code_mapping_*.csv")))}
        for place in both(request, tmp_path))
    assert len(theirs) == len(KERNELS) + 2 and sum(1 for code, _ in theirs.values() if code) == 6
    assert ours == theirs


def test_the_same_columns_of_statistics(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    step = tmp_path / "dump/rank_0/Net/0/0"
    step.mkdir(parents=True)
    header = ("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
              "Max Value,Min Value")
    lines = [f'X,{name.replace("/", "_")},0,0,{i},output,0,12,float32,"(3)",{i}.5,-1.5,'
             for i, name in enumerate((*KERNELS, "weight"))]
    (step / "statistic.csv").write_text("\n".join([header, *lines]) + "\n")
    theirs, ours = both(request, tmp_path)
    place = Path("dump/rank_0/Net/0/0")
    expected = rows(theirs / place / "statistic.csv")
    found = rows(ours / place / "statistic_code_mapping.csv")
    assert len(found) == len(expected) == len(lines)
    for row, upstream in zip(found, expected, strict=True):
        assert {key: row[key] for key in upstream if not key.startswith("Unnamed")} == {
            key: value for key, value in upstream.items() if not key.startswith("Unnamed")}
