"""Parallel training is recorded and stays bit for bit the training without the recorder."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranks import END, PROLOGUE, WINDOW, dump_of, run_ranks
from recording import config

# Steps 0-4 DDP, 5-9 FSDP2, 10-14 tensor parallel, 15-19 sequence parallel, 20-24 pipeline.
TRAINING = """
import hashlib
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module)
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

debugger = None
if sys.argv[4] != "none":
    from plumbline.pytorch import PrecisionDebugger
    debugger = PrecisionDebugger(sys.argv[4])
join()
mesh = init_device_mesh("cpu", (2,))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = Block(), Block(), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.second(self.first(x)))

def ddp(net): return DistributedDataParallel(net, gradient_as_bucket_view=True)
def fsdp(net):
    for part in (net.first, net.second): fully_shard(part, mesh=mesh)
    return fully_shard(net, mesh=mesh)
def tensor_parallel(net):
    plan = {}
    for part in ("first", "second"):
        plan[part + ".up"], plan[part + ".down"] = ColwiseParallel(), RowwiseParallel()
    return parallelize_module(net, mesh, plan)
def sequence_parallel(net):
    for part in (net.first, net.second):
        parallelize_module(part, mesh, {
            "norm": SequenceParallel(),
            "up": ColwiseParallel(input_layouts=Shard(1)),
            "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False)})
    # the residual stream is sharded along the sequence
    parallelize_module(net, mesh, {
        "first": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Shard(1),
                                    use_local_output=False),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})
    return net

def train(kind, steps):
    torch.manual_seed(3)
    model = kind(Net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=kind in (ddp, fsdp))
    local = torch.Generator().manual_seed(rank if kind in (ddp, fsdp) else 11)
    for _ in range(steps):
        x, y = torch.randn(2, 6, 8, generator=local), torch.randn(2, 6, 4, generator=local)
        if kind is sequence_parallel: x = x[:, rank * 3:rank * 3 + 3]
        if debugger: debugger.start(model=model)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        norm = torch.zeros(())
        if kind in (ddp, fsdp): norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step(); optimizer.zero_grad()
        if debugger: debugger.stop(); debugger.step()
        if hasattr(norm, "full_tensor"): norm = norm.full_tensor()
        print(kind.__name__, float(loss.detach()).hex(), float(norm).hex())
    show(model)

def show(model):
    for name, p in model.named_parameters():
        p = p.to_local() if hasattr(p, "to_local") else p
        print(name, hashlib.sha256(p.detach().numpy().tobytes()).hexdigest())

def pipeline(steps):
    torch.manual_seed(3)
    net = Net()
    part = nn.Sequential(net.first) if rank == 0 else nn.Sequential(net.second, net.head)
    stage = PipelineStage(part, rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=3, loss_fn=F.mse_loss)
    optimizer = torch.optim.SGD(part.parameters(), lr=1e-2)
    local = torch.Generator().manual_seed(11)
    for _ in range(steps):
        x, y = torch.randn(6, 5, 8, generator=local), torch.randn(6, 5, 4, generator=local)
        if debugger: debugger.start(model=part)
        losses = []
        if rank == 0: schedule.step(x)
        else: schedule.step(target=y, losses=losses)
        optimizer.step(); optimizer.zero_grad()
        if debugger: debugger.stop(); debugger.step()
        print("pipeline", [float(loss).hex() for loss in losses])
    show(part)

for kind in (ddp, fsdp, tensor_parallel, sequence_parallel): train(kind, 5)
pipeline(5)
leave()
"""


def lines(printed: str) -> list[str]:
    """Without the recorder's messages."""
    return [line for line in printed.splitlines() if not line.startswith("20")]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    printed = run_ranks(tmp_path_factory.mktemp("reference"), PROLOGUE + TRAINING, "none")
    assert all(len(text.splitlines()) > 80 for text in printed)
    return printed


@pytest.mark.parametrize(
    ("level", "task"), [("L0", "statistics"), ("L1", "tensor"), ("mix", "tensor")]
)
def test_losses_norms_and_weights_are_equal(
    tmp_path: Path, reference: list[str], level: str, task: str
) -> None:
    path = config(tmp_path, task=task, level=level, summary_mode="md5")
    recorded = run_ranks(tmp_path, PROLOGUE + TRAINING, path)
    for rank in range(2):
        assert lines(recorded[rank]) == reference[rank].splitlines(), f"rank {rank}"
        steps = [dump_of(tmp_path, rank, step) for step in range(25)]
        assert all(len(data) > 10 for data in steps)
        left = [name for data in steps for name in data if data[name].get("incomplete")]
        assert not left
        if level != "L0":
            assert "Distributed.all_gather_single.0.forward" in steps[9]
            assert "Distributed.reduce_scatter_single.0.forward" in steps[9]
            assert "Distributed.batch_isend_irecv.0.forward" in steps[24]
        if level != "L1":
            assert "Module.module.head.Linear.forward.0" in steps[4]
            assert "Module.module.head.Linear.parameters_grad" in steps[4]
            assert_reduced(tmp_path)


def assert_reduced(root: Path) -> None:
    """The gradient of each rank, and beside it what DDP and FSDP2 make of them."""
    ddp = [dump_of(root, rank, 4)["Module.module.head.Linear.parameters_grad"] for rank in (0, 1)]
    assert list(ddp[0]) == ["weight", "bias", "weight.reduced", "bias.reduced"]
    local, reduced = ([one[key][0] for one in ddp] for key in ("weight", "weight.reduced"))
    assert local[0]["Mean"] != local[1]["Mean"]
    assert reduced[0]["md5"] == reduced[1]["md5"]
    assert reduced[0]["Mean"] == pytest.approx((local[0]["Mean"] + local[1]["Mean"]) / 2, rel=1e-5)
    fsdp = [dump_of(root, rank, 9)["Module.first.up.Linear.parameters_grad"] for rank in (0, 1)]
    assert [one["weight.reduced"][0]["shape"] for one in fsdp] == [[8, 8], [8, 8]]  # of [16, 8]
    parallel = dump_of(root, 0, 14)["Module.first.up.Linear.parameters_grad"]
    assert list(parallel) == ["weight", "bias"]


# The combining of gradients is left out: only when they are looked at matters here.
RAISING_PASS = WINDOW + """
from torch.nn.parallel import DistributedDataParallel
class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clone()
    @staticmethod
    def backward(ctx, grad): raise RuntimeError("on purpose")
model = torch.nn.Sequential(torch.nn.Linear(2, 1))
debugger.start(model=model)
DistributedDataParallel._active_ddp_module = model
x = torch.ones(3, 2, requires_grad=True)
try:
    model(Raises.apply(x)).sum().backward()
    raise SystemExit("did not raise")
except RuntimeError as error:
    assert "on purpose" in str(error)
model.zero_grad()
(model(x) * 5).sum().backward()
DistributedDataParallel._active_ddp_module = None
""" + END


def test_combined_gradients_of_a_pass_after_one_that_raised(tmp_path: Path) -> None:
    run_ranks(tmp_path, RAISING_PASS, config(tmp_path, level="L0"), world=1)
    gradients = dump_of(tmp_path, 0, 0)["Module.0.Linear.parameters_grad"]
    assert gradients["weight.reduced"][0]["Max"] == 15, "3 rows of ones, times 5"
    assert gradients["bias.reduced"][0]["Max"] == 15
