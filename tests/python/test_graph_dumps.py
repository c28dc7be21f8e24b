"""`plumb compare` on static-graph dumps of MindSpore: recorded by MindSpore 2.10, compared cell by
cell with what release 1.2.2 wrote about the same files (row 22 of the acceptance list).
"""

from __future__ import annotations

import csv
import json
import math
import pathlib
import shutil
import subprocess

import numpy as np
import openpyxl
import pytest
import rank_dumps
from graph_dumps import DATA, as_device_layout, unpack, write_statistics
from recording import PLUMB

CULPRIT = "Default_network-WithLossCell__backbone-Net_Mul-op0.Mul.0.forward"


def compare(*words: object, out: pathlib.Path, fmt: str = "csv") -> subprocess.CompletedProcess:
    return subprocess.run([PLUMB, "compare", *map(str, words), "-o", out, "--format", fmt],
                          text=True, capture_output=True, timeout=60, check=False)


def rows_of(out: pathlib.Path, name: str = "compare_result_0_0_*.csv") -> list[dict[str, str]]:
    [path] = out.glob(name)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    work = tmp_path_factory.mktemp("graphs")
    made = {name: unpack(name, work) for name in ("golden", "target")}
    for name in ("golden", "target"):
        made[f"{name}_csv"] = write_statistics(made[name], work / f"{name}_csv")
        made[f"{name}_device"] = as_device_layout(made[name], work / f"{name}_device")
    return made


def upstream(name: str) -> list[dict[str, object]]:
    sheet = openpyxl.load_workbook(DATA / name).active
    header, *rows = sheet.iter_rows(values_only=True)
    return [dict(zip(header, row, strict=True)) for row in rows]


def same(ours: str, theirs: object, relative: float, absolute: float = 1e-12) -> bool:
    if theirs is None or ours == "":
        return theirs in (None, "") and ours == ""
    if isinstance(theirs, bool) or (isinstance(theirs, str) and not theirs.endswith("%")):
        return ours == str(theirs)
    number = float(str(theirs).removesuffix("%"))
    mine = float(ours.removesuffix("%"))
    return mine == number or math.isclose(mine, number, rel_tol=relative, abs_tol=absolute)


def test_tensors_as_upstream(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    done = compare(dumps["target"], dumps["golden"], out=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"first wrong call: {CULPRIT}\n")
    theirs = {pathlib.Path(str(row["NPU Name"])).name: row for row in upstream("upstream_npy.xlsx")}
    ours = {pathlib.Path(row["NPU Name"]).name: row for row in rows_of(tmp_path)}
    assert set(ours) == set(theirs)
    some = next(iter(theirs.values()))
    assert list(next(iter(ours.values())))[:-2] == list(some), "the same columns, then two of ours"
    for name, row in theirs.items():
        mine = ours[name]
        assert all(pathlib.Path(mine[side]).is_file() for side in ("NPU Name", "Bench Name"))
        assert pathlib.Path(mine["Bench Name"]).name == pathlib.Path(str(row["Bench Name"])).name
        one_element = row["NPU Tensor Shape"] in ("()", "(1,)")
        for column, value in row.items():
            if column in ("NPU Name", "Bench Name", "Err_message"):
                continue
            if row["NPU Dtype"] == "bool" and column.endswith(("mean", "l2norm")):
                assert mine[column] == "", "truth values have no mean"
                continue
            if one_element and value in (None, "None", "unsupported"):
                continue  # repaired: tensors of one element are judged
            # Upstream measures in the tensor's own precision.
            close = 1e-4 if column == "MaxRelativeErr" else 2e-6
            assert same(mine[column], value, close), (name, column, mine[column], value)


def test_statistics_as_upstream(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    done = compare(dumps["target_csv"], dumps["golden_csv"], out=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"first wrong call: {CULPRIT}\n")
    theirs = upstream("upstream_statistic.xlsx")
    ours = rows_of(tmp_path)
    assert len(ours) == len(theirs)
    assert list(ours[0])[:-2] == list(theirs[0])
    # Upstream's key has no slot: rows of one kernel are told apart by their values.
    by_key: dict[str, list[dict[str, str]]] = {}
    for row in ours:
        key, path = row["NPU Name"].rsplit(" ", 1)
        assert path.endswith("rank_0/Net/0/0/statistic.csv")
        by_key.setdefault(key.rsplit(".", 1)[0], []).append(row)
    for row in theirs:
        candidates = by_key[str(row["NPU Name"]).rsplit(" ", 1)[0]]
        # Upstream reads the six digits as float32, and has "0%" wherever golden is not positive.
        columns = [name for name in row if name not in ("NPU Name", "Bench Name", "Err_message")
                   and not (name.endswith("RelativeErr") and row[name] == "0%")]
        absolute = {name: 1e-4 if "RelativeErr" in name else 1e-6 for name in columns}
        assert any(all(same(mine[name], row[name], 1e-6, absolute[name]) for name in columns)
                   for mine in candidates), row


def test_layouts_say_the_same(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    done = compare(dumps["target_device"], dumps["golden_device"], out=tmp_path / "device")
    compare(dumps["target"], dumps["golden"], out=tmp_path / "host")
    assert done.stdout.startswith(f"first wrong call: {CULPRIT}\n")

    def contents(out: str) -> list[list[str]]:
        return [list(row.values())[2:] for row in rows_of(tmp_path / out)]

    assert contents("device") == contents("host")
    mixed = compare(dumps["target_device"], dumps["golden"], out=tmp_path / "mixed")
    assert mixed.stdout.startswith(f"first wrong call: {CULPRIT}\n")


def with_steps(root: pathlib.Path, to: pathlib.Path, ranks: int, steps: list[int]) -> pathlib.Path:
    for rank in range(ranks):
        for step in steps:
            shutil.copytree(root / "rank_0/Net/0/0", to / f"rank_{rank}/Net/0/{step}")
    return to


def test_ranks_and_steps_are_chosen(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    target = with_steps(dumps["target"], tmp_path / "target", 2, [0, 5])
    golden = with_steps(dumps["golden"], tmp_path / "golden", 2, [0, 5, 7])
    for path in (golden / "rank_0", target / "rank_1/Net/0/5"):
        assert path.is_dir()
    request = tmp_path / "compare.json"
    for keys, expected in (({"rank_id": [1], "step_id": [5]}, {"1_5"}),
                           ({"rank_id": [], "step_id": [0]}, {"0_0", "1_0"})):
        request.write_text(json.dumps({"npu_path": str(target), "bench_path": str(golden), **keys}))
        out = tmp_path / "_".join(sorted(expected))
        done = subprocess.run(
            [PLUMB, "msprobe", "-f", "mindspore", "compare", "-i", request, "-o", out], text=True,
            capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert {path.name.split("_2")[0] for path in out.glob("*.xlsx")} == {
            f"compare_result_{place}" for place in expected}
        [book, *_] = out.glob("*.xlsx")
        assert openpyxl.load_workbook(book).sheetnames == ["Sheet1"]
    both = compare(target, golden, "--rank", "0", out=tmp_path / "newest")
    assert both.returncode == 3, "step 7 is on one side alone"
    assert f"first wrong call: step 0 rank 0 {CULPRIT}" in both.stdout
    none = compare(target, golden, "--rank", "4", out=tmp_path / "none")
    assert none.returncode == 3 and "no rank and step of these numbers" in none.stderr


def test_newest_columns(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    for kind in ("", "_csv"):
        out = tmp_path / f"out{kind}"
        done = subprocess.run(
            [PLUMB, "msprobe", "compare", "-tp", dumps[f"target{kind}"], "-gp",
             dumps[f"golden{kind}"], "-o", out], text=True, capture_output=True, timeout=60,
            check=False)
        assert done.returncode == 0, done.stderr
        row = next(row for row in rows_of(out) if "fc1-Dense_MatMul" in row["NPU Name"]
                   and "output" in row["NPU Name"])
        assert row["NPU Tensor Shape"] == "[5, 16]"
        if kind:
            assert row["NPU Name"].endswith("MatMul-op0.0.output.0")
            assert row["NPU CSV File"].endswith("statistic.csv")
        else:
            assert list(row)[16:18] == ["Cosine", "EucDist"]


def test_graphs_of_one_step_are_one(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Kernels of two graphs that ran in one step stand in one result, in order of time."""
    for side in ("target", "golden"):
        files = sorted((dumps[side] / "rank_0/Net/0/0").glob("*.npy"))
        for i, path in enumerate(files):
            place = tmp_path / side / "rank_0/Net" / str(int("Gradients" in path.name)) / "0"
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place / path.name)
            assert i < len(files)
    done = compare(tmp_path / "target", tmp_path / "golden", out=tmp_path / "out", fmt="csv,html")
    assert done.stdout.startswith(f"first wrong call: {CULPRIT}\n"), done.stderr
    rows = rows_of(tmp_path / "out")
    assert len(rows) == len(upstream("upstream_npy.xlsx"))
    assert all(pathlib.Path(row["NPU Name"]).is_file() for row in rows)


def test_six_digits_are_no_difference(dumps: dict[str, pathlib.Path],
                                      tmp_path: pathlib.Path) -> None:
    """Values that rounding alone moved to another sixth digit raise no alarm."""
    noisy = tmp_path / "noisy"
    random = np.random.default_rng(3)
    for path in dumps["golden"].rglob("*.npy"):
        values = np.load(path)
        if values.dtype == np.float32:
            values = values * (1 + 5e-8 * random.standard_normal(values.shape).astype("f4"))
        place = noisy / path.relative_to(dumps["golden"])
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, np.asarray(values))
    table = write_statistics(noisy, tmp_path / "noisy_csv")
    done = compare(table, dumps["golden_csv"], "--fail-on", "suspicious", out=tmp_path / "out")
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("no wrong call\n")


def test_samples_are_as_mindspore_writes_files(tmp_path: pathlib.Path) -> None:
    """The headers of recorded files follow the rule, and those of the samples made of them do."""
    root = unpack("golden", tmp_path)
    done = subprocess.run([PLUMB, "dump-config", "finish", root, "--sample-num", "8"], text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    [samples] = root.rglob("sample.json")
    cut_ones = json.loads(samples.read_text())["tensors"]
    assert cut_ones
    for path in root.rglob("*.npy"):
        values = np.load(path)
        assert values.shape == (8,) if path.name in cut_ones else values.size <= 8
        shape = "".join(f"{size}," for size in values.shape)
        text = f"{{'descr': '{values.dtype.str}', 'fortran_order': False, 'shape': ({shape}), }}"
        blanks = 64 - (10 + len(text) + 1) % 64
        data = path.read_bytes()
        assert data[10 : len(data) - values.nbytes].decode() == text + " " * blanks + "\n"


def cut(path: pathlib.Path) -> None:
    data = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(data[: len(data) - 5])


def test_damaged_tensor_is_a_row(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    target = tmp_path / "target"
    shutil.copytree(dumps["golden"], target)
    [victim] = target.rglob("MatMul*fc1-Dense*output.0*.npy")
    cut(victim)
    done = compare(target, dumps["golden"], "--fail-on", "unmatched", out=tmp_path / "out")
    assert done.returncode == 1
    assert "1 unreadable tensor file" in done.stdout
    [row] = [row for row in rows_of(tmp_path / "out") if row["NPU Name"] == str(victim)]
    assert row["Verdict"] == "not comparable" and row["Reason"] == "unreadable"
    assert row["Accuracy Reached or Not"] == "" and "[unreadable]" in row["Err_message"]


@pytest.mark.parametrize("text, status, message", [
    ("", 5, "no header"),
    ("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape\n", 3,
     "no kernel"),
    ("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape\nAdd,n,0", 5,
     "line 2"),
    ("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape\n"
     'Add,n,0,0,1,input,0,4,float32,"(-2)"\n', 5, "is no shape"),
    ("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value\n"
     'Add,n,0,0,1,input,0,4,float32,"(2)",abc\n', 5, "abc is no number"),
])
def test_damaged_table_is_one_line(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path,
                                   text: str, status: int, message: str) -> None:
    place = tmp_path / "target/rank_0/Net/0/0"
    place.mkdir(parents=True)
    (place / "statistic.csv").write_text(text)
    done = compare(tmp_path / "target", dumps["golden_csv"], out=tmp_path / "out")
    assert done.returncode == status
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


def test_tensors_with_statistics(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Statistics of the tensors stand for them, whether their side has a table, too, or not."""
    full = tmp_path / "full"
    shutil.copytree(dumps["golden"], full)
    shutil.copytree(dumps["golden_csv"], full, dirs_exist_ok=True)
    for target, golden in ((dumps["target_csv"], full), (dumps["target"], dumps["golden_csv"])):
        out = tmp_path / golden.name
        done = compare(target, golden, out=out)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"first wrong call: {CULPRIT}\n")
        paths = [[row[side].rsplit(" ")[-1] for side in ("NPU Name", "Bench Name")]
                 for row in rows_of(out)]
        assert len(paths) == len(upstream("upstream_statistic.xlsx"))
        assert all(pathlib.Path(path).is_file() for pair in paths for path in pair)
    same = compare(full, dumps["golden_csv"], "--fail-on", "any", out=tmp_path / "same")
    assert same.stdout.startswith("no wrong call\n"), same.stdout
    assert same.returncode == 0


def test_other_side_is_another_kind(dumps: dict[str, pathlib.Path],
                                    tmp_path: pathlib.Path) -> None:
    (tmp_path / "empty").mkdir()
    for target, golden, status in ((dumps["target"], tmp_path / "empty", 2),
                                   (dumps["target"], tmp_path / "missing", 3)):
        done = compare(target, golden, out=tmp_path / "out")
        assert done.returncode == status, done.stderr
        assert done.stderr.count("\n") == 1
    request = tmp_path / "compare.json"
    request.write_text(json.dumps({"npu_path": str(tmp_path / "empty"),
                                   "bench_path": str(dumps["golden"]), "rank_id": []}))
    done = compare("-i", request, out=tmp_path / "out")
    assert done.returncode == 2 and "no static-graph dump" in done.stderr


def test_full_disk_leaves_nothing(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    """An output path that is a file."""
    out = tmp_path / "out"
    out.write_text("here")
    done = compare(dumps["target"], dumps["golden"], out=out)
    assert done.returncode == 6 and done.stderr.count("\n") == 1
    assert out.read_text() == "here"


def write_calls(root: pathlib.Path, maximum: float) -> pathlib.Path:
    """A recording of statistics with one call."""
    result = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": maximum,
              "Min": -2.0, "Mean": 0.25, "Norm": 3.0, "requires_grad": False}
    entry = {"input_args": [], "input_kwargs": {}, "output": [result]}
    root.mkdir(parents=True)
    (root / "dump.json").write_text(json.dumps(
        {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
         "data": {"Torch.matmul.0.forward": entry, "Torch.relu.0.forward": entry}}))
    return root


def write_graph(root: pathlib.Path) -> pathlib.Path:
    """Statistics of two kernels, of which the first has the values of the call, to six digits."""
    place = root / "rank_0/Net/0/5"
    place.mkdir(parents=True)
    place.joinpath("statistic.csv").write_text(
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
        "Max Value,Min Value,Avg Value,L2Norm Value\n"
        'MatMul,Default_MatMul-op1,0,0,1,output,0,24,float32,"(2,3)",1.23457,-2,0.25,3,\n'
        'Abs,Default_Abs-op2,0,0,2,output,0,24,float32,"(2,3)",9,9,9,9,\n')
    return root


def test_a_mapping_sets_a_graph_against_calls(tmp_path: pathlib.Path) -> None:
    graph, mapping = write_graph(tmp_path / "graph"), tmp_path / "mapping.yaml"
    calls = write_calls(tmp_path / "calls", 1.2345678)
    alone = compare(graph, calls, out=tmp_path / "out")
    assert alone.returncode == 2 and "no static-graph dump" in alone.stderr
    names = ("Default_MatMul-op1.MatMul.0.forward.output.0", "Torch.matmul.0.forward.output.0")
    for target, golden, pair in ((graph, calls, names), (calls, graph, names[::-1])):
        mapping.write_text(": ".join(pair) + "\n")
        out = tmp_path / target.name
        done = compare(target, golden, "-dm", mapping, "--fail-on", "suspicious", out=out)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 of the 2 calls of the target are not in the data mapping" in done.stdout
        [row] = rows_of(out, "compare_result_*.csv")
        assert (row["NPU Name"], row["Bench Name"]) == pair
        assert row["Verdict"] == "within noise", row
    wrong = write_calls(tmp_path / "wrong", 1.3)
    mapping.write_text(": ".join(names) + "\n")
    done = compare(graph, wrong, "-dm", mapping, "--fail-on", "suspicious", out=tmp_path / "w")
    assert done.returncode == 1 and "Default_MatMul-op1.MatMul.0.forward" in done.stdout
    mapping.write_text(": ".join(names) + "\nDefault_Abs-op9.Abs.0.forward.output.0: "
                       "Torch.abs.0.forward.output.0\n")
    done = compare(graph, calls, "-dm", mapping, "--fail-on", "unmatched", out=tmp_path / "u")
    assert done.returncode == 1 and done.stdout.startswith(
        "not judged completely: 1 line of the data mapping with values that neither side has; ")
    mapping.write_text("a: b\n")
    done = compare(graph, calls, "-dm", mapping, out=tmp_path / "none")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"{mapping}: names no value of the target" in done.stderr
    assert not (tmp_path / "none").exists() or not list((tmp_path / "none").iterdir())


def mixed(root: pathlib.Path, graphs: pathlib.Path, value: float) -> pathlib.Path:
    """Calls and static graphs side by side, as MindSpore's recorder leaves them."""
    shutil.copytree(graphs, root / "graph" / "step0")
    calls = [rank_dumps.fine(0), rank_dumps.passes("Torch.relu.0.forward", value)]
    rank_dumps.write_step(root / "pynative" / "step0", {"rank0": calls, "rank1": calls})
    return root


def test_calls_and_graphs_side_by_side(tmp_path: pathlib.Path) -> None:
    target = mixed(tmp_path / "target", unpack("target", tmp_path / "t"), 2.0)
    golden = mixed(tmp_path / "golden", unpack("golden", tmp_path / "g"), 2.0)
    words = [PLUMB, "compare", target, golden, "-o", tmp_path / "out", "--format", "csv"]

    def compare(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*words, *more], text=True, capture_output=True, check=False,
                              timeout=60)

    done = compare("--fail-on", "broken")
    assert done.returncode == 1, done.stderr
    graph, calls = done.stdout.split("== pynative/step0\n")
    assert graph.startswith("== graph/step0\n") and "first wrong" in graph
    assert "first wrong" not in calls
    assert list((tmp_path / "out/graph/step0").rglob("*.csv"))
    assert list((tmp_path / "out/pynative/step0").rglob("*.csv"))
    (golden / "pynative/step1").mkdir()
    alone = compare()
    assert alone.returncode == 0 and "pynative/step1: only in golden" in alone.stdout
    assert compare("--fail-on", "unmatched").returncode == 1
    # A part that is damaged does not keep the others from being judged.
    (target / "pynative/step0/rank0/dump.json").write_text("{")
    (target / "pynative/step0/rank1/dump.json").unlink()
    damaged = compare()
    assert damaged.returncode != 0 and "first wrong" in damaged.stdout
    json = compare("--json")
    assert json.returncode == 2 and "are about one step" in json.stderr
    shutil.rmtree(target / "graph")
    shutil.rmtree(golden / "pynative")
    nothing = compare()
    assert nothing.returncode == 2 and "no step in common" in nothing.stderr
