"""TrainerMon in two processes with DDP: gradients before and after they are combined, calls of
torch.distributed, and which rank writes what.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from monitor_training import ALL_OPS, cells, rows_of, write_config
from ranks import PROLOGUE, run_ranks

# Once for all tests: what takes time is importing PyTorch.
PROGRAM = PROLOGUE + """
import os, json
from torch.distributed import all_reduce as early
from torch.nn.parallel import DistributedDataParallel
from plumbline import _core
from plumbline.pytorch import TrainerMon
root = sys.argv[4]
def monitor_of(config, out):
    os.environ["MONITOR_OUTPUT_DIR"] = root + "/" + out
    return TrainerMon(root + "/" + config + "/monitor_config.json", params_have_main_grad=False)
join()
truth = {}

def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

def batch(step, micro):
    seed = torch.Generator().manual_seed(100 * step + 10 * micro + rank)
    return torch.randn(5, 4, generator=seed)

for name, options in (("default", {}), ("view", {"gradient_as_bucket_view": True}),
                      ("both", {"gradient_as_bucket_view": True})):
    model, alone = DistributedDataParallel(build(), **options), build()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    monitor = monitor_of("ddp", name)
    groups = {"dp_group": dist.group.WORLD} if name == "both" else {}
    monitor.set_monitor(model, optimizer=optimizer, grad_acc_steps=2, **groups)
    found = {}
    for step in range(2):
        alone.load_state_dict(model.module.state_dict())
        alone.zero_grad()
        with model.no_sync():
            model(batch(step, 0)).square().sum().backward()
        model(batch(step, 1)).square().sum().backward()
        for micro in range(2):
            alone(batch(step, micro)).square().sum().backward()
        for key, parameter in alone.named_parameters():
            found[f"module.{key} {step}"] = parameter.grad.norm().item()
        for key, parameter in model.named_parameters():
            found[f"reduced {key} {step}"] = parameter.grad.norm().item()
        optimizer.step()
        optimizer.zero_grad(set_to_none=step == 0)
    monitor.stop()
    truth[name] = found

before = {name: (getattr(dist, name), getattr(dist, name).__code__)
          for name in ("all_reduce", "send", "recv", "all_gather", "batch_isend_irecv", "isend")}
work = dist.Work.wait

def gather(x):
    parts = [torch.full((2,), -1.0), torch.full((2,), -1.0)]
    dist.all_gather(parts, x)
    return parts

def calls(config):
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = monitor_of(config, config)
    monitor.set_monitor(model, optimizer=optimizer)
    for step in range(4):
        early(torch.full((3,), float(rank + 1)))
        handle = dist.all_reduce(torch.tensor([1.0, -5.0]), async_op=True)
        dist.all_reduce(torch.ones(1), async_op=True)  # nobody waits
        handle.wait()
        gather(torch.full((2,), float(rank)))
        peer = 1 - rank
        received = torch.zeros(2)
        requests = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, torch.full((2,), 7.0 + rank), peer),
            dist.P2POp(dist.irecv, received, peer)])
        for request in requests:
            request.wait()
        assert received.tolist() == [7.0 + peer] * 2
        try:
            dist.broadcast(torch.ones(1), src=9)
        except RuntimeError:
            pass
        try:
            optimizer.step()
        except Exception as error:
            assert str(error) == "exit after first step when print cc stack", error
            break
    monitor.stop()
    assert step == (1 if config == "log" else 3)
    assert dist.Work.wait is work
    for name, (function, code) in before.items():
        assert getattr(dist, name) is function and function.__code__ is code, name

_core.log_info = print
for config in ("calls", "line", "log"):
    calls(config)
print(json.dumps(truth))
leave()
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Where the monitors wrote, and what each rank printed."""
    root = tmp_path_factory.mktemp("ranks")
    write_config(root / "ddp", wg_distribution=True, ops=["norm"], ndigits=12)
    write_config(root / "calls", cc_distribution={"enable": True, "cc_pre_hook": True},
                 step_interval=2, ops=ALL_OPS, param_distribution=True)
    at_gather = {"enable": True, "cc_codeline": [r"<string>\[\d+\]   gather"]}
    write_config(root / "line", cc_distribution=at_gather, ops=["norm"], module_ranks=[1])
    write_config(root / "log", ops=["norm"],
                 cc_distribution={"enable": True, "cc_log_only": True})
    return root, run_ranks(root, PROGRAM, root)


def directory_in(root: Path, rank: int) -> Path:
    """The only directory of a rank there."""
    [found] = root.glob(f"*-rank{rank}-*")
    return found




def test_gradients_before_and_after_ddp(trained: tuple[Path, list[str]]) -> None:
    root, printed = trained
    truths = [json.loads(text.splitlines()[-1]) for text in printed]
    for name in ("default", "view", "both"):
        assert truths[0][name] != truths[1][name]
        found = [norms_in(directory_in(root / name, rank)) for rank in range(2)]
        if name == "both":  # dp_group: one rank of the group has the reduced ones
            assert not any(key.startswith("reduced ") for key in found[1])
            found[1] |= {key: value for key, value in found[0].items() if "reduced " in key}
        for rank in range(2):
            assert found[rank] == pytest.approx(truths[rank][name], rel=1e-5), (name, rank)


def norms_in(directory: Path) -> dict[str, float]:
    """As the program prints them."""
    return {f"{prefix}{row} {step}": values["norm"]
            for kind, prefix in (("grad_unreduced", ""), ("grad_reduced", "reduced "))
            for (row, step), values in rows_of(directory, kind).items()}


def test_communication_calls(trained: tuple[Path, list[str]]) -> None:
    directory = directory_in(trained[0] / "calls", 0)
    assert cells(directory / "other_0-0.csv")[0][:3] == ["vpp_stage", "name", "step"]
    found = rows_of(directory, "other")
    assert {key[1] for key in found} == {0, 2}
    step = {name: values for (name, at), values in found.items() if at == 2}
    assert set(step) == {
        "all_reduce.pre_0", "all_reduce.post_0", "all_gather.pre_1", "all_gather.post_0",
        "all_gather.post_1", "batch_isend_irecv.pre_0", "batch_isend_irecv.post_0",
        "broadcast.pre_0"}
    # Three calls: (1, 1, 1), (1, -5) and (1), of which nobody waits for the last.
    before = step["all_reduce.pre_0"]
    assert before["norm"] == pytest.approx(3 ** 0.5 + 26 ** 0.5 + 1, abs=1e-6)
    assert (before["min"], before["max"]) == (-5.0, 1.0)
    assert before["mean"] == 0.0 == before["zeros"] == before["nans"]
    after = step["all_reduce.post_0"]
    assert (after["min"], after["max"], after["mean"]) == (-10.0, 3.0, (3 - 4) / 2)
    assert step["all_gather.post_0"]["mean"] == 0.5 and step["all_gather.post_0"]["zeros"] == 0.5
    assert step["batch_isend_irecv.post_0"]["max"] == 8.0
    assert step["batch_isend_irecv.post_0"]["min"] == 7.0


def test_communication_at_one_line(trained: tuple[Path, list[str]]) -> None:
    root = trained[0] / "line"
    assert not list(root.glob("*rank0*"))
    found = rows_of(directory_in(root, 1), "other")
    assert {key[0] for key in found} == {"all_gather.post_0", "all_gather.post_1"}
    assert {key[1] for key in found} == {0, 1, 2, 3}


def test_stacks_of_communication_are_logged(trained: tuple[Path, list[str]]) -> None:
    root, printed = trained
    assert not list((root / "log").glob("*/other*"))
    [text] = [line for line in "".join(printed).splitlines() if '{"all_reduce": ' in line]
    stacks = json.loads(text[text.index("{"):])
    assert set(stacks) == {"all_reduce", "all_gather", "batch_isend_irecv", "broadcast"}
    assert len(stacks["all_reduce"]) == 3
    assert [frame.partition("]   ")[2] for frame in stacks["all_gather"][0]] == [
        "gather", "calls", "<module>", "<module>"]  # the last one is that of warm_python
