"""`plumb compare` on directories that hold several ranks and steps: pairs by number, one answer
over all, results taken over by the next run. Synthetic dumps with known answers, and one recording
of four real processes.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rank_dumps import INF, NAN, Entry, forward, number, tensor, write_rank, write_step
from ranks import PROLOGUE, run_ranks
from recording import PLUMB, config

import plumbline

SPIED = 2  # the rank that goes wrong


def compare(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs `plumb compare`."""
    return subprocess.run([PLUMB, "compare", *map(str, words)], text=True, capture_output=True,
                          check=False, timeout=60, **options)


def answer(done: subprocess.CompletedProcess[str]) -> str:
    """First line of the output."""
    return done.stdout.splitlines()[0]


def world(size: int) -> dict[str, Any]:
    """The process group of all ranks."""
    return {"type": "torch.ProcessGroup", "group_ranks": list(range(size)), "group_id": "a"}


def all_reduce(count: int, given: float, result: float, size: int) -> Entry:
    """A collective call of all ranks."""
    group = world(size)
    return forward(f"Distributed.all_reduce.{count}.forward", [tensor(given)],
                   [tensor(result), group], group=group)


def rank_entries(rank: int, size: int, fault: int | None = None) -> list[Entry]:
    """Computing before, between and after two collectives; on rank SPIED stage `fault` is wrong."""
    def at(stage: int) -> float:
        return 1.5 if fault == stage and rank == SPIED else 1.0

    def reached(stage: int) -> float:
        return 1.25 if fault is not None and fault < stage else 1.0

    own = 1.0 + rank / 8
    first, second = 4.5 * reached(1), 9.0 * reached(2)
    entries = [forward("Torch.add.0.forward", [tensor(own)], [tensor(own * at(0))]),
               all_reduce(0, own * at(0), first, size),
               forward("Torch.mul.0.forward", [tensor(first)], [tensor(2 * first * at(1))]),
               all_reduce(1, 2 * first * at(1), second, size),
               forward("Torch.mul.1.forward", [tensor(second)], [tensor(3 * second * at(2))])]
    return entries


def make_step(directory: Path, size: int = 4, fault: int | None = None) -> Path:
    """A step of `size` ranks."""
    return write_step(directory, {f"rank{r}": rank_entries(r, size, fault) for r in range(size)})


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A dump directory with one sound step."""
    make_step(tmp_path / "golden" / "step0")
    return tmp_path / "golden"


WRONG = ["Torch.add.0.forward", "Torch.mul.0.forward", "Torch.mul.1.forward"]


@pytest.mark.parametrize("fault", [0, 1, 2])
def test_fault_around_collectives_is_named(tmp_path, golden, fault):
    step = make_step(tmp_path / "target", fault=fault)
    done = compare(step, golden / "step0", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert answer(done) == f"first wrong call: rank 2 {WRONG[fault]}"
    names = sorted(path.name.rpartition("_")[0] for path in (tmp_path / "out").glob("*.xlsx"))
    assert names == [f"compare_result_rank{r}-rank{r}" for r in range(4)]
    summary = json.loads(next((tmp_path / "out").glob("compare_ranks_*.json")).read_text())
    assert [(o["rank"], o["name"]) for o in summary["origins"]] == [(2, WRONG[fault])]


def test_wrong_collective_itself(tmp_path, golden):
    """All inputs are right, and what comes out is not."""
    ranks = {}
    for rank in range(4):
        entries = rank_entries(rank, 4)
        entries[3] = all_reduce(1, 9.0, 7.0, 4)
        ranks[f"rank{rank}"] = entries
    write_step(tmp_path / "target", ranks)
    done = compare(tmp_path / "target", golden / "step0", "-o", tmp_path / "out", "--json")
    result = json.loads(done.stdout)
    assert result["answer"] == "first wrong call: rank 0 Distributed.all_reduce.1.forward"
    assert [o["rank"] for o in result["origins"]] == [0, 1, 2, 3]


def test_message_carries_the_fault(tmp_path):
    """Rank 0 receives what rank 1 computed; pipelines have no collectives."""
    def step(name: str, value: float) -> Path:
        return write_step(tmp_path / name, {
            "rank0": [forward("Distributed.recv.0.forward", [tensor(0.0), number(1)],
                              [tensor(value), number(1)]),
                      forward("Torch.mul.0.forward", [tensor(value)], [tensor(2 * value)])],
            "rank1": [forward("Torch.abs.0.forward", [tensor(1.0)], [tensor(1.0)]),
                      forward("Torch.neg.0.forward", [tensor(1.0)], [tensor(value)]),
                      forward("Distributed.send.0.forward", [tensor(value), number(0)],
                              [tensor(value), number(0)])]})
    done = compare(step("target", 5.0), step("golden", 3.0), "-o", tmp_path / "out", "--json")
    result = json.loads(done.stdout)
    assert [(o["rank"], o["name"]) for o in result["origins"]] == [(1, "Torch.neg.0.forward")]


def test_same_fault_on_every_rank(tmp_path):
    for name, value in (("target", 2.5), ("golden", 2.0)):
        write_step(tmp_path / name, {
            f"rank{r}": [forward("Torch.exp.0.forward", [tensor(1.0)], [tensor(value)])]
            for r in range(3)})
    done = compare(tmp_path / "target", tmp_path / "golden", "-o", tmp_path / "out")
    assert answer(done) == "first wrong call: rank 0 Torch.exp.0.forward"
    assert "the same call is the first on 2 ranks more" in done.stdout


@pytest.mark.parametrize("value", [NAN, INF, 0.0])
def test_bad_values_on_one_rank_are_never_good(tmp_path, golden, value):
    step = make_step(tmp_path / "target")
    shutil.rmtree(step / "rank3")
    entries = rank_entries(3, 4)
    entries[4] = forward("Torch.mul.1.forward", [tensor(9.0)], [tensor(value)])
    write_rank(step / "rank3", entries)
    done = compare(step, golden / "step0", "-o", tmp_path / "out", "--fail-on", "any")
    assert done.returncode == 1
    assert answer(done) == "first wrong call: rank 3 Torch.mul.1.forward"


# ---- pairs


def test_pairs_by_number_never_by_position(tmp_path):
    """Ranks 0, 2 and 10 against 2, 3 and 10."""
    def step(name: str, ranks: list[int]) -> Path:
        return write_step(tmp_path / name, {f"rank{r}": rank_entries(r, 11) for r in ranks})
    done = compare(step("target", [0, 2, 10]), step("golden", [2, 3, 10]), "-o",
                   tmp_path / "out", "--json")
    assert done.returncode == 3
    result = json.loads(done.stdout)
    assert [(r["rank"], r["state"]) for r in result["ranks"]] == [
        (0, "missing"), (2, "compared"), (3, "missing"), (10, "compared")]
    assert result["first_wrong_call"] is None and not result["complete"]
    assert result["answer"].startswith("not judged completely: 2 ranks missing on one side")


def test_filters(tmp_path):
    for name in ("target", "golden"):
        for step in range(3):
            make_step(tmp_path / name / f"step{step}",
                      fault=1 if name == "target" and step == 1 else None)
    sides = (tmp_path / "target", tmp_path / "golden")
    done = compare(*sides, "-o", tmp_path / "o1", "--json")
    result = json.loads(done.stdout)
    assert result["answer"] == "first wrong call: step 1 rank 2 Torch.mul.0.forward"
    assert [(r["step"], r["rank"]) for r in result["ranks"]] == [
        (s, r) for s in range(3) for r in range(4)]
    assert len(list((tmp_path / "o1" / "step1").glob("*.csv"))) == 4
    done = compare(*sides, "-o", tmp_path / "o2", "--step", "0,2", "--rank", "1,3", "--json")
    result = json.loads(done.stdout)
    assert [(r["step"], r["rank"]) for r in result["ranks"]] == [(0, 1), (0, 3), (2, 1), (2, 3)]
    assert result["first_wrong_call"] is None
    done = compare(*sides, "-o", tmp_path / "o3", "--step", "0,7")
    assert "step 7 was asked for and is on neither side" in done.stdout
    assert not answer(done).startswith("no wrong call")
    done = compare(*sides, "-o", tmp_path / "o4", "--rank", "9")
    assert done.returncode == 3 and not (tmp_path / "o4").exists()


def test_filters_choose_from_nothing(tmp_path, golden):
    rank = golden / "step0" / "rank0"
    done = compare(rank, rank, "-o", tmp_path / "out", "--rank", "3")
    assert done.returncode == 2 and "one rank (expected a step or dump directory" in done.stderr
    done = compare(rank / "dump.json", rank, "-o", tmp_path / "out", "-da", "--format", "csv")
    assert done.returncode == 0 and answer(done) == "no wrong call in 1 rank", done
    assert not list((tmp_path / "out").glob("diff_analyze*"))


def test_missing_step(tmp_path):
    for name, steps in (("target", [0, 1]), ("golden", [0, 2])):
        for step in steps:
            make_step(tmp_path / name / f"step{step}")
    done = compare(tmp_path / "target", tmp_path / "golden", "-o", tmp_path / "out")
    assert done.returncode == 3
    assert answer(done) == ("not judged completely: 8 ranks of 2 steps missing on one side; 4 "
                            "compared ranks of step 0 show no wrong call")
    assert "missing: step 1 rank 0: only the target has it" in done.stdout


def write_steps(root: Path, steps: list[int], wrong: int = -1) -> Path:
    """Steps of one process; one of them and all behind it may be wrong."""
    for step in steps:
        value = 2.0 if 0 <= wrong <= step else 1.0
        write_step(root / f"step{step}", {"rank": [
            forward("Torch.exp.0.forward", [tensor(1.0)], [tensor(value)])]})
    return root


def test_steps_of_one_process_are_called_steps(tmp_path):
    """As 8 ranks are called ranks."""
    golden = write_steps(tmp_path / "golden", [0, 1, 2, 3])
    target = write_steps(tmp_path / "target", [0, 2, 3])
    done = compare(target, golden, "-o", tmp_path / "o1")
    assert done.returncode == 3
    assert answer(done) == ("not judged completely: 1 step missing on one side; 3 compared steps "
                            "show no wrong call")
    assert "\nsteps: 3 compared, 0 taken over, 0 failed, 1 missing\n" in done.stdout
    (target / "step2" / "rank" / "dump.json").write_text("{")
    done = compare(target, golden, "-o", tmp_path / "o2", "--json")
    result = json.loads(done.stdout)
    assert result["unit"] == "step"
    assert result["answer"] == ("not judged completely: 1 step missing on one side, 1 step not "
                                "comparable; 2 compared steps show no wrong call")
    (target / "step3" / "rank" / "dump.json").write_text("{")
    done = compare(target, golden, "-o", tmp_path / "o4")
    assert answer(done).endswith("; 1 compared step shows no wrong call")
    for step in (0, 3):
        (target / f"step{step}" / "rank" / "dump.json").write_text("{")
    done = compare(target, golden, "-o", tmp_path / "o3")
    assert answer(done) == ("not judged: no step was compared; 1 step missing on one side, "
                            "3 steps not comparable")


def test_wrong_step_and_a_missing_one(tmp_path):
    """The answer names the step; the line of the next one says what is missing before it."""
    golden = write_steps(tmp_path / "golden", [0, 1, 2, 3])
    target = write_steps(tmp_path / "target", [0, 2, 3], wrong=2)
    done = compare(target, golden, "-o", tmp_path / "out", "--format", "html")
    assert answer(done) == ("first wrong call: step 2 rank 0 Torch.exp.0.forward (1 step missing "
                            "on one side)")
    assert "warning: step 2 rank 0: only the golden has step 1: " in done.stdout


def test_processes_without_rank(tmp_path):
    """One process each is a pair whatever its id; of several nobody knows which is which."""
    def step(name: str, pids: list[int]) -> Path:
        return write_step(tmp_path / name, {f"proc{pid}": rank_entries(0, 1) for pid in pids})
    done = compare(step("a", [11]), step("b", [12]), "-o", tmp_path / "o1", "--rank", "0")
    assert done.returncode == 0 and answer(done) == "no wrong call in 1 rank"
    done = compare(step("c", [11, 12]), step("d", [11, 12]), "-o", tmp_path / "o2")
    assert done.returncode == 3
    assert answer(done) == "not judged: no rank was compared; 4 ranks missing on one side"


def test_junk_is_no_rank(tmp_path, golden):
    step = make_step(tmp_path / "target")
    (step / "rank7").write_text("an archive")
    (step / "notes.txt").write_text("hello")
    (step / "rank1_backup").mkdir()
    done = compare(step, golden / "step0", "-o", tmp_path / "out")
    assert "rank7: not a directory (expected that of a rank)" in done.stdout
    assert answer(done) == "not judged completely: 1 note; 4 compared ranks show no wrong call"


# ---- one bad rank


def test_bad_rank_does_not_stop_the_others(tmp_path, golden):
    step = make_step(tmp_path / "target", fault=2)
    path = step / "rank1" / "dump.json"
    path.write_text(path.read_text()[:-200])
    (step / "rank3" / "dump.json").unlink()
    done = compare(step, golden / "step0", "-o", tmp_path / "out", "--json")
    assert done.returncode == 5
    result = json.loads(done.stdout)
    assert [r["state"] for r in result["ranks"]] == ["compared", "failed", "compared", "failed"]
    assert "text ends early" in result["ranks"][1]["error"]
    assert result["answer"] == ("first wrong call: rank 2 Torch.mul.1.forward (2 ranks not "
                                "comparable, 1 note)")
    done = compare(step, golden / "step0", "-o", tmp_path / "out2", "--salvage")
    assert done.returncode == 3 and "1 rank not judged completely" in answer(done)


def test_failing_write_keeps_the_finished_ones(tmp_path):
    """A limit on the size of files stands for a full disk."""
    for name in ("target", "golden"):
        many = [forward(f"Torch.exp.{i}.forward", [tensor(1.0)], [tensor(2.0)])
                for i in range(600)]
        write_step(tmp_path / name, {"rank0": rank_entries(0, 3), "rank1": many,
                                     "rank2": rank_entries(2, 3)})

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
    done = compare(tmp_path / "target", tmp_path / "golden", "-o", tmp_path / "out", "--format",
                   "csv", "--json", preexec_fn=limit)
    assert done.returncode == 6, done
    result = json.loads(done.stdout)
    assert [r["state"] for r in result["ranks"]] == ["compared", "failed", "compared"]
    names = sorted(p.name.split("_")[2] for p in (tmp_path / "out").glob("*.csv"))
    assert names == ["rank0-rank0", "rank2-rank2"]
    assert not list((tmp_path / "out").glob(".*.tmp"))
    done = compare(tmp_path / "target", tmp_path / "golden", "-o", tmp_path / "out", "--format",
                   "csv", "--json")
    assert [r["state"] for r in json.loads(done.stdout)["ranks"]] == [
        "taken over", "compared", "taken over"]


# ---- results that are taken over


def states(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The state of each rank."""
    return [rank["state"] for rank in json.loads(done.stdout)["ranks"]]


def test_results_are_taken_over_until_something_changes(tmp_path, golden):
    step = make_step(tmp_path / "target", fault=1)
    words = (step, golden / "step0", "-o", tmp_path / "out", "--json", "--format", "csv,json")
    first = compare(*words)
    assert states(first) == ["compared"] * 4
    second = compare(*words)
    assert states(second) == ["taken over"] * 4
    a, b = json.loads(first.stdout), json.loads(second.stdout)
    for result in (a, b):
        for rank in result["ranks"]:
            del rank["state"]
        del result["files"]
    assert a == b
    os.utime(step / "rank1" / "stack.json", ns=(1, 1))
    assert states(compare(*words)) == ["taken over", "compared", "taken over", "taken over"]
    next((tmp_path / "out").glob("compare_result_rank0*.csv")).unlink()
    assert states(compare(*words)) == ["compared"] + ["taken over"] * 3
    next((tmp_path / "out").glob("compare_result_rank3*.json")).write_text("cut")
    assert states(compare(*words)) == ["taken over"] * 3 + ["compared"]
    (tmp_path / "out" / ".compare_ranks" / "rank2-rank2.json").write_text('{"inputs": 1}')
    assert states(compare(*words)) == ["taken over", "taken over", "compared", "taken over"]
    assert states(compare(*words, "-f")) == ["compared"] * 4
    assert states(compare(*words, "-f", "--no-resume")) == ["compared"] * 4


def test_other_mapping_or_schema_is_another_result(tmp_path, golden):
    step = golden / "step0"
    mapping = tmp_path / "map.yaml"
    words = (step, step, "-o", tmp_path / "out", "--json", "--format", "csv", "-dm", mapping)
    name = "Torch.add.0.forward.output.0"
    mapping.write_text(f"{name}: {name}\n")
    assert states(compare(*words)) == ["compared"] * 4
    assert states(compare(*words)) == ["taken over"] * 4
    mapping.write_text(f"{name}: {name}\n# changed\n")
    assert states(compare(*words)) == ["compared"] * 4
    assert states(compare(*words, "--schema", "newest")) == ["compared"] * 4
    names = {path.name.rpartition("_")[0] for path in (tmp_path / "out").glob("*.csv")}
    assert {"compare_result_rank0", "compare_result_rank0-rank0"} <= names


def test_other_dump_in_the_same_output_directory(tmp_path, golden):
    """Nothing is taken over from another target."""
    first = make_step(tmp_path / "a", fault=0)
    second = make_step(tmp_path / "b", fault=1)
    out = tmp_path / "out"
    assert answer(compare(first, golden / "step0", "-o", out)).endswith("Torch.add.0.forward")
    assert answer(compare(second, golden / "step0", "-o", out)).endswith("Torch.mul.0.forward")


@pytest.mark.parametrize("text", ["", "{}", '{"inputs": "x", "results": "y", "outcome": "{}"}'])
def test_damaged_store_is_not_used(tmp_path, golden, text):
    words = (golden / "step0", golden / "step0", "-o", tmp_path / "out", "--json")
    compare(*words)
    for path in (tmp_path / "out" / ".compare_ranks").glob("*.json"):
        stored = json.loads(path.read_text())
        path.write_text(json.dumps({**stored, "outcome": "[1]"}) if text == "{}" else text)
    assert states(compare(*words)) == ["compared"] * 4


def test_threads_do_not_change_the_answer(tmp_path, golden):
    step = make_step(tmp_path / "target", fault=0)
    texts = set()
    for threads in (1, 2, 8):
        out = tmp_path / f"out{threads}"
        done = compare(step, golden / "step0", "-o", out, "--threads", threads, "--format", "csv")
        texts.add("".join(line for line in done.stdout.splitlines() if "file: " not in line))
        texts.add("".join(path.read_text() for path in sorted(out.glob("*.csv"))))
    assert len(texts) == 2


# ---- from Python


def test_python_says_what_the_program_says(tmp_path, golden):
    step = make_step(tmp_path / "target", fault=1)
    result = plumbline.compare_ranks(step, golden / "step0", tmp_path / "o1", formats="csv",
                                     diff_analyze=True)
    done = compare(step, golden / "step0", "-o", tmp_path / "o2", "--format", "csv", "--json",
                   "-da")
    facts = json.loads(done.stdout)
    assert result.answer == facts["answer"] == "first wrong call: rank 2 Torch.mul.0.forward"
    assert result.exit_code == 1 and result.first_wrong_call == facts["first_wrong_call"]
    assert result.counts == facts["counts"] and len(result.ranks) == 4 and result.complete
    assert result.summary.splitlines()[0] == result.answer
    assert sorted(Path(file).name.split("_")[0] for file in result.files) == ["compare", "diff"]
    with pytest.raises(TypeError, match="no truth value"):
        bool(result)
    result = plumbline.compare_ranks(step, golden / "step0", tmp_path / "o1", ranks=[0, 2],
                                     formats="csv", diff_analyze=True)
    assert [rank["state"] for rank in result.ranks] == ["taken over"] * 2


def test_python_errors(tmp_path, golden):
    step = golden / "step0"
    for words, error in (({"formats": "pdf"}, ValueError), ({"fail_on": "never"}, ValueError),
                         ({"threads": -1}, ValueError), ({"steps": [0]}, ValueError),
                         ({"ranks": [9]}, FileNotFoundError)):
        with pytest.raises(error):
            plumbline.compare_ranks(step, step, tmp_path / "out", **words)
    with pytest.raises(FileNotFoundError):
        plumbline.compare_ranks(step, tmp_path / "nowhere", tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---- four real processes

TRAINING = PROLOGUE + """
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[4])
join()
weight = torch.linspace(-1.0, 1.0, 16).reshape(4, 4)
def wrong(stage, fault, value):
    return torch.mul(value, 1.5 if stage == fault and rank == 2 else 1.0)
for fault in (None, 0, 1, 2):
    debugger.start()
    x = torch.matmul(weight, torch.full((4,), 1.0 + rank / 8))
    x = wrong(0, fault, x)
    dist.all_reduce(x)
    x = wrong(1, fault, torch.relu(x))
    parts = [torch.zeros(4) for _ in range(world)]
    dist.all_gather(parts, x)
    x = wrong(2, fault, torch.tanh(torch.stack(parts).sum(0)))
    torch.exp(x)
    debugger.stop()
    debugger.step()
leave()
"""


def test_recorded_faults_around_collectives(tmp_path):
    """Steps 1 to 3 of one recording have a fault on rank 2; step 0 is the reference."""
    config(tmp_path, task="statistics", level="L1")
    run_ranks(tmp_path, TRAINING, tmp_path / "config.json", world=4)
    dumps = tmp_path / "out"
    for step in (1, 2, 3):
        done = compare(dumps / f"step{step}", dumps / "step0", "-o", tmp_path / f"o{step}",
                       "--json", "--format", "csv")
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        first = result["first_wrong_call"]
        # The factor is an argument of the call that goes wrong.
        assert (first["rank"], first["name"]) == (2, f"Torch.mul.{step - 1}.forward"), first
        assert [o["rank"] for o in result["origins"]] == [2]
        assert result["complete"]
