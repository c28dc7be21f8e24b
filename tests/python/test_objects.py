"""`plumb` on recordings and results in an object store: the same answers as on files, read by
ranges, over a link that is cut, and nothing taken for complete that is not.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from object_server import PYTHON, Link, Server, environment, serving
from rank_dumps import Entry, forward, tensor, write_rank
from recording import PLUMB, config, run
from test_cluster import PYTHON as WITH_RAY
from test_compare_ranks import all_reduce
from test_shards import timeless

from plumbline import objects

PIECE = 8 << 20
RECORD = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
x = torch.arange(9 << 18, dtype=torch.float32) / 1000
small = torch.ones(1000)
debugger.start()
y = torch.mul(x, 2.0)
z = torch.add(y, float(sys.argv[2]))
for i in range(30):
    torch.abs(small)
debugger.stop()
debugger.step()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as one:
        one.make_bucket("runs")
        yield one


@pytest.fixture
def link(server: Server) -> Iterator[Link]:
    one = Link(server.port)
    yield one
    one.close()


def plumb(url: str, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs `plumb` with this server."""
    return subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True, check=False,
                          env=environment(url, **more), timeout=240)


def entries(wrong: float = 2.0) -> list[Entry]:
    """Some products and a sum over two ranks, to which each gave 1."""
    products = [forward(f"Torch.mul.{i}.forward", [tensor(float(i))],
                        [tensor(i * (wrong if i == 3 else 2.0))]) for i in range(1, 6)]
    return [*products, all_reduce(0, 1.0, 2.0 if wrong == 2.0 else 3.0, 2)]


@pytest.fixture(scope="module")
def statistics(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings of two ranks, on files and in the store, of which one rank goes wrong."""
    folder = tmp_path_factory.mktemp("objects")
    for side, wrong in (("good", 2.0), ("wrong", 7.0)):
        for rank in range(2):
            write_rank(folder / side / "step0" / f"rank{rank}", entries(wrong if rank else 2.0))
    server.upload(folder, "runs/statistics")
    return folder


@pytest.fixture(scope="module")
def tensors(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings with tensors, some larger than what one range brings."""
    folder = tmp_path_factory.mktemp("tensors")
    for side, added in (("good", 1.0), ("wrong", 1.5)):
        (folder / side).mkdir()
        path = config(folder / side, task="tensor", summary_mode="statistics")
        run(RECORD, path, added)
    server.upload(folder, "runs/tensors")
    return folder


def as_stored(text: str, local: Path, where: str) -> list[str]:
    """What is printed of files, as it is of the store; without the names of results."""
    lines = text.replace(str(local), where).splitlines()
    return [line for line in lines if not line.startswith("file: ")]


def test_the_package_takes_for_paths_of_stores_what_the_program_takes() -> None:
    source = (Path(__file__).parents[2] / "src/base/file/object_store.cc").read_text()
    schemes = source.split("kSchemes = {")[1].split("}")[0]
    assert set(re.findall(r'"(\w+)"', schemes)) == objects.SCHEMES
    assert objects.is_named_by("s3://runs/new") and not objects.is_named_by("odd://runs/new")
    assert not objects.is_named_by("s3")


def test_the_same_answer_and_files(server: Server, statistics: Path, tmp_path: Path) -> None:
    words = ["--format", "csv,json", "--fail-on", "wrong"]
    local = plumb(server.url, "compare", statistics / "wrong", statistics / "good",
                  "-o", statistics / "result", *words)
    assert local.returncode == 1 and "first wrong call: step 0 rank 1" in local.stdout, local
    where = "s3://runs/statistics"
    stored = plumb(server.url, "compare", f"{where}/wrong", f"{where}/good",
                   "-o", f"{where}/result", *words, TMPDIR=str(tmp_path))
    assert stored.returncode == 1 and not stored.stderr, stored
    assert as_stored(stored.stdout, statistics, where) == as_stored(local.stdout, statistics, where)
    assert f"file: {where}/result/compare_ranks_" in stored.stdout
    names = {timeless(path.name.encode()) for path in (statistics / "result").rglob("*.csv")}
    found = server.names("runs", "statistics/result/")
    assert names and names <= {timeless(name.rpartition("/")[2].encode()) for name in found}
    tables = [name for name in found if name.endswith(".csv")]
    own = {timeless(path.read_bytes()) for path in (statistics / "result").rglob("*.csv")}
    for name in tables:
        table = timeless(server.get(f"runs/{name}"))
        assert table.replace(where.encode(), str(statistics).encode()) in own
    assert not list(tmp_path.iterdir())


def test_large_objects_come_by_ranges(link: Link, tensors: Path) -> None:
    where = "s3://runs/tensors"
    stored = plumb(link.url, "compare", f"{where}/wrong/out/step0", f"{where}/good/out/step0",
                   "-o", tensors / "result")
    local = plumb(link.url, "compare", tensors / "wrong/out/step0", tensors / "good/out/step0",
                  "-o", tensors / "result")
    assert stored.stdout.startswith("first wrong call: Torch.add.0.forward"), stored
    assert as_stored(local.stdout, tensors, where) == as_stored(stored.stdout, tensors, where)
    ranges = [line for line in link.asked if "ange:" in line]
    assert sum(f"bytes={PIECE}-" in line for line in ranges) >= 2, ranges  # of 12 MiB: two each
    whole = [line for line in link.asked if ".pt" in line and "ange:" not in line
             and line.startswith("GET")]
    assert not whole


def test_statistics_read_no_tensor(link: Link, tensors: Path) -> None:
    where = "s3://runs/tensors/good/out/step0"
    done = plumb(link.url, "inspect", where)
    assert done.returncode == 0 and "tensor files: " in done.stdout, done
    assert not [line for line in link.asked if "dump_tensor_data/" in line and "ange:" in line]


def test_an_object_that_is_replaced_meanwhile_is_not_judged(
        server: Server, link: Link, tensors: Path) -> None:
    server.upload(tensors / "good" / "out" / "step0", "runs/replaced")
    [name] = [path for path in (tensors / "good" / "out").rglob("Torch.mul.0.forward.output.0.pt")]

    def replace(line: str) -> None:
        if f"{name.name} " in line and f"bytes={PIECE}-" in line:
            server.put(f"runs/replaced/rank/dump_tensor_data/{name.name}",
                       name.read_bytes()[:-1] + b"x")

    link.when_asked = replace
    done = plumb(link.url, "compare", "s3://runs/replaced", tensors / "good/out/step0", "-o",
                 tensors / "replaced")
    assert "not judged" in done.stdout and not done.stdout.startswith("no wrong call"), done
    assert f"{name.name}: was replaced while it was read" in done.stderr


def test_cut_connections_change_nothing(link: Link, tensors: Path) -> None:
    where = "s3://runs/tensors"
    link.cut_after, link.cuts_left = 100_000, 12
    done = plumb(link.url, "compare", f"{where}/wrong/out/step0", f"{where}/good/out/step0",
                 "-o", tensors / "cut")
    assert link.cuts_left == 0
    assert done.stdout.startswith("first wrong call: Torch.add.0.forward"), done
    assert done.returncode == 0 and not done.stderr


def test_a_store_that_never_answers_is_no_pass(link: Link, tensors: Path, tmp_path: Path) -> None:
    """The list comes; then each answer with a tensor breaks off."""
    where = "s3://runs/tensors"
    link.cut_after, link.cuts_left = 1_000_000, 1 << 30
    done = plumb(link.url, "compare", f"{where}/wrong/out/step0", f"{where}/good/out/step0",
                 "-o", tensors / "never", TMPDIR=str(tmp_path))
    assert "not judged: 8 unreadable tensor files" in done.stdout, done
    assert "cannot be read" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_no_store(tmp_path: Path) -> None:
    done = plumb("http://127.0.0.1:1", "compare", "s3://runs/a", "s3://runs/b",
                 TMPDIR=str(tmp_path))
    assert done.returncode == 6 and not done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("plumb compare: s3://runs/a: cannot be listed: ")
    assert not list(tmp_path.iterdir())


def test_nothing_there(server: Server, statistics: Path) -> None:
    done = plumb(server.url, "compare", "s3://runs/statistics/wrong", "s3://runs/none")
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1
    assert "s3://runs/none" in done.stderr


def test_an_interpreter_without_fsspec(statistics: Path, server: Server, tmp_path: Path) -> None:
    (tmp_path / "fsspec.py").write_text("raise ImportError('No module named fsspec')\n")
    done = plumb(server.url, "inspect", "s3://runs/statistics/good", PYTHONPATH=str(tmp_path))
    assert done.returncode == 4 and "pip install 'plumbline-numerics[objects]'" in done.stderr


def test_results_that_cannot_be_stored_are_left(server: Server, statistics: Path,
                                                tmp_path: Path) -> None:
    done = plumb(server.url, "compare", statistics / "wrong", statistics / "good",
                 "-o", "s3://no-such-bucket/out", TMPDIR=str(tmp_path))
    assert done.returncode == 6, done
    assert "s3://no-such-bucket/out/" in done.stderr and "is left in" in done.stderr
    assert list(tmp_path.rglob("*.csv"))


@pytest.mark.parametrize("last", ["dump.json", ".dump.journal"])
def test_killed_recordings_are_unfinished_whatever_came_last(
        server: Server, tmp_path: Path, last: str) -> None:
    """A store has the times at which objects came."""
    path = config(tmp_path, task="statistics")
    run(RECORD.replace("debugger.stop()", "import os; os._exit(0)"), path, 1.0)
    rank = next((tmp_path / "out").rglob(".dump.journal")).parent
    where = f"killed-{last.strip('.')}"
    server.upload(rank, f"runs/{where}", last)
    time.sleep(1.1)  # that long is a tick of a store
    server.put(f"runs/{where}/{last}", (rank / last).read_bytes())
    done = plumb(server.url, "inspect", f"s3://runs/{where}")
    assert "unfinished recording: run plumb recover" in done.stdout, done
    done = plumb(server.url, "recover", f"s3://runs/{where}")
    assert done.returncode == 0, done
    names = server.names("runs", f"{where}/")
    assert f"{where}/dump.json" in names and f"{where}/.dump.journal" not in names
    assert "Torch.mul.0.forward" in json.loads(server.get(f"runs/{where}/dump.json"))["data"]


def test_names_that_lead_elsewhere_are_left_out(server: Server, statistics: Path,
                                                tmp_path: Path) -> None:
    server.upload(statistics / "good" / "step0" / "rank0", "runs/odd")
    server.put("runs/odd/../../escaped", b"x")
    done = plumb(server.url, "inspect", "s3://runs/odd", TMPDIR=str(tmp_path))
    assert done.returncode == 0 and "left out: its name is no path of a file" in done.stderr, done
    assert not list(tmp_path.rglob("escaped"))


def test_one_object_alone(server: Server, tmp_path: Path) -> None:
    for name, added in (("a", 0), ("b", 1)):
        np.save(tmp_path / f"{name}.npy", np.arange(10, dtype=np.float32) + added)
        server.put(f"runs/arrays/{name}.npy", (tmp_path / f"{name}.npy").read_bytes())
    torch.save({"w": torch.ones(3)}, tmp_path / "a.pt")
    server.put("runs/arrays/a.pt", (tmp_path / "a.pt").read_bytes())
    done = plumb(server.url, "compare", "s3://runs/arrays/a.pt", "s3://runs/arrays/a.pt",
                 "-o", tmp_path)
    assert done.returncode == 0, done


def test_shards_are_put_together_in_the_store(server: Server, statistics: Path) -> None:
    where = "s3://runs/statistics"
    words = ["compare", f"{where}/wrong/step0", f"{where}/good/step0", "--format", "csv"]
    whole = plumb(server.url, *words, "-o", f"{where}/whole")
    for number in range(2):
        part = plumb(server.url, *words, "-o", f"{where}/parts", "--shard", f"{number}/2")
        assert part.returncode == 0 and not part.stderr, part
    merged = plumb(server.url, "merge", f"{where}/parts")
    assert as_stored(merged.stdout, statistics, where) == as_stored(whole.stdout, statistics, where)
    assert merged.returncode == whole.returncode and not merged.stderr


def test_a_cluster_stores_its_results(server: Server, statistics: Path) -> None:
    """Ray lives in an environment of its own, where the store's driver is added."""
    where = "s3://runs/statistics"
    words = ["compare", f"{where}/wrong/step0", f"{where}/good/step0",
             "--format", "csv,html,sqlite", "--check_collectives"]
    whole = plumb(server.url, *words, "-o", f"{where}/one")
    assert "1 violated" in whole.stdout, whole
    drivers = next((PYTHON.parents[1] / "lib").glob("python3*")) / "site-packages"
    done = plumb(server.url, *words, "-o", f"{where}/ray", "--engine", "ray", "--threads", "2",
                 PLUMBLINE_PYTHON=str(WITH_RAY), PYTHONPATH=str(drivers))
    assert done.returncode == whole.returncode == 0 and not done.stderr, done
    assert as_stored(done.stdout, statistics, where) == as_stored(whole.stdout, statistics, where)
    one, ray = (server.names("runs", f"statistics/{side}/compare_") for side in ("one", "ray"))
    assert len(one) == len(ray) > 4 and not any("shard" in name for name in ray), ray


def test_shards_on_files_of_recordings_in_the_store(server: Server, statistics: Path,
                                                    tmp_path: Path) -> None:
    """What the command of the shards reads is there for the merge, which does not name it."""
    where = "s3://runs/statistics"
    words = ["compare", f"{where}/wrong/step0", f"{where}/good/step0", "--check_collectives",
             "--format", "csv", "-o", tmp_path]
    whole = plumb(server.url, *words)
    for number in range(2):
        part = plumb(server.url, *words, "--shard", f"{number}/2")
        assert part.returncode == 0 and not part.stderr, part
    merged = plumb(server.url, "merge", tmp_path)
    assert "1 violated" in merged.stdout and not merged.stderr, merged
    assert as_stored(merged.stdout, statistics, where) == as_stored(whole.stdout, statistics, where)


def test_a_stopped_command_leaves_nothing(link: Link, tensors: Path, tmp_path: Path) -> None:
    process = subprocess.Popen([PLUMB, "view", "s3://runs/tensors/good/out", "--no-cache"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment(link.url, TMPDIR=str(tmp_path)))
    assert process.stdout is not None
    while "http://" not in (line := process.stdout.readline()):
        assert line
    assert list(tmp_path.iterdir())
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
    assert not list(tmp_path.iterdir())
    assert os.path.isdir(tmp_path)


def test_an_object_without_place_here_is_left_alone(server: Server, tmp_path: Path) -> None:
    """It is left out and not judged; nothing is stored in its place."""
    data = np.ones(1 << 20, dtype=np.float32)
    np.save(tmp_path / "w.npy", data)
    for side in ("new", "good"):
        server.put(f"runs/large/{side}/w.npy", (tmp_path / "w.npy").read_bytes())
    command = ["bash", "-c", 'ulimit -f 3072; exec "$@"', "bash", PLUMB, "compare",
               "s3://runs/large/new", "s3://runs/large/good", "-o", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120,
                          env=environment(server.url))
    assert "s3://runs/large/new/w.npy: left out: File too large" in done.stderr, done
    assert not done.stdout.startswith("equal"), done
    for side in ("new", "good"):
        assert server.get(f"runs/large/{side}/w.npy") == (tmp_path / "w.npy").read_bytes()


def test_a_test_is_written_to_a_file_system(server: Server, tensors: Path) -> None:
    done = plumb(server.url, "extract", "s3://runs/tensors/wrong/out/step0", "Torch.add.0",
                 "-os3://runs/extracted")
    assert done.returncode == 2 and "expected a directory there" in done.stderr, done
    assert not Path("s3:").exists()


class Store:
    """One whose answers the test makes."""

    def __init__(self, answer: Callable[[str, int, int], bytes]) -> None:
        self.cat_file = lambda key, start, end: answer(key, start, end)

    def info(self, key: str) -> dict[str, object]:
        return {"size": int(key.partition("-")[2]) * PIECE, "ETag": key}

    def invalidate_cache(self) -> None:
        pass


def mirrored(root: Path, store: Store, *keys: str) -> objects.Mirror:
    """A mirror of objects "NAME-PIECES"."""
    mirror = objects.Mirror(root)
    for key in keys:
        (root / "s3").mkdir(exist_ok=True)
        mirror._place(store, key, f"s3://{key}", store.info(key))
    return mirror


def test_pieces_that_come_late_go_into_no_other_file(tmp_path: Path) -> None:
    def answer(key: str, start: int, end: int) -> bytes:
        if key == "a-3" and start == 0:
            time.sleep(0.1)
            raise FileNotFoundError(key)
        time.sleep(0.6 if key == "a-3" else 0.9 if start == 0 else 0)
        return key[:1].encode() * (end - start)

    mirror = mirrored(tmp_path, Store(answer), "a-3", "b-2")
    with pytest.raises(objects.StoreError, match="a-3"):
        mirror.fetch(str(tmp_path / "s3" / "a-3"))
    mirror.fetch(str(tmp_path / "s3" / "b-2"))
    assert (tmp_path / "s3" / "b-2").read_bytes() == b"b" * (2 * PIECE)
    mirror.close()


def test_a_disk_that_takes_a_part_is_said(tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = mirrored(tmp_path, Store(lambda key, start, end: b"x" * (end - start)), "a-1", "b-2")
    write, full = os.pwrite, [1000, 1000]

    def some(descriptor: int, data: memoryview, start: int) -> int:
        return write(descriptor, data[:full.pop()] if full else data, start)

    monkeypatch.setattr(os, "pwrite", some)
    for key in ("a-1", "b-2"):  # what is left is written after it
        mirror.fetch(str(tmp_path / "s3" / key))
        assert set((tmp_path / "s3" / key).read_bytes()) == {ord("x")}
    mirror.close()


def test_what_was_read_first_makes_room(tmp_path: Path) -> None:
    names = [f"{letter}-1" for letter in "abcdefgh"]
    mirror = mirrored(tmp_path, Store(lambda key, start, end: key[:1].encode() * (end - start)),
                      *names)
    mirror._room = 4 * PIECE
    for name in [*names, *names]:
        path = tmp_path / "s3" / name
        mirror.fetch(str(path))
        assert path.read_bytes() == name[:1].encode() * PIECE
        used = sum((tmp_path / "s3" / one).stat().st_blocks for one in names) * 512
        assert used <= 4.1 * PIECE
    mirror.close()


def test_files_of_the_program_are_its_own(tmp_path: Path) -> None:
    mirror = mirrored(tmp_path, Store(lambda key, start, end: b"x" * (end - start)), "a-1", "b-1")
    a, b, new = (tmp_path / "s3" / name for name in ("a-1", "b-1", "new"))
    for path in (b, new):  # with a hole
        path.unlink(missing_ok=True)
        with open(path, "xb") as file:
            file.truncate(PIECE)
    assert [mirror.fetch(str(path)) for path in (a, b, new)] == [True, False, False]
    assert a.read_bytes() == b"x" * PIECE and b.read_bytes() == bytes(PIECE)
    mirror.close()


def test_nothing_is_removed_before_all_is_stored(tmp_path: Path) -> None:
    calls = []

    def put(path: str, key: str) -> None:
        calls.append(f"put {key}")
        raise ConnectionError("cut")

    store = Store(lambda key, start, end: b"x" * (end - start))
    store.put_file, store.rm_file = put, lambda key: calls.append(f"rm {key}")
    mirror = mirrored(tmp_path, store, "dump.json-1", "other-1")
    mirror._place(store, "j-1", "s3://.dump.journal", store.info("j-1"))
    for name in (".dump.journal", "other-1"):
        (tmp_path / "s3" / name).unlink()
    (tmp_path / "s3" / "dump.json").write_text("{}")
    mirror._schemes.add("s3")
    mirror._store = lambda url: SimpleNamespace(put_file=put, _strip_protocol=lambda url: url)
    with pytest.raises(objects.StoreError, match="cannot be stored: cut"):
        mirror.store_changes()
    assert calls and not [call for call in calls if call.startswith("rm")]
    mirror.remove_journals()
    assert calls[-1] == "rm j-1" and calls.count("rm other-1") == 0
    mirror.close()


def test_an_interrupt_of_the_process_alone_ends_it(link: Link, tensors: Path) -> None:
    process = subprocess.Popen([PLUMB, "view", "s3://runs/tensors/good/out", "--no-cache"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment(link.url), start_new_session=True)
    assert process.stdout is not None
    while "http://" not in (line := process.stdout.readline()):
        assert line
    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
