"""`plumb inspect` and `plumb export` on recordings of plumbline, of upstream (tests/data) and on
damaged ones. Tensors are compared with torch and NumPy.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import atb_dumps
import graph_dumps
import numpy
import pytest
import torch
from rank_dumps import fine, log, tensor, write_rank, write_step
from recording import PLUMB, config, run

DATA = Path(__file__).resolve().parents[1] / "data"

RECORD = """
import os, signal, sys, time, torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path=sys.argv[1])
for step in range(2):
    debugger.start()
    for i in range(3):
        torch.mul(torch.full((3,), float(i), dtype=torch.bfloat16), 2.0)
    torch.log(torch.zeros(2))
    if step == 1 and sys.argv[2] == "kill":
        time.sleep(0.5)  # for the tensor writer
        os.kill(os.getpid(), signal.SIGKILL)
    debugger.stop()
    debugger.step()
"""


def plumb(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs `plumb`."""
    return subprocess.run([PLUMB, *map(str, words)], text=True, capture_output=True, check=False,
                          timeout=60)


def inspect(path: Path, *words: str) -> dict[str, Any]:
    """What `plumb inspect --json` says."""
    done = plumb("inspect", path, "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def contents(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below `directory`: its bytes and the time of its last change."""
    return {str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in sorted(directory.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps recorded to the end, task tensor."""
    root = tmp_path_factory.mktemp("recorded")
    run(RECORD, config(root, task="tensor"), "finish")
    return root / "out"


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The same, killed in the second step."""
    done = run(RECORD, config(tmp_path, task="tensor"), "kill", check=False)
    assert done.returncode == -9, done.stderr
    return tmp_path / "out"


# ---- inspect


def test_inspect_lists_every_step(recorded):
    facts = inspect(recorded)
    assert [Path(dump["path"]).parts[-3:] for dump in facts["dumps"]] == [
        (f"step{step}", "rank", "dump.json") for step in range(2)]
    first = facts["dumps"][0]
    data = json.loads((recorded / "step0/rank/dump.json").read_text())["data"]
    files = list((recorded / "step0/rank/dump_tensor_data").iterdir())
    assert first["dialect"] == "plumbline" and first["task"] == "tensor"
    assert first["entries"] == len(data) == first["kinds"]["forward"]
    assert first["tensor_files"]["files"] == len(files)
    assert first["tensor_files"]["bytes"] == sum(file.stat().st_size for file in files)
    assert first["tensor_files"]["missing"] == first["tensor_files"]["stale"] == 0
    assert first["bad_entries"] == 1  # log(0)
    text = plumb("inspect", recorded).stdout
    assert f"{len(data)} entries: {len(data)} forward" in text


@pytest.mark.parametrize("name, dialect, entries", [
    ("upstream_1.2.2/l1_tensor", "1.2.2", 23), ("upstream_26.2.0/l1_tensor", "26.x", None),
    ("upstream_1.2.2/debug_level/tensor", "unknown", 11)])
def test_inspect_knows_the_dialects(name, dialect, entries):
    [facts] = inspect(DATA / name)["dumps"]
    assert facts["dialect"] == dialect
    assert facts["tensor_files"]["files"] == facts["tensor_files"]["named"]
    if entries is not None:
        assert facts["entries"] == entries


def test_inspect_names_stale_and_missing_tensor_files(recorded, tmp_path):
    rank = tmp_path / "rank"
    shutil.copytree(recorded / "step0/rank", rank)
    files = sorted(path.name for path in (rank / "dump_tensor_data").iterdir())
    (rank / "dump_tensor_data" / files[0]).rename(rank / "dump_tensor_data" / "older.pt")
    [facts] = inspect(rank)["dumps"]
    assert facts["tensor_files"]["stale_names"] == ["older.pt"]
    assert facts["tensor_files"]["missing_names"] == [files[0]]
    assert "older.pt" in plumb("inspect", rank).stdout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64,
                                   torch.int64, torch.uint8, torch.bool, torch.complex64,
                                   torch.float8_e4m3fn])
def test_inspect_reads_a_tensor(tmp_path, dtype):
    value = torch.tensor([[1, 0, 3], [2, 5, 1]]).to(dtype)
    torch.save(value.t(), tmp_path / "x.pt")  # not contiguous
    [facts] = inspect(tmp_path / "x.pt")["tensors"]
    assert (facts["dtype"], facts["shape"]) == (str(dtype).removeprefix("torch."), [3, 2])
    assert facts["zero_count"] == 1 and facts["nan_count"] == 0
    seen = [complex(text) if dtype.is_complex else json.loads(text) for text in facts["values"]]
    assert seen == value.t().flatten().to(
        torch.complex64 if dtype.is_complex else torch.float64).tolist()
    if dtype is torch.float32:
        assert [float(facts[key]) for key in ("max", "min", "mean")] == [5, 0, 2]


def test_inspect_reads_odd_arrays(tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0.0]))
    [facts] = inspect(tmp_path / "a.npy")["tensors"]
    assert (facts["nan_count"], facts["inf_count"], facts["zero_count"]) == (1, 2, 1)
    assert facts["max"] == "nan" and facts["values"] == ["nan", "inf", "-inf", "0.0"]
    numpy.save(tmp_path / "b.npy", numpy.zeros((0, 3)))
    [facts] = inspect(tmp_path / "b.npy")["tensors"]
    assert facts["values"] == [] and facts["shape"] == [0, 3]
    torch.save({"a": 1}, tmp_path / "c.pt")
    assert plumb("inspect", tmp_path / "c.pt").returncode == 4
    (tmp_path / "d.pt").write_bytes(b"cut")
    assert plumb("inspect", tmp_path / "d.pt").returncode == 5


def test_inspect_shows_a_truncated_dump_and_fails(tmp_path):
    rank = write_rank(tmp_path / "rank0", [fine(0), log(), fine(1)])
    text = (rank / "dump.json").read_text()
    (rank / "dump.json").write_text(text[:-20])
    done = plumb("inspect", rank)
    assert done.returncode == 5
    assert "2 entries" in done.stdout and "cut or damaged at byte" in done.stderr
    assert inspect(rank, "--allow-partial")["dumps"][0]["truncated"]


def test_inspect_shows_a_journal(killed):
    facts = inspect(killed)["dumps"]
    assert facts[1]["unfinished"] or facts[1]["journal"]
    journal = facts[1]["journal"]
    assert journal["entries"] > 0 and not journal["sealed"] and not journal["in_use"]
    [alone] = inspect(killed / "step1/rank/.dump.journal")["journals"]
    assert alone["records"] == journal["records"]


def test_inspect_reads_side_files(tmp_path):
    rank = write_rank(tmp_path / "rank0", [fine(0), fine(1)])
    [stack] = inspect(rank / "stack.json")["side_files"]
    assert (stack["kind"], stack["entries"], stack["different stacks"]) == ("stack, grouped", 2, 1)
    [construct] = inspect(rank / "construct.json")["side_files"]
    assert (construct["entries"], construct["without parent"]) == (3, 1)


def test_inspect_counts_a_static_graph(tmp_path):
    root = graph_dumps.unpack("golden", tmp_path)
    files = sum(path.suffix == ".npy" for path in root.rglob("*"))
    facts = inspect(root)["side_files"]
    assert sum(each["values"] for each in facts) == files
    assert {each["kind"] for each in facts} == {"static-graph dump, tensors"}
    assert all(each["kernels"] > 0 and each["unreadable"] == 0 for each in facts)
    statistics = graph_dumps.write_statistics(root, tmp_path / "statistics")
    again = inspect(statistics)["side_files"]
    assert [each["values"] for each in again] == [each["values"] for each in facts]
    first = next(path for path in sorted(root.rglob("*.npy")))
    first.write_bytes(first.read_bytes()[:40])
    assert sum(each["unreadable"] for each in inspect(root)["side_files"]) == 1
    text = plumb("inspect", root).stdout
    assert "static-graph dump, tensors" in text and "kernels: " in text


def test_inspect_counts_an_atb_dump(tmp_path):
    root = atb_dumps.write(tmp_path / "atb", faulty=False, tensors=True)
    (facts,) = inspect(root)["side_files"]
    assert facts["kind"] == "ATB dump, tensors"
    assert facts["values"] == len(atb_dumps.TENSORS)
    assert facts["operators"] == len({(name, ids) for name, ids, *_ in atb_dumps.TENSORS})
    assert facts["missing files"] == 0
    next(root.rglob("*.bin")).unlink()
    (facts,) = inspect(root)["side_files"]
    assert facts["missing files"] == 1
    (root / "statistic.csv").write_text(atb_dumps.HEADER + "\n")
    assert plumb("inspect", root).returncode == 3


def test_inspect_refuses_what_it_cannot_read(tmp_path):
    assert plumb("inspect", tmp_path / "nothing").returncode == 3
    assert plumb("inspect", tmp_path).returncode == 3
    (tmp_path / "x.txt").write_text("")
    assert plumb("inspect", tmp_path / "x.txt").returncode == 4
    (tmp_path / "link.json").symlink_to(tmp_path / "x.txt")
    assert plumb("inspect", tmp_path / "link.json").returncode == 2


# ---- export


def test_export_makes_plain_files(recorded, tmp_path):
    before = contents(recorded)
    done = plumb("export", recorded, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert contents(recorded) == before
    inodes = set()
    for name, (data, _) in before.items():
        if name.endswith(".dump.journal"):  # sealed
            continue
        copy = tmp_path / "out" / name
        assert copy.stat().st_nlink == 1
        inodes.add(copy.stat().st_ino)
        if copy.name != "dump.json":
            assert copy.read_bytes() == data
    assert len(inodes) == sum(not name.endswith(".dump.journal") for name in before)
    for step in range(2):
        old = json.loads((recorded / f"step{step}/rank/dump.json").read_text())
        new = json.loads((tmp_path / "out" / f"step{step}/rank/dump.json").read_text())
        assert new["dump_data_dir"] == str(tmp_path / "out" / f"step{step}/rank/dump_tensor_data")
        old["dump_data_dir"] = new["dump_data_dir"] = None
        assert json.dumps(old) == json.dumps(new)


def test_export_to_npy_converts_files_and_names(recorded, tmp_path):
    done = plumb("export", recorded / "step0", "-o", tmp_path / "out", "--format", "npy", "--jobs",
                 2)
    assert done.returncode == 0 and "float32 now" in done.stdout, done
    source, target = recorded / "step0/rank", tmp_path / "out/rank"
    names = {path.stem for path in (source / "dump_tensor_data").iterdir()}
    assert {path.stem for path in (target / "dump_tensor_data").iterdir()} == names
    for name in names:
        expected = torch.load(source / "dump_tensor_data" / f"{name}.pt", weights_only=True)
        array = numpy.load(target / "dump_tensor_data" / f"{name}.npy")
        assert array.dtype == numpy.float32
        assert numpy.array_equal(array, expected.float().numpy(), equal_nan=True)
    text = (target / "dump.json").read_text()
    assert '.pt"' not in text and text.count('.npy"') == text.count('"data_name"') > 0
    [facts] = inspect(target)["dumps"]
    assert facts["tensor_files"]["missing"] == facts["tensor_files"]["stale"] == 0


def test_export_and_back_gives_equal_tensors(tmp_path):
    rank = write_rank(tmp_path / "rank0", [])
    (rank / "dump_tensor_data").mkdir()
    torch.manual_seed(0)
    saved = {"a": torch.rand(3, 4).half(), "b": torch.arange(6).view(2, 3).t(),
             "c": torch.tensor(True), "d": torch.zeros(0, 2, dtype=torch.complex64),
             "e": torch.tensor([math.nan, -math.inf])}
    for name, value in saved.items():
        torch.save(value, rank / "dump_tensor_data" / f"{name}.pt")
    for source, target, form in ((rank, "npy", "npy"), (tmp_path / "npy", "pt", "pt")):
        done = plumb("export", source, "-o", tmp_path / target, "--format", form)
        assert done.returncode == 0, done.stderr
    for name, value in saved.items():
        back = torch.load(tmp_path / f"pt/dump_tensor_data/{name}.pt", weights_only=True)
        assert back.dtype == value.dtype and torch.equal(back.nan_to_num(), value.nan_to_num())


def test_export_strict_json_is_standard_json(tmp_path):
    entry = log(math.nan)
    entry[1]["output"].append(tensor(-math.inf))
    step = write_step(tmp_path / "step0", {"rank0": [entry]})
    assert plumb("export", step, "-o", tmp_path / "out", "--strict-json").returncode == 0

    def refuse(token: str) -> None:
        raise AssertionError(token)

    data = json.loads((tmp_path / "out/rank0/dump.json").read_text(), parse_constant=refuse)
    outputs = data["data"]["Torch.log.0.forward"]["output"]
    assert outputs[0]["Max"] == "NaN" and outputs[1]["Min"] == "-Infinity"
    # Our readers, and so every command, still know what it means.
    assert inspect(tmp_path / "out")["dumps"][0]["bad_entries"] == 1


@pytest.mark.parametrize("form", ["pt", "npy"])
def test_export_recovers_a_journal_into_the_copy(killed, tmp_path, form):
    before = contents(killed)
    done = plumb("export", killed, "-o", tmp_path / "copy", "--format", form)
    assert done.returncode == 0, done.stderr
    assert contents(killed) == before
    assert "calls recovered" in done.stdout
    rank = tmp_path / "copy/step1/rank"
    data = json.loads((rank / "dump.json").read_text())["data"]
    assert "Torch.mul.2.forward" in data
    assert not (rank / ".dump.journal").exists()
    names = [element["data_name"] for entry in data.values()
             for element in entry["input_args"] + entry["output"] if "data_name" in element]
    assert names and all((rank / "dump_tensor_data" / name).is_file() for name in names)
    assert all(name.endswith(form) for name in names)
    [facts] = inspect(rank)["dumps"]
    assert not facts["unfinished"] and facts["tensor_files"]["missing"] == 0


def test_export_refuses_bad_targets_and_sources(tmp_path):
    step = write_step(tmp_path / "step0", {"rank0": [fine(0)]})
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("")
    for target, status in ((tmp_path / "full", 2), (tmp_path / "full/x", 2), (step / "inside", 2)):
        done = plumb("export", step, "-o", target)
        assert done.returncode == status and str(target) in done.stderr
    assert not (step / "inside").exists()
    assert plumb("export", tmp_path / "full", "-o", tmp_path / "new").returncode == 3
    assert not (tmp_path / "new").exists()
    (step / "rank0/link").symlink_to(tmp_path / "full/x")
    assert plumb("export", step, "-o", tmp_path / "new").returncode == 2
    assert not (tmp_path / "new").exists()


def test_export_stops_at_damaged_files(tmp_path):
    rank = write_rank(tmp_path / "rank0", [fine(0)])
    (rank / "dump_tensor_data").mkdir()
    (rank / "dump_tensor_data/x.pt").write_bytes(b"damaged")
    done = plumb("export", rank, "-o", tmp_path / "a", "--format", "npy")
    assert done.returncode == 5 and "x.pt" in done.stderr
    assert plumb("export", rank, "-o", tmp_path / "b").returncode == 0
    (rank / "dump.json").write_text('{"data": {')
    assert plumb("export", rank, "-o", tmp_path / "c").returncode == 5


def test_export_keeps_what_is_no_plain_tensor(tmp_path):
    rank = write_rank(tmp_path / "rank0", [])
    (rank / "dump_tensor_data").mkdir()
    torch.save([torch.ones(2)], rank / "dump_tensor_data/x.pt")
    done = plumb("export", rank, "-o", tmp_path / "out", "--format", "npy")
    assert done.returncode == 0 and "not one plain tensor" in done.stdout
    assert (tmp_path / "out/dump_tensor_data/x.pt").read_bytes() == (
        rank / "dump_tensor_data/x.pt").read_bytes()


def test_export_that_cannot_write_is_an_error(tmp_path):
    limit = ["bash", "-c", 'ulimit -f 1; trap "" XFSZ; exec "$@"', "-", str(PLUMB)]
    big = write_rank(tmp_path / "rank0", [fine(number) for number in range(20)])
    done = subprocess.run([*limit, "export", str(big), "-o", str(tmp_path / "out")], text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 6 and "cannot write" in done.stderr
