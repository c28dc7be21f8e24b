"""`plumb overflow` on what real processes recorded: two ranks of plumbline over gloo, and of
upstream 1.2.2 (tests/data/make_distributed.py).
"""

from __future__ import annotations

import json
from pathlib import Path

from ranks import END, WINDOW, run_ranks
from recording import config, run
from test_overflow import answer, overflow

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
