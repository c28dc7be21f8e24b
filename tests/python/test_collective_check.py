"""`plumb compare --check_collectives`: what collectives did, judged by the recordings of the ranks
themselves. Real processes over gloo, sound ones and such whose communication goes wrong.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ranks import END, PROLOGUE, run_ranks
from recording import PLUMB, config

import plumbline

# Stands below what plumbline records: a library of communication that goes wrong.
FAULTS = """
join()
halves = [dist.new_group([0, 1]), dist.new_group([2, 3])] if world == 4 else []
wronged = ("all_reduce", "recv", "broadcast", "scatter", "all_gather", "all_gather_into_tensor")
right = {name: getattr(dist, name) for name in wronged}
reduced = 0
def wrong_all_reduce(tensor, *args, **kwargs):
    global reduced
    reduced += 1
    if reduced == 3:  # another group than the caller named
        return right["all_reduce"](tensor, group=halves[rank // 2])
    result = right["all_reduce"](tensor, *args, **kwargs)
    if reduced == 2 and rank == 1: tensor[0] += 100
    return result
def wrong_recv(tensor, *args, **kwargs):
    result = right["recv"](tensor, *args, **kwargs)
    tensor[1] = -50
    return result
# The same wrong numbers on every rank.
def wrong_broadcast(tensor, *args, **kwargs):
    right["broadcast"](tensor, *args, **kwargs); tensor[2] = 70
def wrong_scatter(tensor, parts=None, src=0):
    right["scatter"](tensor, parts[::-1] if parts else parts, src)
def wrong_all_gather(tensor_list, tensor):
    right["all_gather"](tensor_list, tensor); tensor_list[1].zero_()
def wrong_all_gather_into_tensor(output_tensor, input_tensor):
    right["all_gather_into_tensor"](output_tensor, input_tensor); output_tensor[:8] = 2
if sys.argv[5] == "wrong":
    for module in (dist, dist.distributed_c10d):
        for name in wronged: setattr(module, name, globals()["wrong_" + name])
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[4])
"""

CALLS = """
mine = torch.arange(1, 9, dtype=torch.float32) * (rank + 1)
full = lambda size: torch.zeros(size)
debugger.start()
for _ in range(3):
    total = mine.clone(); dist.all_reduce(total)
work = dist.all_reduce(mine.clone(), async_op=True); work.wait()
copy = mine.clone(); dist.broadcast(copy, src=0)
dist.all_gather([full(8) for _ in range(world)], mine)
dist.all_gather_into_tensor(output_tensor=full(8 * world), input_tensor=mine)
dist.reduce_scatter_tensor(full(8 // world), mine)
dist.all_to_all_single(full(8), mine)
dist.scatter(full(8), [mine + i for i in range(world)] if rank == 1 else None, src=1)
others, again = dist.new_group([0, 1]), dist.new_group([0, 1])
if rank < 2: dist.all_reduce(mine.clone(), group=others)
started = {0: [(others, mine), (again, -mine)], 1: [(again, -mine), (others, mine)]}.get(rank, [])
works = [dist.all_reduce(own.clone(), group=one, async_op=True) for one, own in started]
for work in works: work.wait()
if rank == 0: dist.send(mine, 1)
if rank == 1: dist.recv(full(8), 0)
right, left = (rank + 1) % world, (rank - 1) % world
for work in [dist.isend(mine, right), dist.irecv(full(8), left)]: work.wait()
ring = [dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, full(8), left)]
for work in dist.batch_isend_irecv(ring): work.wait()
""" + END

HELD = 3 + 1 + 1 + 2 + 1 + 1 + 1 + 1 + 2 + 1  # one per collective, the message of send and recv


def record(directory: Path, world: int, kind: str) -> Path:
    directory.mkdir(exist_ok=True)
    run_ranks(directory, PROLOGUE + FAULTS + CALLS, config(directory), kind, world=world)
    return directory / "out" / "step0"


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("right"), 4, "right")


def compare(*words: object) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    done = subprocess.run([PLUMB, "compare", *map(str, words), "--check_collectives", "--json"],
                          text=True, capture_output=True, check=False, timeout=60)
    return json.loads(done.stdout), done


def test_sound_communication_holds(tmp_path: Path, right: Path) -> None:
    result, done = compare(right, right, "-o", tmp_path, "--fail-on", "any")
    assert (done.returncode, result["answer"]) == (0, "no wrong call in 4 ranks")
    (both,) = result["collectives"]
    assert both["side"] == "both sides"
    # With the ring: four messages of isend and irecv, four of the batch.
    assert (both["held"], both["violated"], both["not_judged"]) == (HELD + 8, 0, 0), both
    # Two groups have the same members, and the two ranks start their calls in another order.
    (order,) = both["orders"]
    assert "ranks 0,1 with the same members: rank 0 Distributed.all_reduce.5.forward is" in order


def test_faults_of_communication_are_told_and_change_no_answer(tmp_path: Path, right: Path) -> None:
    wrong = record(tmp_path / "wrong", 4, "wrong")
    result, done = compare(wrong, right, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    target, golden = result["collectives"]
    assert (golden["side"], golden["violated"], golden["held"]) == ("golden", 0, HELD + 8)
    assert (target["violated"], target["held"], target["not_judged"]) == (7, HELD + 1, 0)
    told = {found["name"]: found for found in target["violations"]}
    assert set(told) == {f"Distributed.{call}.forward" for call in (
        "all_reduce.1", "all_reduce.2", "recv.0", "broadcast.0", "scatter.0", "all_gather.0",
        "all_gather_into_tensor.0")}
    for call, item, source in [
        ("broadcast", "output.0", "rank 0 Distributed.broadcast.0.forward input_args.0"),
        ("scatter", "output.0", "rank 1 Distributed.scatter.0.forward input_args.1.0"),
        ("all_gather", "output.0.1", "rank 1 Distributed.all_gather.0.forward input_args.1"),
        ("all_gather_into_tensor", "output.0", "input_kwargs.input_tensor of all ranks together"),
    ]:
        wrong_call = told[f"Distributed.{call}.0.forward"]
        assert (wrong_call["item"], wrong_call["source"]) == (item, source), wrong_call
    changed = told["Distributed.all_reduce.1.forward"]
    assert (changed["ranks"], changed["group"]) == ([1], [0, 1, 2, 3])
    assert (changed["item"], changed["statistic"]) == ("output.0", "Max")
    assert (changed["expected"], changed["got"]) == ("80.0", "110.0")
    assert told["Distributed.all_reduce.2.forward"]["ranks"] == [2, 3]
    arrived = told["Distributed.recv.0.forward"]
    assert (arrived["ranks"], arrived["statistic"], arrived["got"]) == ([1], "Min", "-50.0")
    assert arrived["source"] == "rank 0 Distributed.send.0.forward input_args.0"
    # The answer and the table are those without the option.
    plain = plumbline.compare_ranks(wrong, right, tmp_path / "plain")
    assert (plain.answer, plain.collectives) == (result["answer"], [])
    asked = plumbline.compare_ranks(wrong, right, tmp_path / "asked", check_collectives=True)
    assert asked.collectives == result["collectives"]
    line = ("  violated: Distributed.all_reduce.1.forward of ranks 0, 1, 2, 3: the outputs are "
            "equal on all ranks of the group, but on rank 1 output.0 Max is 110.0 (expected 80.0, "
            "as rank 0 Distributed.all_reduce.1.forward output.0)")
    assert line in asked.summary.splitlines()
    assert asked.summary.splitlines()[0] == plain.summary.splitlines()[0]


def test_what_is_not_there_is_not_judged(tmp_path: Path, right: Path) -> None:
    result, done = compare(right, right, "-o", tmp_path, "--rank", "0,1", "--fail-on", "unjudged")
    assert done.returncode == 1
    (both,) = result["collectives"]
    # The group of ranks 0 and 1, and their messages to each other; half of the ring is missing.
    assert (both["held"], both["violated"]) == (2 + 2 + 2, 0), both
    assert {reason["reason"] for reason in both["reasons"]} == {
        "not every rank of the step was compared",
        "a rank that takes part recorded another number of these calls, or is not in the recording"}


def test_static_graphs_have_none(tmp_path: Path) -> None:
    dump = tmp_path / "graph" / "0" / "graph" / "0" / "0"
    dump.mkdir(parents=True)
    (dump / "statistic.csv").write_text("Op Type,Op Name\n")
    done = subprocess.run([PLUMB, "compare", tmp_path / "graph", tmp_path / "graph", "-o",
                           tmp_path / "out", "--check_collectives"], text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 2 and "check_collectives" in done.stderr, done.stderr
