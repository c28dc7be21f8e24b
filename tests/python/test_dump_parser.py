"""DumpParser and the index of static-graph dumps on constructed trees."""

from __future__ import annotations

import csv
import json
import pathlib
import re
import subprocess

import numpy as np
import pytest
from recording import PLUMB

from plumbline import CorruptDataError, UnsupportedError
from plumbline.graph_dumps import DumpParser, RankDirNotFound

KERNELS = {"Default/net/conv1-Conv2d/Conv2D-op1": "# In file net.py:12/    x = self.conv1(x)/\n",
           "Default/net/conv2-Conv2d/Conv2D-op2": "# In file net.py:13/    x = self.conv2(x)/\n",
           "Default/conv1_like-op3": "# In file net.py:14/    return relu(x)/\n"}


def graph_pb() -> bytes:
    """A ModelProto with the kernels."""
    nodes = b"".join(
        operator(str(i), "Conv2D", name, [], part(9, source.encode()))
        for i, (name, source) in enumerate(KERNELS.items()))
    return part(4, nodes + part(6, b"0"))


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A synchronous dump of two iterations on a GPU."""
    rank = tmp_path / "dump/rank_0"
    for name in (".dump_metadata", "graphs", "execution_order", "Net/0/3", "Net/0/4"):
        (rank / name).mkdir(parents=True)
    (rank / ".dump_metadata/data_dump.json").write_text(json.dumps(
        {"common_dump_settings": {"net_name": "Net", "input_output": 0},
         "e2e_dump_settings": {"enable": True}}))
    (rank / ".dump_metadata/config.json").write_text(
        json.dumps({"device_target": "GPU", "ms_version": "2.3.0"}))
    (rank / "graphs/ms_output_trace_code_graph_0.pb").write_bytes(graph_pb())
    (rank / "execution_order/ms_execution_order_graph_0.csv").write_text(
        "\n".join(["NodeExecutionOrder-FullNameWithScope", *KERNELS]) + "\n")
    for step in (3, 4):
        for i, name in enumerate(KERNELS):
            for io in ("input", "output"):
                file = f"Conv2D.{name.replace('/', '_')}.0.0.{100 + i}.{io}.0.DefaultFormat.npy"
                np.save(rank / f"Net/0/{step}" / file, np.zeros((2, 3), "f4"))
    return tmp_path / "dump"


def test_kernels_are_found_by_their_source(tree: pathlib.Path) -> None:
    parser = DumpParser(str(tree))
    found = parser.get_tensor_files("SELF.conv1")
    assert list(found) == ["Default/net/conv1-Conv2d/Conv2D-op1"], "the trace counts, not the name"
    ranks = found["Default/net/conv1-Conv2d/Conv2D-op1"].to_dict()
    assert list(ranks) == ["rank_0"] and sorted(ranks["rank_0"]) == [3, 4]
    place = tree / "rank_0/Net/0/3"
    start = "Conv2D.Default_net_conv1-Conv2d_Conv2D-op1.0.0.100"
    assert ranks["rank_0"][3] == {
        "input": [str(place / f"{start}.input.0.DefaultFormat.npy")],
        "output": [str(place / f"{start}.output.0.DefaultFormat.npy")]}
    assert len(parser.get_tensor_files(r"self\.conv\d", use_regex=True)) == 2
    assert sorted(parser.get_tensor_files("conv2", iterations=[4]).popitem()[1]
                  .to_dict()["rank_0"]) == [4]
    assert parser.get_tensor_files("conv2", rank_ids=[1]) == {}
    assert parser.get_tensor_files("nothing of this kind") == {}


def test_wrong_use_says_what_is_wrong(tree: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(RankDirNotFound):
        DumpParser(str(tmp_path))
    with pytest.raises(RankDirNotFound):
        DumpParser(str(tmp_path / "missing"))
    parser = DumpParser(str(tree))
    with pytest.raises(ValueError, match="regular expression"):
        parser.get_tensor_files("[", use_regex=True)
    with pytest.raises(ValueError, match="synchronous"):
        parser.convert_all_data_to_host()
    graph = tree / "rank_0/graphs/ms_output_trace_code_graph_0.pb"
    graph.write_bytes(graph.read_bytes()[:-3])
    with pytest.raises(CorruptDataError, match=r"graph_0\.pb: byte"):
        parser.get_tensor_files("conv1")
    (tree / "rank_0/.dump_metadata/config.json").unlink()
    settings = tree / "rank_0/.dump_metadata/data_dump.json"
    settings.write_text('{"common_dump_settings": {"net_name": "Net", "input_output": 0}}')
    with pytest.raises(UnsupportedError):
        DumpParser(str(tree)).convert_all_data_to_host()
    settings.write_text('{"common_dump_settings": {"net_name": "Net"}}')
    with pytest.raises(ValueError, match="no dump configuration"):
        DumpParser(str(tree))


def test_index_is_a_table(tree: pathlib.Path, tmp_path: pathlib.Path) -> None:
    table = tmp_path / "index.csv"
    done = subprocess.run([PLUMB, "inspect", tree, "--index", table], text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tree}: 12 tensors\nfile: {table}\n"
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert list(rows[0].values())[:9] == ["0", "0", "3", next(iter(KERNELS)), "Conv2D", "input",
                                          "0", "float32", "[2,3]"]
    assert all(pathlib.Path(row["Path"]).is_file() for row in rows)


def test_rows_of_graphs_that_take_turns_stay_apart(tmp_path: pathlib.Path) -> None:
    """Tables of two graphs whose iterations ran in turn, each finished in its own file."""
    for graph, steps in ((0, (0, 2)), (1, (1, 3))):
        for step in steps:
            place = tmp_path / f"rank_0/Net/{graph}/{step}"
            place.mkdir(parents=True)
            np.save(place / f"Add.n{graph}.0.0.{step}.output.0.DefaultFormat.Float32.npy",
                    np.full(2, step, "f4"))
    for _ in range(2):
        done = subprocess.run([PLUMB, "dump-config", "finish", tmp_path], text=True,
                              capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        for graph, steps in ((0, (0, 2)), (1, (1, 3))):
            for step in steps:
                lines = (tmp_path / f"rank_0/Net/{graph}/{step}/statistic.csv").read_text()
                assert lines.splitlines()[1:] == [
                    f'Add,n{graph},0,0,{step},output,0,8,float32,"(2)",{step},{step},{step},'
                    f'{float(np.sqrt(2) * step):g},']


def test_a_killed_pass_leaves_whole_tables(tmp_path: pathlib.Path) -> None:
    """SIGKILL at several moments; then every row is there and every tensor that is left loads."""
    place = tmp_path / "rank_0/Net/0/0"
    place.mkdir(parents=True)
    for i in range(400):
        np.save(place / f"Add.n{i}.0.0.{i}.output.0.DefaultFormat.Float32.npy", np.full(8, i, "f4"))
    command = [PLUMB, "dump-config", "finish", tmp_path, "--drop-tensors", "--threads", "4"]
    for milliseconds in (5, 8, 11, 14, 17, 20, 25):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(milliseconds / 1000)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for path in place.glob("*.npy"):
            assert np.load(path).shape == (8,)
        table = place / "statistic.csv"
        if table.exists():
            header, *rows = table.read_text().splitlines()
            assert all(row.count(",") == header.count(",") + 1 for row in rows)
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert not list(place.glob("*.npy"))
    names = [line.split(",")[1] for line in (place / "statistic.csv").read_text().splitlines()[1:]]
    assert names == [f"n{i}" for i in range(400)]


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(key: int, value: int) -> bytes:
    return varint(key << 3) + varint(value)


def part(key: int, content: bytes) -> bytes:
    return varint(key << 3 | 2) + varint(len(content)) + content


def tensor(dtype: int, *sizes: int) -> bytes:
    """A TypeProto of a tensor."""
    shape = b"".join(part(1, number(1, size)) for size in sizes)
    return number(1, 14) + part(2, number(1, dtype) + part(2, shape))


def operator(name: str, op_type: str, full_name: str, inputs: list[str], *fields: bytes) -> bytes:
    return part(1, b"".join(part(1, part(1, one.encode())) for one in inputs)
                + part(2, name.encode()) + part(3, op_type.encode())
                + part(8, full_name.encode()) + b"".join(fields))


TRACE = b"# In file net.py(12)/    x = self.fc(x)/\n#-In file a:b.py:3, 4~9/  y/\n"


def whole_graph() -> bytes:
    pair = number(1, 31) + part(3, part(1, tensor(11, 2, 3)) + part(1, number(1, 5)))
    names = number(1, 32) + part(18, number(1, 13) + part(7, b"a"))
    return part(4, b"".join([
        operator("1", "Load", "Default/Load-op7", ["w"], part(6, tensor(11, 3))),
        operator("2", "MatMul", "Default/fc/MatMul-op12", ["x", "1", "c0", "free"],
                 part(6, pair), part(9, TRACE), part(5, part(1, b"names") + part(2, names))),
        operator("3", "MatMul", "Default/fc/MatMul-op2", ["2"], part(6, tensor(10)),
                 part(9, TRACE)),
        operator("4", "make_tuple", "Default/make_tuple-op1", ["2", "3"]),
        part(2, b"kernel_graph_0"),
        part(3, part(1, b"x") + part(2, tensor(11, 2, 3))),
        part(3, part(1, b"w") + part(2, tensor(11, 3))),
        part(5, part(1, b"c0") + part(2, number(1, 5) + number(3, 4))),
        part(5, part(1, b"c1") + part(2, number(1, 14) + part(8, number(4, 2) + number(5, 11)))),
        part(5, part(1, b"c2") + part(2, b"")), part(6, b"0")]))


PLACE = ("0", "kernel_graph_0")
STACK = "#   net.py:12  x = self.fc(x)\n# - a:b.py:3, 4~9  y"
OPERATORS = [
    ("operator", "input", "input_dtype", "input_shape", "output_dtype", "output_shape",
     "downstream", "name", "attrs", "scope", "full_name", "rank_id", "graph_name", "stack"),
    ("Load_1", "w", "float32", "(3,)", "float32", "(3,)", "MatMul_12", "1", "{}", "Default",
     "Default/Load-op7", *PLACE, None),
    ("MatMul_12", "x\nLoad_1\nc0\nfree", "float32\nfloat32\n-\n-", "(2, 3)\n(3,)\n-\n-",
     "float32\nint64", "(2, 3)\n-", "MatMul_2\nmake_tuple_1", "2", "{'names': ['a']}",
     "Default/fc", "Default/fc/MatMul-op12", *PLACE, STACK),
    ("MatMul_2", "MatMul_12", "tuple", "-", "float16", "()", "make_tuple_1", "3", "{}",
     "Default/fc", "Default/fc/MatMul-op2", *PLACE, STACK),
    ("make_tuple_1", *[None] * 10, *PLACE, None),
    ("Add_3", None, None, None, None, None, None, "1", "{}", "Default", "Default/Add-op3",
     "0", "kernel_graph_10", None)]


def test_graphs_become_a_workbook(tree: pathlib.Path, tmp_path: pathlib.Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    graphs = tree / "rank_0/graphs"
    (graphs / "ms_output_trace_code_graph_0.pb").write_bytes(whole_graph())
    (graphs / "ms_output_trace_code_graph_10.pb").write_bytes(part(4, operator(
        "1", "Add", "Default/Add-op3", []) + part(2, b"kernel_graph_10")))
    path = pathlib.Path(DumpParser(str(tree)).export_xlsx(str(tmp_path / "new/out")))
    assert path.parent == tmp_path / "new/out"
    assert re.fullmatch(r"dump_\d{8}_\d{6}\.xlsx", path.name)
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["info", "constant", "parameter", "operator", "statistics", "source"]
    cells = {name: [tuple(row) for row in book[name].iter_rows(values_only=True)]
             for name in book.sheetnames}
    assert cells["info"] == [("argument", "value"), ("dump-dir", str(tree))]
    assert cells["constant"] == [
        ("name", "value", "downstream", "rank_id", "graph_name"),
        ("c0", "4", "MatMul_12", *PLACE), ("c1", "TENSOR", None, *PLACE),
        ("c2", "NONE", None, *PLACE)]
    assert cells["parameter"] == [
        ("name", "output_dtype", "output_shape", "downstream", "rank_id", "graph_name"),
        ("x", "float32", "(2, 3)", "MatMul_12", *PLACE), ("w", "float32", "(3,)", "Load_1", *PLACE)]
    assert cells["operator"] == OPERATORS
    assert cells["statistics"] == [("operator", "count"), ("Add", 1), ("Load", 1), ("MatMul", 2),
                                   ("make_tuple", 1)]
    assert cells["source"] == [
        ("stack", "operator", "full_name", "rank_id", "graph_name"),
        (STACK, "MatMul_2", "Default/fc/MatMul-op2", *PLACE),
        (STACK, "MatMul_12", "Default/fc/MatMul-op12", *PLACE)]
    sheet = book["operator"]
    assert sheet.freeze_panes == "B2" and sheet.auto_filter.ref == "A1:N6"
    assert sheet["C1"].font.b and sheet["C1"].fill.fgColor.rgb == "FFD9D9D9"
    assert sheet["B3"].alignment.wrap_text and not sheet["B2"].alignment.wrap_text


def test_a_damaged_graph_gives_no_workbook(tree: pathlib.Path, tmp_path: pathlib.Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert pathlib.Path(DumpParser(str(tree)).export_xlsx()).parent == tmp_path
    (tree / "rank_0/graphs/ms_output_trace_code_graph_0.pb").write_bytes(whole_graph()[:-3])
    with pytest.raises(CorruptDataError, match=r"graph_0\.pb: byte"):
        DumpParser(str(tree)).export_xlsx(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
