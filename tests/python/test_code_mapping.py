"""plumb code_mapping on constructed graphs and trees."""

from __future__ import annotations

import csv
import os
import pathlib
import subprocess
import time

import numpy as np
import pytest
from graph_dumps import HEADER
from recording import PLUMB


def node(full_name: str, line: str, attributes: str = "") -> str:
    """A node as MindSpore 2.10 writes it."""
    return (f"  %1(CNode_1) = PrimFunc_X(%0) cnode_primal_attrs: {{{attributes}}}\n"
            "      : (<Tensor[Float32], (3)>) -> (<Tensor[Float32], (3)>)\n"
            f"      # Fullname with scope: ({full_name})\n"
            f"      # In file net.py:{line}, 4~9/    y = {line}, \"x\"/\n")


GRAPH = ("# IR entry: @f\n\nsubgraph @20_4_✓__main___(%para1_x) {\n"
         + node("Default/net/Sub-op0", "8", 'unique_id: "5"') + node("Default/net/Add-op1", "9")
         + node("Default/net/Add-op10", "10")
         + node("Gradients/Default/Sub-op2", "99", 'forward_unique_id: "5"')
         + "  %3(CNode_3) = call @g(%1)\n      : (<Tensor>) -> (<Tensor>)\n"
         "      # Scope: (Default)\n"
         "  Return(%3)\n      # Fullname with scope: (Default/Return-op0)\n}\n")


@pytest.fixture
def graph(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "graph_build_0.ir"
    path.write_text(GRAPH)
    return path


def kernel_file(name: str, slot: int = 0) -> str:
    return f"X.{name}.0.0.1700000000000000.output.{slot}.DefaultFormat.Float32.npy"


def run(*words: object, status: int = 0, **options: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([PLUMB, "code_mapping", *map(str, words)], text=True,
                          capture_output=True, timeout=120, check=False, **options)
    assert done.returncode == status, done.stderr
    return done


def rows(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def code(line: str) -> str:
    return f'In file net.py:{line}, 4~9/    y = {line}, "x"'


def test_tensors_have_the_lines_of_their_kernel(graph: pathlib.Path,
                                                tmp_path: pathlib.Path) -> None:
    step = tmp_path / "dump/rank_0/Net/0/0"
    step.mkdir(parents=True)
    names = ("Default_net_Sub-op0", "Default_net_Add-op1", "Default_net_Add-op10", "Add-op10",
             "Gradients_Default_Sub-op2", "w", "Default_Add-op3")
    for name in names:
        np.save(step / kernel_file(name), np.zeros(3, "f4"))
    done = run("--ir", graph, "--dump_data", tmp_path / "dump", "--output", tmp_path / "out")
    (table,) = (tmp_path / "out").glob("code_mapping_*.csv")
    assert done.stdout == f"7 tensors: 5 with a kernel of the graph\n  {table}\n"
    assert table.read_bytes().startswith(b"File Path,Code Stack,Scope Name,Match\n")
    found = rows(table)
    assert [row["File Path"] for row in found] == sorted(str(path) for path in step.iterdir())
    by_name = {pathlib.Path(row["File Path"]).name.split(".")[1]: row for row in found}
    expected = {"Default_net_Sub-op0": ("8", "Default/net/Sub-op0", "exact"),
                "Default_net_Add-op1": ("9", "Default/net/Add-op1", "exact"),
                "Default_net_Add-op10": ("10", "Default/net/Add-op10", "exact"),
                "Add-op10": ("10", "Default/net/Add-op10", "part"),
                "Gradients_Default_Sub-op2": ("8", "Gradients/Default/Sub-op2", "exact")}
    for name in names:
        row = by_name[name]
        line, scope, match = expected.get(name, ("", "", "none"))
        assert row["Code Stack"] == (code(line) if line else ""), name
        assert (row["Scope Name"], row["Match"]) == (scope, match)


def test_one_file_and_files_with_numbers_for_names(graph: pathlib.Path,
                                                   tmp_path: pathlib.Path) -> None:
    step = tmp_path / "step"
    step.mkdir()
    for number in ("11", "12"):
        np.save(step / f"{number}.npy", np.zeros(3, "f4"))
    (step / "mapping.csv").write_text(f"11.npy,{kernel_file('Default_net_Add-op1')}\n")
    done = run("--ir", graph, "--dump_data", step / "11.npy", cwd=tmp_path)
    (table,) = tmp_path.glob("code_mapping_*.csv")
    assert [row["Scope Name"] for row in rows(table)] == ["Default/net/Add-op1"]
    assert done.stderr == ""
    table.unlink()
    done = run("--ir", graph, "--dump_data", step, cwd=tmp_path)
    (table,) = tmp_path.glob("code_mapping_*.csv")
    assert [row["Match"] for row in rows(table)] == ["exact", "none"]
    assert "12.npy: " in done.stderr and "does not name this file" in done.stderr


def test_tables_get_columns_in_a_copy(graph: pathlib.Path, tmp_path: pathlib.Path) -> None:
    step = tmp_path / "dump/rank_0/Net/0/3"
    step.mkdir(parents=True)
    text = (HEADER + "\nSub,Default_net_Sub-op0,0,0,1733905446819790,input,0,4,float32,\"()\","
            "3,-nan,1.50,null,\nAdd,Default/net/Add-op10,0,0,1733905446819791,output,0,4,float32,"
            "\"(2,3)\",-3,inf,1e-07,0.1,\n")
    (step / "statistic.csv").write_text(text)
    for _ in range(2):
        done = run("--ir", graph, "--dump_data", tmp_path / "dump", "--output", tmp_path)
        assert done.stdout == ("2 tensors: 2 with a kernel of the graph\n"
                               f"  {step}/statistic_code_mapping.csv\n")
    assert (step / "statistic.csv").read_text() == text
    header, first, second = list(csv.reader((step / "statistic_code_mapping.csv").open()))
    assert header == [*HEADER.split(","), "Code Stack", "Scope Name", "Match"]
    assert first[9:] == ["()", "3", "-nan", "1.50", "null", code("8"), "Default/net/Sub-op0",
                         "exact"]
    assert second[9:] == ["(2,3)", "-3", "inf", "1e-07", "0.1", code("10"),
                          "Default/net/Add-op10", "exact"]


def test_several_graphs_and_kernels_of_one_name(graph: pathlib.Path,
                                                tmp_path: pathlib.Path) -> None:
    other = tmp_path / "graph_build_1.ir"
    other.write_text("subgraph @g() {\n" + node("Default/net_Add-op1", "70")
                     + node("Default/Mul-op7", "71") + "}\n")
    for name in ("Default_net_Add-op1", "Default_Mul-op7"):
        np.save(tmp_path / kernel_file(name), np.zeros(3, "f4"))
    done = run("--ir", graph, other, "--dump_data", tmp_path, "--output", tmp_path / "out")
    assert done.stdout.startswith("2 tensors: 2 with a kernel of the graph, 1 of them with several")
    (table,) = (tmp_path / "out").glob("*.csv")
    one, several = rows(table)
    assert (one["Match"], one["Code Stack"]) == ("exact", code("71"))
    assert several["Match"] == "ambiguous"
    assert several["Scope Name"] == "Default/net/Add-op1\nDefault/net_Add-op1"
    assert several["Code Stack"] == f"{code('9')}\n{code('70')}"


def test_a_damaged_table_leaves_everything(graph: pathlib.Path, tmp_path: pathlib.Path) -> None:
    table = tmp_path / "statistic.csv"
    for text, problem in (("", "no header"), (HEADER + "\na,b\n", "line 2: 2 cells")):
        table.write_text(text)
        done = run("--ir", graph, "--dump_data", table, status=5)
        assert f"{table}: {problem}" in done.stderr and done.stderr.count("\n") == 1
        assert sorted(os.listdir(tmp_path)) == [graph.name, "statistic.csv"]


def test_large_graphs_take_seconds(tmp_path: pathlib.Path) -> None:
    """20 MB of text and 2000 tensors; 200 MB and 50,000 must stay below ten seconds."""
    count = 50_000
    with (tmp_path / "large.ir").open("w") as file:
        file.write("subgraph @f() {\n")
        file.writelines(node(f"Default/net/layer{i}/MatMul-op{i}", str(i)) + "      # In file "
                        f"net.py:{i + 1}, 4~9/{'    x = self.layer(x)' * 8}/\n"
                        for i in range(count))
        file.write("}\n")
    step = tmp_path / "step"
    step.mkdir()
    for i in range(0, count, 25):
        (step / kernel_file(f"Default_net_layer{i}_MatMul-op{i}")).touch()
    begin = time.monotonic()
    done = run("--ir", tmp_path / "large.ir", "--dump_data", step, "--output", tmp_path)
    assert done.stdout.startswith("2000 tensors: 2000 with a kernel")
    assert time.monotonic() - begin < 10
