"""Commands with `--shard I/N` and `plumb merge`: the parts together give the bytes and the status
of the one command. Names of files hold the time; it is blanked out. (Of `plumb compare`:
test_shards.py.)
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from rank_dumps import NAN, forward, log, scenarios, tensor, write_rank, write_step
from recording import PLUMB
from watch_dumps import GraphTree

TIME = re.compile(r"(anomaly_analyze|overflow_trace)_\d{10,}")

Outcome = tuple[int, str, str, dict[str, str]]


def plumb(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs `plumb`."""
    return subprocess.run([PLUMB, *map(str, words)], text=True, capture_output=True, check=False,
                          timeout=120)


def outcome(done: subprocess.CompletedProcess[str], out: Path) -> Outcome:
    """All that a command gives: status, output, errors, files; they are taken away."""
    files = {TIME.sub(r"\1_T", path.name): TIME.sub(r"\1_T", path.read_text())
             for path in out.glob("*") if path.suffix != ".shard"}
    shutil.rmtree(out, ignore_errors=True)
    return (done.returncode, TIME.sub(r"\1_T", done.stdout), TIME.sub(r"\1_T", done.stderr), files)


def merged(count: int, out: Path, *words: object) -> Outcome:
    """What the parts give together, the last one made first."""
    for index in reversed(range(count)):
        done = plumb(*words, "--shard", f"{index}/{count}")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"shard {index} of {count}: ")
    return outcome(plumb("merge", out), out)


@pytest.mark.parametrize("name", scenarios())
def test_overflow_of_known_answers(tmp_path, name):
    ranks, expected = scenarios()[name]
    step, out = write_step(tmp_path / "step0", ranks), tmp_path / "out"
    words = ["overflow", step, "-o", out, "--fail-on-anomaly"]
    whole = outcome(plumb(*words), out)
    assert (whole[0] == 3) == bool(expected) or whole[0] == 3
    for count in (1, 2, 5):
        assert merged(count, out, *words) == whole


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """Three steps of three ranks: NaN in the second one, and a damaged rank, and one without a
    file; the third step is damaged throughout."""
    for step in range(3):
        for rank in range(3):
            entries = [forward(f"Torch.add.{i}.forward", [tensor()], [tensor()]) for i in range(9)]
            if (step, rank) == (1, 2):
                entries[4] = log(NAN)
            write_rank(tmp_path / f"run/step{step}/rank{rank}", entries)
    (tmp_path / "run/step1/rank0/dump.json").write_text("]")
    (tmp_path / "run/step0/rank1/stack.json").unlink()
    for rank in range(3):
        (tmp_path / f"run/step2/rank{rank}/dump.json").write_text("]")
    return tmp_path / "run"


@pytest.mark.parametrize("more", [[], ["--json"], ["--allow-partial"], ["--fail-on-anomaly"]])
def test_overflow_of_several_steps(tmp_path, steps, more):
    """What one process does not come to, behind the finding, says nothing in parts either."""
    out = tmp_path / "out"
    words = ["overflow", steps, "-o", out, *more]
    whole = outcome(plumb(*words), out)
    assert "Torch.log.0.forward" in whole[1] and whole[2].count("is not judged") == 2
    for count in (1, 3, 16):
        assert merged(count, out, *words) == whole


def test_overflow_that_no_rank_allows(tmp_path, steps):
    """The error of one process, with its status."""
    out = tmp_path / "out"
    words = ["overflow", steps / "step2", "-o", out]
    whole = outcome(plumb(*words), out)
    assert whole[0] == 2 and whole[2].startswith("plumb overflow: ")
    assert merged(2, out, *words) == whole


def line_of(done: subprocess.CompletedProcess[str]) -> str:
    """The only line on stderr."""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_parts_that_do_not_fit_are_one_line(tmp_path, steps):
    out = tmp_path / "out"
    words = ["overflow", steps, "-o", out]
    for more, text in [(["--grade"], "--shard: is about the search"),
                       (["--engine", "ray"], "--shard: not with --engine"),
                       (["-d", steps], "--shard: is about the search")]:
        done = plumb(*words, "--shard", "0/2", *more)
        assert done.returncode == 2 and text in line_of(done)
    assert plumb(*words, "--shard", "2/2").returncode == 2
    done = plumb(*words, "--address", "h:1")
    assert done.returncode == 2 and "--address: belongs to --engine" in line_of(done)
    missing = plumb("overflow", tmp_path / "nothing", "--shard", "0/2")
    assert missing.returncode == 2 and "no such directory" in line_of(missing)

    assert plumb(*words, "--shard", "0/2").returncode == 0
    done = plumb("merge", out)
    assert done.returncode == 3
    assert "of 2 shards missing: 1. Run `plumb overflow ... --shard 1/2`" in line_of(done)
    assert plumb(*words, "--json", "--shard", "1/2").returncode == 0
    done = plumb("merge", out)
    assert done.returncode == 2 and "of two commands" in line_of(done)
    assert plumb(*words, "--shard", "1/2").returncode == 0
    shutil.rmtree(steps / "step0/rank0")
    write_rank(steps / "step0/rank0", [log(NAN)])
    done = plumb("merge", out)
    assert done.returncode == 2 and "rank0: has changed since" in line_of(done)
    (out / "overflow_1_of_2.shard").write_text("no shard\n")
    assert plumb("merge", out).returncode == 5


RULES = """version: 1
rules:
  - {name: twice, when: "max > 0.5", for: 2}
  - {name: still, when: WNC}
"""


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Four steps of three ranks: a weight that stands still on rank 1, NaN at step 2 of rank 2 and
    at step 3 of rank 0, and a damaged file."""
    tree = GraphTree(tmp_path / "dump")
    for step in range(4):
        for rank in range(3):
            values = np.full(5, 1 if rank == 1 else 1 + step, np.float32)
            tree.add("fc.weight", values, step, rank, kind="Parameter")
            out = np.full(5, np.nan if (step, rank) in ((2, 2), (3, 0)) else step, np.float32)
            path = tree.add("a", out, step, rank, kind="ReLU")
            if (step, rank) == (1, 1):
                path.write_bytes(path.read_bytes()[:90])
    (tmp_path / "rules.yaml").write_text(RULES)
    return tree.root


WATCHES = {
    "every part by itself": ["--when", "TO", "--when", "max > 0.5", "--all-rows"],
    "against earlier steps": ["--rules", "RULES", "--when", "TO", "--fail-on", "hit"],
    "up to the first": ["--rules", "RULES", "--when", "TO", "--first", "--json"],
    "chosen": ["--when", "WNC", "--steps", "2-", "--ranks", "1-2", "--fail-on", "any"],
    "against another run": ["--when", "WNC", "--when", "TO", "--against", "DUMP"],
    "recommended": ["--recommended", "--nodes", "weight", "--json"],
    "of no such name": ["--when", "TO", "--nodes", "nothing"],
}


@pytest.mark.parametrize("name", WATCHES)
def test_watchpoints(tmp_path, weights, name):
    """With tables, whose rows have an order."""
    out = tmp_path / "out"
    places = {"RULES": tmp_path / "rules.yaml", "DUMP": weights}
    words = ["watch", weights, *(places.get(word, word) for word in WATCHES[name])]
    words += [f"--output={out / file}" for file in ("w.csv", "w.jsonl", "w.sarif")]
    whole = outcome(plumb(*words), out)
    if name == "of no such name":
        assert whole[0] == 3 and whole[2].startswith("plumb watch: ")
    else:
        assert "hit" in whole[1] and len(whole[3]) == 3
    for count in (1, 2, 7):
        assert merged(count, out, *words) == whole


def test_watchpoints_of_recorded_calls(tmp_path, steps):
    """Of which some ranks cannot be read."""
    out = tmp_path / "out"
    words = ["watch", steps, "--when", "TO", "--fail-on", "any", "-o", out / "w.csv"]
    whole = outcome(plumb(*words), out)
    assert whole[0] == 1 and "Torch.log.0.forward" in whole[1]
    assert merged(3, out, *words) == whole
    shutil.rmtree(steps / "step0")
    shutil.rmtree(steps / "step1")
    whole = outcome(plumb(*words), out)
    assert whole[0] == 5
    assert merged(2, out, *words) == whole


def test_watchpoints_whose_rules_changed(tmp_path, weights):
    out, rules = tmp_path / "out", tmp_path / "rules.yaml"
    words = ["watch", weights, "--rules", rules, "-o", out / "w.csv"]
    for index in (0, 1):
        assert plumb(*words, "--shard", f"{index}/2").returncode == 0
    rules.write_text(RULES.replace("0.5", "0.7"))
    done = plumb("merge", out)
    assert done.returncode == 2 and "rules.yaml: has changed since" in line_of(done)
    rules.write_text(RULES)
    next(weights.rglob("*.npy")).parent.joinpath("more.txt").touch()
    done = plumb("merge", out)
    assert done.returncode == 2 and "has changed since" in line_of(done)
