"""DumpParser and the index of static-graph dumps on constructed trees."""

from __future__ import annotations

import csv
import json
import pathlib
import subprocess

import numpy as np
import pytest
from recording import PLUMB

from plumbline import CorruptDataError, UnsupportedError
from plumbline.graph_dumps import DumpParser, RankDirNotFound

KERNELS = {"Default/net/conv1-Conv2d/Conv2D-op1": "# In file net.py:12/    x = self.conv1(x)/\n",
           "Default/net/conv2-Conv2d/Conv2D-op2": "# In file net.py:13/    x = self.conv2(x)/\n",
           "Default/conv1_like-op3": "# In file net.py:14/    return relu(x)/\n"}


def field(number: int, text: bytes) -> bytes:
    """One field of a protocol buffer message."""
    size = len(text)
    prefix = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return bytes([number << 3 | 2]) + prefix + text


def graph_pb() -> bytes:
    """A ModelProto with the kernels."""
    nodes = b"".join(
        field(1, field(2, str(i).encode()) + field(3, b"Conv2D") + field(8, name.encode())
              + field(9, source.encode()))
        for i, (name, source) in enumerate(KERNELS.items()))
    return field(4, nodes + field(6, b"0"))


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
