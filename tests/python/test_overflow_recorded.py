"""`plumb overflow` on what real processes recorded: two ranks of plumbline over gloo, and of
upstream 1.2.2 (tests/data/make_distributed.py). At the end synthetic entries of task nan_check.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rank_dumps import NAN, WORLD, forward, log, write_step
from ranks import END, WINDOW, run_ranks
from recording import config, run
from test_overflow import answer, not_judged, overflow

DATA = Path(__file__).resolve().parents[1] / "data"

# Every form of communication; then rank 1 makes Inf, which reaches rank 0 in the background.
TRAINING = (
    WINDOW
    + """
debugger.start()
good = torch.ones(4)
other = dist.new_group([0, 1])
dist.all_reduce(good)
dist.all_reduce(good, group=other)
dist.all_reduce(good, async_op=True).wait()
dist.broadcast(good, src=1)
gathered = [torch.zeros(4) for _ in range(2)]
dist.all_gather(gathered, good, group=other)
if rank == 0:
    dist.send(good, 1)
    dist.recv(good, src=1)
else:
    dist.recv(good, 0)
    dist.send(good, dst=0)
value = torch.mul(good, 2.0)
if rank == 1:
    value = torch.log(torch.sub(value, value))
received = torch.zeros(4)
work = [dist.irecv(received, 1 - rank), dist.isend(value, 1 - rank)]
for handle in work:
    handle.wait()
batch = [dist.P2POp(dist.isend, received, 1 - rank), dist.P2POp(dist.irecv, good, 1 - rank)]
for handle in dist.batch_isend_irecv(batch):
    handle.wait()
result = torch.add(received, 1.0)
dist.all_reduce(result)
"""
    + END
)

IN_PLACE = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path=sys.argv[1])
debugger.start()
x = torch.add(torch.ones(3), 0.0)
x.mul_(float("inf"))
torch.add(x, 1.0)
debugger.stop()
debugger.step()
"""


def test_value_is_followed_through_every_kind_of_communication(tmp_path):
    config(tmp_path, task="statistics", level="L1")
    run_ranks(tmp_path, TRAINING, tmp_path / "config.json")
    done = overflow(tmp_path / "out" / "step0", "-o", tmp_path / "result", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["not_judged"] == []
    assert [(origin["rank"], origin["op_name"]) for origin in result["origins"]] == [
        ("rank_1", "Torch.log.0.forward")]
    trace = json.loads(next((tmp_path / "result").glob("overflow_trace*")).read_text())
    carried = [transfer["api"] for transfer in trace["transfers"]]
    assert carried[0] == "isend" and carried[-1] == "all_reduce"


def test_recording_of_upstream(tmp_path):
    """Rank 1 brings a NaN into the first collective; nobody produced it."""
    for rank in range(2):
        directory = tmp_path / "step0" / f"rank{rank}"
        directory.mkdir(parents=True)
        entries = json.loads((DATA / f"upstream_1.2.2/distributed/rank{rank}.json").read_text())
        (directory / "dump.json").write_text(json.dumps(
            {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
             "data": entries}))
        (directory / "stack.json").write_text("{}")
        (directory / "construct.json").write_text("{}")
    done = overflow(tmp_path / "step0", "-o", tmp_path / "result")
    assert done.returncode == 0, done.stderr
    assert answer(done) == (
        "first NaN/Inf: rank 1 Distributed.all_reduce.0.forward, input_args.0 is NaN (an input "
        "already; no recorded call before it on this rank put it out)")
    assert "counterparts" not in done.stderr


def test_call_in_place_with_an_infinite_argument(tmp_path):
    run(IN_PLACE, config(tmp_path))
    done = overflow(tmp_path / "out", "-o", tmp_path / "result")
    assert answer(done) == ("first NaN/Inf: rank 0 Tensor.mul_.0.forward, output.0 is Inf "
                            "(inputs finite; the number input_args.1 is not)")


CALLS = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path=sys.argv[1])
debugger.start(model=torch.nn.ReLU())
x = torch.abs(torch.tensor([VALUE, 1.0], requires_grad=True))
torch.log(x).sum().backward()
debugger.stop()
debugger.step()
"""


def recorded(tmp_path: Path, value: str, **options: object) -> subprocess.CompletedProcess[str]:
    """`plumb overflow` on a recording of the logarithm of |value|."""
    tmp_path.mkdir()
    run(CALLS.replace("VALUE", value), config(tmp_path, **options))
    return overflow(tmp_path / "out", "-o", tmp_path / "result")


def test_inputs_alone_and_structure_are_not_called_good(tmp_path):
    for number, mode in enumerate((["input"], ["backward", "input"])):
        done = recorded(tmp_path / str(number), "1.0", data_mode=mode)
        assert done.returncode == 4, done
        assert "entries have inputs and no output" in answer(done)
    done = recorded(tmp_path / "structure", "1.0", task="structure", level="mix")
    assert done.returncode == 4 and answer(done).startswith("nothing to judge: "), done


def test_flags_of_nan_check(tmp_path):
    done = recorded(tmp_path / "good", "1.0", task="nan_check")
    assert done.returncode == 0 and answer(done).startswith("no NaN/Inf: "), done
    done = recorded(tmp_path / "bad", "0.0", task="nan_check")
    assert done.returncode == 0, done
    assert answer(done) == ("first NaN/Inf: rank 0 Torch.log.0.forward, is_nan is 1 (its inputs "
                            "are not known)")


# ---- task nan_check: a flag per call


def flagged(name: str, flag: object, **kwargs: object) -> tuple:
    """An entry of task nan_check."""
    bare = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4],
            "requires_grad": False}
    _, entry = forward(name, [bare], [bare], **kwargs)
    return name, {**entry, "is_nan": flag}


def test_flags_decide_where_there_are_no_statistics(tmp_path):
    good = write_step(tmp_path / "step0", {"rank0": [flagged("Torch.abs.0.forward", 0)]})
    done = overflow(good)
    assert done.returncode == 0 and answer(done).startswith("no NaN/Inf: 1 entry of 1 rank")
    bad = write_step(tmp_path / "step1", {"rank0": [
        flagged("Torch.empty.0.forward", 1), flagged("Torch.abs.0.forward", 0),
        flagged("Torch.log.0.forward", 1), flagged("Tensor.sum.0.forward", 1)]})
    done = overflow(bad, "-o", tmp_path / "o", "--json")
    result = json.loads(done.stdout)
    assert result["answer"] == ("first NaN/Inf: rank 0 Torch.log.0.forward, is_nan is 1 (its "
                                "inputs are not known)")
    assert [(o["op_name"], o["reason"]) for o in result["origins"]] == [
        ("Torch.log.0.forward", "flagged")]
    assert result["not_judged"] == [] and result["bad_entries"] == 2


@pytest.mark.parametrize("flag", [None, "1", 2, [0]])
def test_flag_that_says_nothing(tmp_path, flag):
    step = write_step(tmp_path / "step0", {"rank0": [flagged("Torch.abs.0.forward", 0),
                                                     flagged("Torch.neg.0.forward", flag)]})
    not_judged(overflow(step), "is_nan of 1 of 2 entries is neither 0 nor 1",
               "2 of 4 tensors have no Max and Min")


def test_statistics_win_over_the_flag(tmp_path):
    """Hits of tensor_list have both."""
    name, entry = log(NAN)
    step = write_step(tmp_path / "step0", {"rank0": [(name, {**entry, "is_nan": 1})]})
    assert answer(overflow(step, "-o", tmp_path / "o")) == (
        "first NaN/Inf: rank 0 Torch.log.0.forward, output.0 is NaN (inputs finite)")


def test_flags_are_followed_through_communication(tmp_path):
    call = flagged("Distributed.all_reduce.0.forward", 1, group=WORLD)
    step = write_step(tmp_path / "step0", {
        "rank0": [flagged("Torch.abs.0.forward", 0), call, flagged("Torch.mul.0.forward", 1)],
        "rank1": [flagged("Torch.log.0.forward", 1), call, flagged("Torch.mul.0.forward", 1)]})
    result = json.loads(overflow(step, "-o", tmp_path / "o", "--json").stdout)
    assert [(o["rank"], o["op_name"]) for o in result["origins"]] == [
        ("rank_1", "Torch.log.0.forward")]
