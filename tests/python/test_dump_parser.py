"""DumpParser and the index of static-graph dumps on constructed trees."""

from __future__ import annotations

import csv
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from device_dumps import Dump, fractal_nz, nc1hwc0, new_record, plain, record_file
from recording import PLUMB

from plumbline import CorruptDataError
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
    assert DumpParser(str(tree)).convert_all_data_to_host() == [], "arrays are there already"
    for path in tree.rglob("*.npy"):
        path.unlink()
    with pytest.raises(FileNotFoundError, match="no file of a device"):
        DumpParser(str(tree)).convert_all_data_to_host()
    settings.write_text('{"common_dump_settings": {"net_name": "Net"}}')
    with pytest.raises(ValueError, match="no dump configuration"):
        DumpParser(str(tree))


def device_tree(tree: pathlib.Path) -> dict[str, np.ndarray]:
    """Makes the dump an asynchronous one of two iterations; the arrays by what is to be their
    files' names below rank_0/Net."""
    rank = tree / "rank_0"
    (rank / ".dump_metadata/data_dump.json").write_text(json.dumps(
        {"common_dump_settings": {"net_name": "Net", "input_output": 0, "file_format": "bin"}}))
    (rank / ".dump_metadata/config.json").write_text(json.dumps({"device_target": "Ascend"}))
    for path in tree.rglob("*.npy"):
        path.unlink()
    arrays = {}
    for step in (3, 4):
        random = np.random.default_rng(step)
        images = random.standard_normal((2, 18, 3, 5)).astype("f4")
        matrix = random.standard_normal((20, 17)).astype("f2")
        vector = random.standard_normal(7).astype("f4")
        for i, name in enumerate(KERNELS):
            place = f"0/{step}/Conv2D.{name.replace('/', '_')}.{i}.10.163659579473109{i}"
            Dump([nc1hwc0(images), plain(vector)], [fractal_nz(matrix)],
                 op_name=name).write(rank / "Net" / place)
            arrays |= {f"{place}.input.0.NCHW.npy": images, f"{place}.input.1.ND.npy": vector,
                       f"{place}.output.0.NCHW.npy": matrix}
    return arrays


def test_files_of_devices_become_arrays_of_the_host(tree: pathlib.Path) -> None:
    arrays = device_tree(tree)
    net = tree / "rank_0/Net"
    record_file(new_record()).write(net / "0/3/Opdebug.Node_OpDebug.7.10.1636595794731200")
    kept = net / "0/3/kept.npy"
    kept.write_bytes(b"of somebody else")
    before = sorted(str(path) for path in tree.rglob("*"))
    parser = DumpParser(str(tree))
    assert parser.convert_all_data_to_host() == []
    for name, expected in arrays.items():
        found = np.load(net / name)
        assert found.dtype == expected.dtype and np.array_equal(found, expected), name
        assert (net / name).stat().st_mode & 0o777 == 0o400
    record = "0/3/Opdebug.Node_OpDebug.7.10.1636595794731200.output.0.json"
    assert json.loads((net / record).read_text())
    added = {str(path) for path in tree.rglob("*")} - set(before)
    assert added == {str(net / name) for name in [*arrays, record]}, "nothing else is left"
    assert kept.read_bytes() == b"of somebody else"
    # The kernels are found again by their full names.
    kernel = next(iter(KERNELS))
    files = parser.get_tensor_files("self.conv1")[kernel].to_dict()["rank_0"]
    start = f"Conv2D.{kernel.replace('/', '_')}.0.10.1636595794731090"
    assert files[4] == {"input": [str(net / f"0/4/{start}.input.0.NCHW.npy"),
                                  str(net / f"0/4/{start}.input.1.ND.npy")],
                        "output": [str(net / f"0/4/{start}.output.0.NCHW.npy")]}
    # Once more: what an earlier call wrote is written anew.
    wrong = net / next(iter(arrays))
    wrong.unlink()
    wrong.write_bytes(b"cut")
    assert parser.convert_all_data_to_host() == []
    assert np.array_equal(np.load(wrong), next(iter(arrays.values())))


def test_damaged_device_files_are_listed(tree: pathlib.Path) -> None:
    arrays = device_tree(tree)
    first = next(iter(arrays)).removesuffix(".input.0.NCHW.npy")
    path = tree / "rank_0/Net" / first
    path.write_bytes(path.read_bytes()[:-5])
    other = tree / "rank_0/Net/0/4/Add.none.1.2.1636595794731099"
    other.write_bytes(b"")
    failed = DumpParser(str(tree)).convert_all_data_to_host()
    assert [line.split("\t")[0] for line in failed] == [f"{path},output:0", str(other)]
    assert "cut" in failed[0]
    summary = tree / "convert_failed_files_summary.txt"
    assert summary.read_text().splitlines() == failed
    # Everything in front of the cut, and every other file.
    missing = {f"{first}.output.0.NCHW.npy"}
    for name, expected in arrays.items():
        if name not in missing:
            assert np.array_equal(np.load(tree / "rank_0/Net" / name), expected)
    assert not (tree / "rank_0/Net" / missing.pop()).exists()
    path.unlink()
    other.unlink()
    assert DumpParser(str(tree)).convert_all_data_to_host() == []
    assert not summary.exists()


def test_device_files_with_numbers_for_names(tree: pathlib.Path) -> None:
    """mapping.csv has their names, which are too long for those of the arrays, too."""
    device_tree(tree)
    place = tree / "rank_0/Net/0/3"
    for path in place.iterdir():
        path.unlink()
    long_name = f"Conv2D.{'Default_' * 40}Conv2D-op1.0.10.1636595794731090"
    values = np.arange(24, dtype="f4").reshape(1, 2, 3, 4)
    Dump([], [nc1hwc0(values)]).write(place / "4711")
    table = place / "mapping.csv"
    table.write_text(f"4711,{long_name}\n")
    table.chmod(0o400)
    assert DumpParser(str(tree)).convert_all_data_to_host() == []
    rows = dict(line.split(",") for line in table.read_text().splitlines())
    [array] = place.glob("*.npy")
    assert rows == {"4711": long_name, array.name: f"{long_name}.output.0.NCHW.npy"}
    assert np.array_equal(np.load(array), values)


def test_trees_of_whole_graphs_are_converted(tree: pathlib.Path) -> None:
    """{path}/{time}/{device}/{model}/{model id}/{iteration}, beside rank_0/.dump_metadata."""
    device_tree(tree)
    for path in (tree / "rank_0/Net").rglob("*.1*"):
        path.unlink()
    place = tree / "20260101010101/0/kernel_graph_0/1/2"
    values = np.arange(340, dtype="f2").reshape(20, 17)
    name = "MatMul.Default_fc_MatMul-op7.7.10.1636595794731099"
    Dump([fractal_nz(values)]).write(place / name)
    assert DumpParser(str(tree)).convert_all_data_to_host() == []
    assert np.array_equal(np.load(place / f"{name}.input.0.NCHW.npy"), values)


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


# Prints the largest memory, in MiB, of the program it runs.
MEASURED = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
sys.exit(status)
"""


def test_a_long_table_is_read_in_little_memory(tmp_path: pathlib.Path) -> None:
    """A pass over a table held all of its cells, ten times its size; an index did, too."""
    place = tmp_path / "rank_0/Net/0/0"
    place.mkdir(parents=True)
    row = 'MatMul,Default_net_layer_MatMul-op{},0,0,{},output,0,4096,float32,"(32,32)",1.5,-1.5,' \
          "0.25,8.125,\n"
    with (place / "statistic.csv").open("w") as table:
        table.write("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
                    "Max Value,Min Value,Avg Value,L2Norm Value\n")
        table.writelines(row.format(i, 1700000000000000 + i) for i in range(300_000))
    size = (place / "statistic.csv").stat().st_size >> 20
    assert size > 25
    for words, limit in ((["dump-config", "finish", tmp_path], 30),
                         (["inspect", tmp_path, "--index", tmp_path / "index.csv"], 7 * size)):
        done = subprocess.run([sys.executable, "-c", MEASURED, PLUMB, *words], text=True,
                              capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) < limit, f"{words}: {done.stdout} MiB for {size} MiB"


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


def test_a_workbook_below_a_name_that_is_not_utf8(tree: pathlib.Path,
                                                  tmp_path: pathlib.Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    root = pathlib.Path(os.fsdecode(os.fsencode(tmp_path) + b"/run\xff"))
    tree.rename(root)
    path = pathlib.Path(DumpParser(str(root)).export_xlsx(str(root / "out")))
    assert path.parent == root / "out"
    with path.open("rb") as file:
        assert openpyxl.load_workbook(file)["info"]["B2"].value == f"{tmp_path}/run\ufffd"


def test_a_damaged_graph_gives_no_workbook(tree: pathlib.Path, tmp_path: pathlib.Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert pathlib.Path(DumpParser(str(tree)).export_xlsx()).parent == tmp_path
    (tree / "rank_0/graphs/ms_output_trace_code_graph_0.pb").write_bytes(whole_graph()[:-3])
    with pytest.raises(CorruptDataError, match=r"graph_0\.pb: byte"):
        DumpParser(str(tree)).export_xlsx(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
