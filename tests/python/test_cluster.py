"""Commands with `--engine ray` against the same without: the same bytes, also while workers and a
node are killed. Ray lives in an environment of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import test_shared_precheck as prechecks
from precheck_dumps import broken_python, small_model
from rank_dumps import Entry, forward, tensor, write_rank
from recording import PLUMB
from test_compare_ranks import all_reduce
from test_shards import facts, timeless, tree, whole
from test_shared_commands import outcome

from plumbline.cluster import ClusterError, Room, room_for

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "build" / "cluster" / "bin" / "python"  # tools/bootstrap.sh cluster
RANKS, CALLS, WRONG = 12, 6000, 7
WORDS = ["--format", "csv,json,sqlite", "--fail-on", "wrong"]
TIME_LIMIT_S = 400


def entries(is_wrong: bool) -> list[Entry]:
    """Enough calls that a worker is seen at work; one of them goes wrong."""
    calls = [forward(f"Torch.mul.{i}.forward", [tensor(1 + i / CALLS)],
                     [tensor(3.0 if is_wrong and i == CALLS // 2 else 2 + i / CALLS)])
             for i in range(CALLS)]
    return [*calls, all_reduce(0, 1.0, float(RANKS), RANKS)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Path, Path]:
    """Two steps of twelve ranks, which are alike but for one."""
    folder = tmp_path_factory.mktemp("cluster")
    good = write_rank(folder / "good", entries(False))
    wrong = write_rank(folder / "wrong", entries(True))
    for side in ("target", "golden"):
        for rank in range(RANKS):
            source = wrong if side == "target" and rank == WRONG else good
            shutil.copytree(source, folder / side / f"rank{rank}")
    return folder / "target", folder / "golden"


def environment(**more: str) -> dict[str, str]:
    """Of a program that finds Ray and this package."""
    return os.environ | {"PLUMBLINE_PYTHON": str(PYTHON)} | more


def test_same_bytes_as_without_ray(tmp_path, runs):
    """The program starts Ray by itself, and says nothing of it."""
    out = tmp_path / "out"
    expected = whole(out, *runs, *WORDS)
    assert expected[0] == 1 and b"first wrong call: rank 7 Torch.mul.3000.forward" in expected[1]
    done = subprocess.run([PLUMB, "compare", *runs, *WORDS, "-o", out, "--engine", "ray",
                           "--threads", "2"], text=True, capture_output=True, check=False,
                          env=environment(), timeout=TIME_LIMIT_S)
    assert facts(out, done) == expected
    assert not list(out.glob("*.shard"))


def test_killed_workers_and_a_lost_node_change_nothing(tmp_path, runs):
    """Three workers and one of two nodes, each at its work."""
    out = tmp_path / "out"
    expected = whole(out, *runs, *WORDS)
    program, script = shutil.which(PLUMB) or PLUMB, Path(__file__).with_name("cluster_kills.py")
    done = subprocess.run([PYTHON, script, program, "3", "0.3", "compare", out / "compare_ranks",
                           f"--output={out}", *WORDS, *runs],
                          text=True, capture_output=True, check=False, timeout=TIME_LIMIT_S)
    assert done.returncode == 0, done.stderr
    # Ray says there, too, what it does about them.
    told = json.loads(next(line for line in done.stdout.splitlines() if line[:9] == '{"status"'))
    assert (told["killed"], told["lost_node"]) == (3, True)
    for left in out.glob(".*.tmp"):
        left.unlink()  # what a killed process was writing
    assert (told["status"], timeless(told["stdout"].encode()), tree(out)) == expected


# A script in front of the program, so that a part of these small recordings is seen at work.
SLOW = """#!/bin/sh
[ "$1" = merge ] || sleep 0.4
exec {program} "$@"
"""


def with_kills(words: list[str], stem: Path) -> tuple[int, str, str]:
    """What a command gives on two nodes, one of which is lost, with three workers killed."""
    slow = stem.parent.parent / "slow_plumb"
    slow.write_text(SLOW.format(program=shutil.which(PLUMB) or PLUMB))
    slow.chmod(0o755)
    script = Path(__file__).with_name("cluster_kills.py")
    done = subprocess.run([PYTHON, script, slow, "3", "0.3", words[0], stem, *words[1:]], text=True,
                          capture_output=True, check=False, timeout=TIME_LIMIT_S)
    assert done.returncode == 0, done.stderr
    told = json.loads(next(line for line in done.stdout.splitlines() if line[:9] == '{"status"'))
    assert (told["killed"], told["lost_node"]) == (3, True)
    return told["status"], told["stdout"], told["stderr"]


def on_ray(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """A command with --engine ray."""
    return subprocess.run([PLUMB, *words, "--engine", "ray", "--threads", "2"], text=True,
                          capture_output=True, check=False, env=environment(),
                          timeout=TIME_LIMIT_S, **options)


def overflow_words(runs: tuple[Path, Path], out: Path) -> list[str]:
    """The search in a recording with NaN, of which a rank is damaged."""
    run = out.parent / "run"
    shutil.copytree(runs[0], run)
    dump = run / f"rank{WRONG}" / "dump.json"
    dump.write_text(dump.read_text().replace('"Max": 3.0', '"Max": NaN'))
    (run / "rank2" / "dump.json").write_text("]")
    return ["overflow", str(run), f"--output={out}", "--fail-on-anomaly"]


def test_overflow_search(tmp_path, runs):
    """Over twelve ranks."""
    out = tmp_path / "out"
    words = overflow_words(runs, out)
    expected = outcome(subprocess.run([PLUMB, *words], text=True, capture_output=True,
                                      check=False), out)
    assert expected[0] == 3 and "rank 7 Torch.mul.3000.forward" in expected[1]
    assert "rank 2 is not judged" in expected[2] and len(expected[3]) == 2
    assert outcome(on_ray(words), out) == expected
    assert not out.exists()
    status, output, errors = with_kills(words, out / "overflow")
    killed = subprocess.CompletedProcess(words, status, output, errors)
    assert outcome(killed, out) == expected


def test_watchpoints(tmp_path, runs):
    """Over twelve ranks; without a result file shards stand where the command runs."""
    words = ["watch", str(runs[0]), "--when", "max > 2.99", "--fail-on", "hit"]
    expected = subprocess.run([PLUMB, *words], text=True, capture_output=True, check=False)
    assert expected.returncode == 1 and "Torch.mul.3000.forward" in expected.stdout
    found = on_ray(words, cwd=tmp_path)
    assert (found.returncode, found.stdout, found.stderr) == (1, expected.stdout, expected.stderr)
    assert not list(tmp_path.iterdir())
    out = tmp_path / "out"
    words.append(f"--output={out / 'w.csv'}")
    with_file = outcome(subprocess.run([PLUMB, *words], text=True, capture_output=True,
                                       check=False), out)
    status, output, errors = with_kills(words, out / "watch")
    killed = subprocess.CompletedProcess(words, status, output, errors)
    assert outcome(killed, out) == with_file


def test_precheck(tmp_path):
    """Of calls that pass, are wrong, crash and raise, with what is kept of them."""
    out = tmp_path / "out"
    settings = tmp_path / "config.json"
    settings.write_text(json.dumps({"run_ut": {"error_data_path": str(tmp_path)}}))
    words = ["precheck", str(small_model(6).write(tmp_path / "recorded")), f"--output={out}",
             "--device_type=cpu", "--sorted", "--save_error_data", f"--config={settings}",
             "--fail-on=error", f"--python={broken_python(tmp_path, prechecks.SPOILED)}"]
    expected = prechecks.outcome(subprocess.run([PLUMB, *words], text=True, capture_output=True,
                                                check=False), tmp_path)
    assert expected[0] == 1 and expected[1].startswith("wrong: Functional.softmax.")
    assert "ut_error_dataT/Functional.softmax.5.json" in expected[3]
    done = on_ray(words)
    assert not list(out.glob("*.shard"))
    assert prechecks.outcome(done, tmp_path) == expected
    status, output, errors = with_kills(words, out / "precheck")
    killed = subprocess.CompletedProcess(words, status, output, errors)
    assert prechecks.outcome(killed, tmp_path) == expected


@pytest.mark.parametrize(("device", "there", "room"), [
    ("", {"CPU": 8.0, "GPU": 2.0}, Room(parts=8)),
    ("cpu", {"CPU": 8.0, "GPU": 2.0}, Room(parts=8)),
    ("auto", {"CPU": 8.0}, Room(parts=8)),
    ("auto", {"CPU": 64.0, "GPU": 8.0}, Room("GPU", 0.125, 64)),
    ("auto", {"CPU": 64.0, "GPU": 8.0, "NPU": 16.0}, Room("NPU", 0.25, 64)),
    ("cuda", {"CPU": 4.0, "GPU": 8.0}, Room("GPU", 1.0, 4)),
    ("cuda", {"CPU": 1000.0, "GPU": 8.0}, Room("GPU", 0.125, 64)),
    ("cuda", {"CPU": 7.0, "GPU": 1.0}, Room("GPU", 0.1428, 7)),
    ("hpu", {"CPU": 64.0, "HPU": 8.0}, Room("HPU", 1.0, 8)),
    ("mydev", {"CPU": 64.0, "MYDEV": 8.0}, Room("MYDEV", 0.125, 64))])
def test_what_a_part_asks_for(device, there, room):
    assert room_for(device, there) == room


def test_a_device_that_no_node_has():
    with pytest.raises(ClusterError, match="--device_type npu: no node of the cluster has a NPU") \
            as raised:
        room_for("npu", {"CPU": 8.0, "GPU": 1.0})
    assert raised.value.status == 4


SEES_DEVICES = """
import sys, ray
from plumbline.cluster import Cluster, Job, Part, Where
ray.init("local", num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False,
         logging_level="error")
with Cluster(Where()) as cluster:
    for device in ("cuda", "auto"):
        parts = [Part("one", ["-c", 'echo "<${CUDA_VISIBLE_DEVICES-all}>"'])]
        ((_, done),) = cluster.run(Job("/bin/sh", "/", device), parts, [0])
        print(device, done.out.strip())
"""


def test_a_part_sees_the_device_that_it_asks_for():
    """Ray numbers it anew."""
    done = subprocess.run([PYTHON, "-c", SEES_DEVICES], text=True, capture_output=True,
                          check=False, timeout=TIME_LIMIT_S, env=environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["cuda <0>", "auto <0>"]


FROM_PYTHON = """
import sys, ray
from plumbline.cluster import ClusterError, compare_ranks
ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
*sides, program = sys.argv[1:]
result = compare_ranks(*sides, "--format=csv", program=program)
assert (result.exit_code, result.ok, result.complete) == (1, False, True)
assert result.details["name"] == "Torch.mul.3000.forward" and len(result.ranks) == 12
try:
    compare_ranks(*sides, "--rank=99", program=program)
except ClusterError as error:
    assert error.status == 3 and "no rank of that number" in str(error), error
else:
    raise AssertionError("rank 99 was compared")
"""


def test_from_python(tmp_path, runs):
    """With Ray started by the caller; what no worker can compare is one line."""
    program = shutil.which(PLUMB) or PLUMB
    done = subprocess.run([PYTHON, "-c", FROM_PYTHON, *runs, tmp_path / "out", program], text=True,
                          capture_output=True, check=False, timeout=TIME_LIMIT_S)
    assert done.returncode == 0, done.stderr


def test_what_cannot_be_begun_is_one_line(tmp_path, runs):
    """As from the program itself."""
    for words, python, status, text in [
            ([*runs], shutil.which("python3"), 4, "pip install 'plumbline-numerics[cluster]'"),
            ([*runs, "--shard", "0/2"], PYTHON, 2, "--shard: not with --engine"),
            ([*runs, "--address", "127.0.0.1:1"], PYTHON, 6, "no Ray cluster answers there"),
            ([runs[0] / "rank0", runs[1] / "rank0"], PYTHON, 2, "do not hold several ranks")]:
        done = subprocess.run([PLUMB, "compare", *map(str, words), "-o", tmp_path / "out",
                               "--engine", "ray"], text=True, capture_output=True, check=False,
                              env=environment(PLUMBLINE_PYTHON=str(python)), timeout=TIME_LIMIT_S)
        assert done.returncode == status, done.stderr
        assert done.stderr.count("\n") == 1 and text in done.stderr, done.stderr
        assert done.stderr.startswith("plumb compare: ")
