"""Communication: what is recorded of collectives and point-to-point calls, over gloo."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from ranks import PROLOGUE, WINDOW, dump_of, run_ranks
from recording import config

WORLD_ID = "264884439b70ab09a86bc848421c6de6"  # MD5 of "[0, 1]"

CALLS = """
from torch.distributed import isend as early_isend
full = lambda *values: torch.tensor(values, dtype=torch.float32)
pair = lambda: [torch.zeros(2), torch.zeros(2)]
mine = full(rank + 1.0, 2.0)
debugger.start()
# all_reduce.0: sync; 1: waited twice; 2: never waited, complete at stop; 3: tested
total = mine.clone(); dist.all_reduce(total)
work = dist.all_reduce(total, op=dist.ReduceOp.MAX, group=dist.group.WORLD, async_op=True)
held = {work: "kept"}
assert type(work) is dist.Work and work.wait() is True and work.wait() is True
assert held[work] == "kept" and work.is_completed()
dropped = mine.clone(); dist.all_reduce(dropped, async_op=True)
tested = mine.clone(); work = dist.all_reduce(tested, async_op=True)
while not work.is_completed(): pass
tested.zero_()  # what the call gave is recorded, not this
copy = mine.clone(); dist.broadcast(copy, 0)
copy = mine.clone(); dist.reduce(copy, 0)
dist.gather(mine, pair() if rank == 0 else None, dst=0)
dist.scatter(torch.zeros(2), pair() if rank == 0 else None, src=0)
dist.all_gather(pair(), mine)
dist.all_gather_into_tensor(torch.zeros(4), mine)
dist._all_gather_base(torch.zeros(4), mine)
dist.reduce_scatter(torch.zeros(1), list(mine.split(1)))
dist.reduce_scatter_tensor(output=torch.zeros(1), input=mine)
dist._reduce_scatter_base(torch.zeros(1), mine)
dist.all_to_all_single(torch.zeros(2), mine)
lists = pair()
work = dist.all_gather(lists, mine, async_op=True)
lists.clear()  # the tensors are still written
work.wait()
if rank == 0:
    dist.send(mine, 1); dist.recv(torch.zeros(2), 1)
else:
    dist.recv(torch.zeros(2), 0); dist.send(mine, 0)
# isend.0 waited with a time limit, irecv.0 waited; both sides send first
work, other = dist.isend(mine, 1 - rank), dist.irecv(tensor=torch.full((2,), 9.0), src=1 - rank)
assert work.wait(timedelta(seconds=30)) is True and other.wait() is True
crossing = [dist.P2POp(early_isend, mine, 1 - rank),
            dist.P2POp(dist.irecv, torch.zeros(2), 1 - rank)]
works = dist.batch_isend_irecv(crossing)
for work in reversed(works): work.wait()
dist.irecv(torch.zeros(2), 1 - rank, tag=7)  # nobody sends
debugger.stop()
after = dist.batch_isend_irecv(crossing)  # made inside the window, used outside
for work in after: work.wait()
dist.all_reduce(mine)
debugger.step()
finish()
import os; sys.stdout.flush(); os._exit(0)  # gloo would wait for the receive nobody serves
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    directory = tmp_path_factory.mktemp("calls")
    run_ranks(directory, WINDOW + CALLS, config(directory, task="tensor", summary_mode="md5"))
    return [dump_of(directory, rank) for rank in range(2)]


def outputs(entry: dict[str, Any]) -> list[Any]:
    """(Max, Min) of tensors, None, or what else stands there."""

    def short(value: Any) -> Any:
        if isinstance(value, list):
            return [short(item) for item in value]
        if isinstance(value, dict) and "Max" in value:
            return (value["Max"], value["Min"])
        return value

    return [short(item) for item in entry["output"]]


def test_results_are_the_arguments_after_the_call(calls: list[dict[str, Any]]) -> None:
    for rank, data in enumerate(calls):
        entry = data["Distributed.all_reduce.0.forward"]
        assert list(entry) == ["input_args", "input_kwargs", "is_recompute", "output"]
        assert (entry["input_args"][0]["Max"], outputs(entry)) == (2.0, [(4.0, 3.0)])
        assert outputs(data["Distributed.broadcast.0.forward"])[0] == (2.0, 1.0)
        if rank == 0:
            assert outputs(data["Distributed.reduce.0.forward"])[0] == (4.0, 3.0)


def test_receive_buffers_are_masked_before_the_call(calls: list[dict[str, Any]]) -> None:
    masked = "all_gather all_gather_into_tensor _all_gather_base reduce_scatter scatter recv"
    masked += " all_to_all_single _reduce_scatter_base"
    for data in calls:
        for name in masked.split():
            entry = data[f"Distributed.{name}.0.forward"]
            assert entry["input_args"][0] is None, name
            assert outputs(entry)[0] is not None, name
        assert data["Distributed.gather.0.forward"]["input_args"][1] is None
        keywords = data["Distributed.reduce_scatter_tensor.0.forward"]["input_kwargs"]
        assert keywords["output"] is None and keywords["input"]["Max"] == 2.0
        assert data["Distributed.irecv.0.forward"]["input_kwargs"]["tensor"] is None
        assert outputs(data["Distributed.isend.0.forward"])[0] is None


def test_values_of_every_collective(calls: list[dict[str, Any]]) -> None:
    both = [(2.0, 1.0), (2.0, 2.0)]  # ranks 0 and 1
    for rank, data in enumerate(calls):
        result = {name: outputs(data[name]) for name in data if "output" in data[name]}
        assert result["Distributed.all_gather.0.forward"][0] == both
        assert result["Distributed.all_gather.1.forward"][0] == both
        for name in ("all_gather_into_tensor", "_all_gather_base"):
            assert result[f"Distributed.{name}.0.forward"][0] == (2.0, 1.0)
        part = (3.0, 3.0) if rank == 0 else (4.0, 4.0)
        for name in ("reduce_scatter", "reduce_scatter_tensor", "_reduce_scatter_base"):
            assert result[f"Distributed.{name}.0.forward"][0] == part
        assert result["Distributed.all_to_all_single.0.forward"][0] == (
            (2.0, 1.0) if rank == 0 else (2.0, 2.0)
        )
        assert result["Distributed.recv.0.forward"][0] == both[1 - rank]
        assert result["Distributed.irecv.0.forward"][0] == both[1 - rank]
        assert result["Distributed.scatter.0.forward"][0] == (0.0, 0.0)
    assert outputs(calls[0]["Distributed.gather.0.forward"])[1] == both


def test_only_the_outermost_call_is_an_entry(calls: list[dict[str, Any]]) -> None:
    assert "Distributed.all_gather_into_tensor.1.forward" not in calls[0]
    assert "Distributed.isend.1.forward" not in calls[0]  # those of the batch


def test_waiting_zero_one_and_two_times(calls: list[dict[str, Any]]) -> None:
    for data in calls:
        twice, never, tested = (data[f"Distributed.all_reduce.{n}.forward"] for n in (1, 2, 3))
        assert outputs(twice)[0] == (4.0, 3.0) and "waited" not in twice
        assert outputs(never)[0] == (4.0, 3.0) and never["waited"] is False
        assert outputs(tested)[0] == (4.0, 3.0) and "waited" not in tested
        unserved = data["Distributed.irecv.1.forward"]
        assert unserved["incomplete"] is True and "output" not in unserved
        assert not any("incomplete" in data[name] for name in data if "irecv.1" not in name)
        assert "Distributed.all_reduce.4.forward" not in data  # after the window


def test_groups_reductions_and_operations_are_described(calls: list[dict[str, Any]]) -> None:
    for rank, data in enumerate(calls):
        group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": WORLD_ID,
                 "group_name": "0"}
        reduction = {"type": "torch.distributed.ReduceOp", "value": "RedOpType.MAX"}
        entry = data["Distributed.all_reduce.1.forward"]
        assert entry["input_kwargs"]["group"] == group
        assert outputs(entry)[1:] == [reduction, group, {"type": "bool", "value": True}]
        batch = data["Distributed.batch_isend_irecv.0.forward"]
        send, receive = batch["output"][0]
        assert list(send) == ["class_type", "tensor", "op", "peer", "tag", "group_id"]
        assert send["class_type"] == "torch.distributed.P2POp"
        assert (send["op"], receive["op"]) == ("isend", "irecv")
        assert (send["peer"], send["tag"], send["group_id"]) == (1 - rank, 0, WORLD_ID)
        before = [operation["tensor"] for operation in batch["input_args"][0]]
        assert before[0] and before[1] is None, "nothing is received yet"
        assert receive["tensor"]["Max"] == 2.0 and receive["tensor"]["md5"]
        assert receive["tensor"]["data_name"].startswith(
            "Distributed.batch_isend_irecv.0.forward.output.0.1.tensor"
        )


GROUPS = """
import os, inspect, pickle, weakref
even, everybody = dist.new_group([0, 2]), dist.new_group([0, 1, 2])
signature, code = inspect.signature(dist.isend), dist.isend.__code__
early, wait = dist.all_reduce, dist.Work.wait
debugger.start()
assert dist.all_reduce is early and pickle.loads(pickle.dumps(dist.isend)) is dist.isend
assert inspect.signature(dist.isend) == signature and dist.isend.__code__ is not code
# a forked child records nothing and takes no number
child = os.fork()
if child == 0:
    try: dist.all_reduce("text")
    except (TypeError, ValueError): os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
# all_reduce.0 in a group of two; rank 1 is no member
dist.all_reduce(torch.ones(2), group=even)
# all_reduce.1: seen before, then changed in one element by a call that advances no version
large = torch.zeros(1 << 16); torch.relu(large)
sparse = torch.zeros(1 << 16); sparse[12345] = rank * 10.0
alias = large.view(-1); torch.relu(alias)
dist.all_reduce(sparse); large.numpy()[:] = 0
dist.broadcast(large.copy_(sparse), 0)
# all_reduce.2 raises before anything is sent
try: dist.all_reduce("text")
except (TypeError, ValueError): pass
try: dist.all_to_all([torch.zeros(1)] * 3, [torch.zeros(1)] * 3)  # not every gloo has it
except RuntimeError: pass
# all_reduce.3 and .4 are gathered and start together, at the end of the region
with dist._coalescing_manager():
    one, two = torch.ones(2), torch.ones(2)
    dist.all_reduce(one); dist.all_reduce(two)
assert one.tolist() == two.tolist() == [3.0, 3.0]
import torch.distributed._functional_collectives as funcol
sum_ = funcol.all_reduce(torch.ones(3), "sum", dist.group.WORLD)
assert (sum_ * 2).tolist() == [6.0] * 3
# all_reduce.5: two handles at a time, waited for in the other order
first = dist.all_reduce(torch.ones(2), async_op=True)
second = dist.broadcast(torch.ones(2), 0, async_op=True)
second.wait(); first.wait()
# all_reduce.6: only the future is waited for
future = dist.all_reduce(torch.ones(2), async_op=True).get_future()
assert future.wait()[0].tolist() == [3.0, 3.0]
# all_reduce.7: a callback follows
value = torch.ones(2)
future = dist.all_reduce(value, async_op=True).get_future().then(lambda f: f.value()[0].zero_())
future.wait()
# broadcast.2 keeps nothing alive once waited for; of 3 to 202 nobody keeps the handle
value = torch.ones(2); gone = weakref.ref(value)
work = dist.broadcast(value, 0, async_op=True); work.wait(); del value, work
until = time.monotonic() + 20  # gloo's own thread lets go of it a moment later
while gone() is not None and time.monotonic() < until: time.sleep(0.01)
assert gone() is None
dropped = []
for number in range(200):
    value = torch.ones(2); dropped.append(weakref.ref(value))
    dist.broadcast(value, 0, async_op=True)
    if number % 50 == 49: dist.barrier()
time.sleep(0.2)
for number in range(80): dist.broadcast(torch.ones(2), 0, async_op=True)  # enough for one sweep
alive = sum(one() is not None for one in dropped)
assert alive <= 50, alive
# all_reduce.8 and .9 are gathered and waited for together; nobody waits for .10
both = [torch.ones(2), torch.ones(2)]
with dist._coalescing_manager(async_ops=True) as manager:
    for value in both: dist.all_reduce(value, async_op=True)
manager.wait()
assert [value.tolist() for value in both] == [[3.0, 3.0]] * 2
with dist._coalescing_manager(async_ops=True) as unawaited:
    dist.all_reduce(torch.ones(2), async_op=True)
# all_reduce.11: the end of an inner region tells nothing about the outer one, whose call it is
with dist._coalescing_manager():
    with dist._coalescing_manager(everybody):
        dist.all_reduce(torch.ones(2))
# all_reduce.12 never starts
try:
    with dist._coalescing_manager(): dist.all_reduce(torch.ones(2)); raise KeyError("mine")
except KeyError as error: assert error.args == ("mine",)
dist.distributed_c10d._world.pg_coalesce_state.clear()
# all_reduce.13 outlives its group
held = dist.all_reduce(torch.ones(2), group=dist.group.WORLD, async_op=True)
held.wait
dist.barrier()
leave()
debugger.stop()
assert dist.isend.__code__ is code and dist.Work.wait is wait
assert not hasattr(dist.isend, "__signature__") and dist.all_reduce is early
debugger.step()
"""


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    directory = tmp_path_factory.mktemp("groups")
    run_ranks(directory, WINDOW + GROUPS, config(directory), world=3)
    return [dump_of(directory, rank) for rank in range(3)]


def test_a_group_is_named_by_its_ranks(groups: list[dict[str, Any]]) -> None:
    digest = hashlib.md5(b"[0, 2]").hexdigest()
    for rank in (0, 2):
        group = groups[rank]["Distributed.all_reduce.0.forward"]["input_kwargs"]["group"]
        assert (group["group_ranks"], group["group_id"]) == ([0, 2], digest)
    assert "Distributed.all_reduce.0.forward" in groups[1]  # called, though not a member


def test_values_are_read_again_after_communication(groups: list[dict[str, Any]]) -> None:
    for data in groups:
        assert outputs(data["Distributed.all_reduce.1.forward"])[0] == (30.0, 0.0)
        assert outputs(data["Distributed.broadcast.0.forward"])[0] == (30.0, 0.0)


def test_calls_that_fail_have_no_output(groups: list[dict[str, Any]]) -> None:
    for data in groups:
        assert "output" not in data["Distributed.all_reduce.2.forward"]
        assert "Distributed.all_to_all.0.forward" in data


def test_calls_gathered_to_start_together(groups: list[dict[str, Any]]) -> None:
    for data in groups:
        calls = {number: data[f"Distributed.all_reduce.{number}.forward"]
                 for number in (3, 4, 8, 9, 10, 11, 12)}
        for number in (3, 4, 8, 9, 10):
            assert outputs(calls[number])[0] == (3.0, 3.0), number
            assert "incomplete" not in calls[number]
            assert ("waited" in calls[number]) == (number == 10)
        for number in (11, 12):
            assert calls[number]["incomplete"] is True and "output" not in calls[number]


def test_waits_for_futures_and_in_any_order(groups: list[dict[str, Any]]) -> None:
    for data in groups:
        for number in (5, 6, 7):
            entry = data[f"Distributed.all_reduce.{number}.forward"]
            assert outputs(entry)[0] == (3.0, 3.0), number
            assert "waited" not in entry and "incomplete" not in entry
        late = data["Distributed.all_reduce.13.forward"]
        assert late["waited"] is False and outputs(late)[1] == {"type": "torch.ProcessGroup"}


def test_dropped_handles_do_not_pile_up(groups: list[dict[str, Any]]) -> None:
    for data in groups:
        for number in range(3, 203):
            entry = data[f"Distributed.broadcast.{number}.forward"]
            assert entry["waited"] is False and outputs(entry)[0] == (1.0, 1.0)


LATE = """
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[4])
if rank == 0:  # both would write to the directory without a number
    debugger.start(); torch.ones(2) + 1; debugger.stop()
debugger.step()
join()
for step in range(2):
    debugger.start()
    dist.all_reduce(torch.ones(2))
    debugger.stop(); debugger.step()
debugger.start()
try:  # nobody sends; gloo closes the connection
    dist.irecv(torch.zeros(2), 1 - rank).wait(timedelta(milliseconds=200))
    sys.exit("a wait without end ended")
except RuntimeError:
    pass
debugger.stop(); debugger.step()
finish()
import os; os._exit(0)
"""


def test_rank_known_late(tmp_path: Path) -> None:
    run_ranks(tmp_path, PROLOGUE + LATE, config(tmp_path))
    directories = sorted(str(p.relative_to(tmp_path / "out")) for p in tmp_path.glob("out/*/*"))
    numbered = [f"step{step}/rank{rank}" for step in (1, 2, 3) for rank in (0, 1)]
    assert directories == ["step0/rank", *numbered]
    for step in (1, 2):
        assert "Distributed.all_reduce.0.forward" in dump_of(tmp_path, 1, step)
    # A wait that fails completes nothing.
    entry = dump_of(tmp_path, 1, 3)["Distributed.irecv.0.forward"]
    assert entry["incomplete"] is True and "output" not in entry


FILTERED = """
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[4])
join()
for step in range(2):
    debugger.start()
    total = torch.ones(2); dist.all_reduce(total)
    assert total.tolist() == [2.0, 2.0]
    debugger.stop(); debugger.step()
leave()
"""


def test_rank_filter(tmp_path: Path) -> None:
    run_ranks(tmp_path, PROLOGUE + FILTERED, config(tmp_path, rank=[1]))
    assert sorted(p.name for p in tmp_path.glob("out/*/*")) == ["rank1", "rank1"]


def test_a_second_process_of_the_same_directory_gets_its_own(tmp_path: Path) -> None:
    # Both ranks believe that they run alone: neither knows its rank.
    code = (
        PROLOGUE
        + """
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[4])
debugger.start()
torch.ones(2) + 1
join(); dist.barrier()  # both have started
debugger.stop(); debugger.step()
leave()
"""
    )
    printed = run_ranks(tmp_path, code, config(tmp_path))
    assert sum("another process is recording into it" in text for text in printed) == 1
    directories = sorted(p.name for p in tmp_path.glob("out/step0/*"))
    assert directories[0] == "rank" and directories[1].startswith("rank_")
    for name in directories:
        assert "Tensor.__add__.0.forward" in dump_of(tmp_path, name.removeprefix("rank"))


DATA = Path(__file__).resolve().parents[1] / "data"


def same(ours: Any, theirs: Any) -> bool:
    """Equal in structure, order, types and, up to float32 rounding, numbers; NaN equals NaN.

    `group_name` is ours alone.
    """
    if isinstance(theirs, float) and isinstance(ours, float):
        return ours == pytest.approx(theirs, rel=1e-6, nan_ok=True)
    if isinstance(theirs, dict):
        keys = [key for key in ours if key != "group_name"]
        return keys == list(theirs) and all(same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)


def test_entries_are_upstreams(tmp_path: Path) -> None:
    # Recorded by the real tool: tests/data/make_distributed.py. Masked arguments do not occur.
    code = f"""
import runpy
calls = runpy.run_path({str(DATA / "make_distributed.py")!r})["calls"]
debugger.start()
calls(rank)
debugger.stop(); debugger.step()
leave()
"""
    run_ranks(tmp_path, WINDOW + code, config(tmp_path, summary_mode="md5"))
    for rank in range(2):
        text = (DATA / "upstream_1.2.2" / "distributed" / f"rank{rank}.json").read_text()
        theirs = json.loads(text)
        ours = {k: v for k, v in dump_of(tmp_path, rank).items() if k in theirs}
        assert list(theirs) == list(ours) and len(theirs) == 5
        for name, entry in theirs.items():
            assert same(ours[name], entry), (ours[name], entry)
