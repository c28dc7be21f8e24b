"""Communication: what is recorded of collectives and point-to-point calls, over gloo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ranks import END, WINDOW, dump_of, run_ranks
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
crossing = [dist.P2POp(early_isend, mine, 1 - rank), dist.P2POp(dist.irecv, torch.zeros(2), 1 - rank)]
works = dist.batch_isend_irecv(crossing)
for work in reversed(works): work.wait()
dist.irecv(torch.zeros(2), 1 - rank, tag=7)  # nobody sends
debugger.stop()
after = dist.batch_isend_irecv(crossing)  # made inside the window, used outside
for work in after: work.wait()
dist.all_reduce(mine)
debugger.step()
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
        group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": WORLD_ID}
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
        assert receive["tensor"]["Max"] == 2.0 and receive["tensor"]["md5"]
        assert receive["tensor"]["data_name"].startswith(
            "Distributed.batch_isend_irecv.0.forward.output.0.1.tensor"
        )
