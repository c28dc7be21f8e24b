"""`plumb compare --shard I/N` and `plumb merge`: the parts of a comparison together give the bytes
of the whole, and nothing else passes for them. Names of files hold the time; it is blanked out.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from rank_dumps import forward, number, tensor, write_step
from recording import PLUMB
from test_compare_ranks import make_step

PACKED = re.compile(rb"^(\w+ )([\w+/]+=*)$", re.MULTILINE)
TIME = re.compile(rb"(compare_result_[\w-]+?|compare_ranks|diff_analyze)_\d{14,}(_\d+)?")


def plumb(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs `plumb`."""
    return subprocess.run([PLUMB, *map(str, words)], text=True, capture_output=True, check=False,
                          timeout=120)


def timeless(data: bytes) -> bytes:
    """The same with no time in the names of result files, also where a page has them packed."""
    return TIME.sub(rb"\1_T", PACKED.sub(unpacked, data))


def unpacked(found: re.Match[bytes]) -> bytes:
    """A line of a page's data."""
    return found[1] + zlib.decompress(base64.b64decode(found[2]), -15)


def tree(out: Path) -> dict[str, bytes]:
    """All result files by name; not what the next run takes over, nor the shards."""
    files = [path for path in out.rglob("*")
             if path.is_file() and ".compare_ranks" not in path.parts and path.suffix != ".shard"]
    return {timeless(os.fsencode(path.relative_to(out))).decode(): timeless(path.read_bytes())
            for path in files}


def facts(out: Path, done: subprocess.CompletedProcess[str]) -> tuple[int, bytes, dict[str, bytes]]:
    """All that a comparison gives: status, output, files."""
    assert not done.stderr, done.stderr
    return done.returncode, timeless(done.stdout.encode()), tree(out)


def whole(out: Path, *words: object) -> tuple[int, bytes, dict[str, bytes]]:
    """What one process gives; the directory is free again."""
    found = facts(out, plumb("compare", *words, "-o", out))
    shutil.rmtree(out)
    return found


def shard(out: Path, place: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Compares one part."""
    return plumb("compare", *words, "-o", out, "--shard", place)


def shards(out: Path, count: int, *words: object) -> None:
    """Compares all parts, the last one first."""
    for index in reversed(range(count)):
        done = shard(out, f"{index}/{count}", *words)
        assert done.returncode == 0, done.stderr


def two_steps(directory: Path, fault: int | None = None) -> Path:
    """A dump directory of two steps with four ranks."""
    for step in (0, 1):
        make_step(directory / f"step{step}", fault=fault if step else None)
    return directory


WORDS = ["--format", "csv,json,html,sqlite", "-da", "--check_collectives", "--fail-on", "wrong"]


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """A run that goes wrong in its second step, and a sound one that has one rank more there."""
    target, golden = two_steps(tmp_path / "target", 1), two_steps(tmp_path / "golden")
    shutil.copytree(golden / "step1" / "rank3", golden / "step1" / "rank4")
    shutil.rmtree(target / "step0" / "rank3")
    (target / "step1" / "rank0" / "dump.json").write_text("{")
    return target, golden


@pytest.mark.parametrize("count", [1, 2, 5, 64])
def test_parts_give_the_bytes_of_the_whole(tmp_path, runs, count):
    """With a wrong call, a missing rank and a damaged one."""
    out = tmp_path / "out"
    expected = whole(out, *runs, *WORDS)
    shards(out, count, *runs, *WORDS)
    files = sorted(out.glob("*.shard"))
    assert len(files) == count
    merged = facts(out, plumb("merge", *reversed(files)))
    assert merged == expected
    assert expected[0] == 5 and b"first wrong call: step 1 rank 2" in expected[1]
    # Again, from the directory, and with one part named twice.
    assert facts(out, plumb("merge", out, files[0])) == expected


def test_other_ranks_explain_what_arrives(tmp_path):
    """A rank is judged a second time behind what another sent: by whoever merges."""
    def run(name: str, large: float, made: float) -> Path:
        sent = tensor(made, -1, Norm=1.5, Mean=made / 4)
        return write_step(tmp_path / name, {
            "rank1": [forward("Torch.sub.0.forward",
                              [tensor(large, -1000, Norm=1500, Mean=large / 4),
                               tensor(999, -1000, Norm=1500, Mean=999 / 4)], [sent]),
                      forward("Distributed.send.0.forward", [sent, number(0)], [sent])],
            "rank0": [forward("Distributed.recv.0.forward", [None, number(1)], [sent]),
                      forward("Torch.abs.0.forward", [sent], [sent])]})

    sides = run("target", 1000.0002, 1.0001), run("golden", 1000, 1)
    out = tmp_path / "out"
    expected = whole(out, *sides, "--format", "csv,json")
    assert expected[1].startswith(b"no wrong call")
    shards(out, 2, *sides, "--format", "csv,json")
    alone = json.loads(next(out.glob("compare_result_rank0-rank0_*.json")).read_text())
    assert alone["first_wrong_call"] is not None
    assert facts(out, plumb("merge", out)) == expected
    assert facts(out, plumb("merge", out)) == expected


def test_json_and_status_are_those_of_the_command(tmp_path, runs):
    out = tmp_path / "out"
    words = [*runs, "--format", "csv", "--json", "--rank", "1,2", "--fail-on", "broken"]
    expected = whole(out, *words)
    shards(out, 2, *words)
    assert facts(out, plumb("merge", out)) == expected
    assert expected[0] == 1 and json.loads(expected[1])["first_wrong_call"]["rank"] == 2


def test_a_part_that_runs_again_leaves_nothing_twice(tmp_path, runs):
    """As when a node dies before its shard is written."""
    out = tmp_path / "out"
    words = [*runs, "--format", "csv,html"]
    expected = whole(out, *words)
    shards(out, 2, *words)
    (out / "compare_ranks_0_of_2.shard").unlink()
    assert shard(out, "0/2", *words).returncode == 0
    for store in out.rglob(".compare_ranks/rank*.json"):
        store.unlink()  # killed before its result was noted
    assert shard(out, "0/2", *words).returncode == 0
    assert facts(out, plumb("merge", out)) == expected
    # After the answer another run begins, which takes over what is there.
    assert ": 0 compared, 3 taken over, 1 failed" in shard(out, "0/2", *words).stdout


def line_of(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of an error."""
    assert not done.stdout and done.stderr.count("\n") == 1, done.stdout + done.stderr
    return done.stderr


def test_missing_parts_are_named(tmp_path, runs):
    out = tmp_path / "out"
    for index in (0, 2):
        shard(out, f"{index}/5", *runs)
    done = plumb("merge", out)
    assert done.returncode == 3
    assert "of 5 shards missing: 1, 3, 4. Run `plumb compare ... --shard 1/5`" in line_of(done)
    assert not list(out.glob("compare_ranks_*.json"))


def test_parts_of_other_comparisons_are_refused(tmp_path, runs):
    out = tmp_path / "out"
    shard(out, "0/2", *runs)
    first = (out / "compare_ranks_0_of_2.shard").rename(tmp_path / "first.shard")
    for words, text in [([*runs, "--rank", "1,2"], "of two commands"),
                        ([*reversed(runs)], "of two commands")]:
        shard(out, "1/2", *words)
        done = plumb("merge", first, out / "compare_ranks_1_of_2.shard")
        assert done.returncode == 2 and text in line_of(done)
    shard(out, "1/3", *runs)
    done = plumb("merge", first, out / "compare_ranks_1_of_3.shard")
    assert done.returncode == 2 and "of 2 and of 3 shards" in line_of(done)


def test_recordings_that_changed_since_are_refused(tmp_path, runs):
    out = tmp_path / "out"
    shards(out, 2, *runs)
    changed = runs[0] / "step1" / "rank1" / "dump.json"
    changed.write_text(changed.read_text() + "\n")
    done = plumb("merge", out)
    assert done.returncode == 2 and "step 1 rank 1 has changed since" in line_of(done)
    assert not list(out.glob("compare_ranks_*.json"))
    (runs[1] / "step1" / "rank5").mkdir()
    shard(out, "1/2", *runs)
    done = plumb("merge", out)
    assert done.returncode == 2 and "the ranks of the recordings were not the same" in line_of(done)


def test_damaged_parts_are_no_parts(tmp_path, runs):
    out = tmp_path / "out"
    shards(out, 1, *runs)
    path = out / "compare_ranks_0_of_1.shard"
    good = path.read_bytes()
    cuts = [good[:size] for size in range(0, len(good), len(good) // 40)]
    flips = [good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]
             for at in range(0, len(good), len(good) // 40)]
    for bad in (*cuts, *flips, good + b"{}\n", b"\n", b"\x00"):
        path.write_bytes(bad)
        done = plumb("merge", path)
        assert done.returncode in (4, 5), (done.returncode, done.stderr)
        assert "compare_ranks_0_of_1.shard" in line_of(done)


@pytest.mark.parametrize("place", ["", "1", "1/1", "2/2", "-1/2", "0/0", "a/b", "0/1000001"])
def test_places_that_are_none(tmp_path, runs, place):
    done = shard(tmp_path / "out", place, *runs)
    assert done.returncode == 2 and "I/N" in line_of(done)
    assert done.stderr.startswith(f'plumb compare: --shard: "{place}" is ') or not place
    assert ("up to 1000000" in done.stderr) == (place == "0/1000001")


def test_what_has_no_parts(tmp_path, runs):
    rank = runs[0] / "step0" / "rank1"
    done = shard(tmp_path / "out", "0/2", rank, rank)
    assert done.returncode == 2 and "do not hold several ranks or steps" in line_of(done)
    done = plumb("merge", tmp_path)
    assert done.returncode == 3 and "has no shards" in line_of(done)
    assert "plumb compare, precheck, overflow or watch wrote with --shard" in done.stderr
    told = " ".join(plumb("merge", "--help").stdout.split())
    assert "3 shards are missing (a line says which), or there are none" in told
    done = plumb("merge", rank / "dump.json")
    assert done.returncode == 5 and "is no shard" in line_of(done)
    done = plumb("merge", "-o", tmp_path / "out", rank / "dump.json")
    assert done.returncode == 2 and "-o" in line_of(done)


def test_second_place_of_the_command_is_refused(tmp_path, runs):
    """Relative paths mean something else there."""
    out = tmp_path / "out"
    shards(out, 1, *runs)
    done = subprocess.run([PLUMB, "merge", out / "compare_ranks_0_of_1.shard"], text=True,
                          capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == 2 and "Run plumb merge there" in line_of(done)


EXAMPLES = Path(__file__).parents[2] / "examples" / "cluster"
# What srun does with a script that does not ask for nodes.
SRUN = """#!/bin/sh
shift
for SLURM_PROCID in $(seq 0 $((SLURM_NTASKS - 1))); do export SLURM_PROCID; "$@" || exit 1; done
"""


def test_example_for_slurm(tmp_path, runs):
    """The script itself, where the tasks run one after the other."""
    out = tmp_path / "out"
    words = ["--format", "csv", "--fail-on", "wrong"]
    expected = whole(out, *runs, *words)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "srun").write_text(SRUN)
    (programs / "srun").chmod(0o755)
    (programs / "plumb").symlink_to(shutil.which(PLUMB) or PLUMB)
    done = subprocess.run(["bash", EXAMPLES / "compare.sbatch", *runs, out, *words], text=True,
                          capture_output=True, check=False, env=os.environ | {
                              "PATH": f"{programs}:{os.environ['PATH']}", "SLURM_NTASKS": "3"})
    merged = done.stdout[done.stdout.index("first wrong call"):]
    assert (done.returncode, timeless(merged.encode()), tree(out)) == expected


def container(name: str) -> dict[str, Any]:
    """The only one of a manifest."""
    spec = yaml.safe_load((EXAMPLES / name).read_text())["spec"]
    (found,) = spec["template"]["spec"]["containers"]
    return {"parts": spec.get("completions")} | found


def test_examples_for_kubernetes(tmp_path, runs):
    """Their commands, for each index of the job."""
    assert runs[0].parent == tmp_path
    runs[0].rename(tmp_path / "new")
    runs[1].rename(tmp_path / "good")

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        assert command[0] == "plumb"
        return subprocess.run([PLUMB, *command[1:]], text=True, capture_output=True, check=False,
                              cwd=tmp_path)

    job, merge = container("compare-job.yaml"), container("merge-job.yaml")
    assert job["workingDir"] == merge["workingDir"]
    words = job["command"]
    part = words.index("--shard")
    alone = run(words[:part])
    expected = facts(tmp_path / "result", alone)
    shutil.rmtree(tmp_path / "result")
    for index in range(job["parts"]):
        done = run([word.replace("$(JOB_COMPLETION_INDEX)", str(index)) for word in words])
        assert done.returncode == 0, done.stderr
    assert facts(tmp_path / "result", run(merge["command"])) == expected


def typed(line: str) -> dict[str, Any]:
    """One line of a shard."""
    loaded: dict[str, Any] = json.loads(line)
    return loaded


def test_what_a_shard_holds(tmp_path, runs):
    """A line with the command, one per rank, one that closes it."""
    out = tmp_path / "out"
    shards(out, 4, *runs)
    lines = (out / "compare_ranks_1_of_4.shard").read_text().splitlines()
    head, *ranks, end = map(typed, lines)
    assert (head["format"], head["version"], head["shard"], head["of"]) == ("plumbline shard", 2, 1,
                                                                           4)
    assert head["words"] == [*map(str, runs), f"--output={out}"]
    assert [(rank["step"], rank["target"]["rank"]) for rank in ranks] == [(0, 1), (1, 1)]
    assert end["ranks"] == 2
