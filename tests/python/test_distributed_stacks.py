"""What data parallel wrappers, checkpoints and communication do with gradients is recorded.

Two processes each; training with and without the recorder is the same to the bit, and no call is
lost.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ranks import PROLOGUE, dump_of, run_ranks
from recording import PLUMB, config

# Two steps of two micro-batches for each wrapper, then calls without a training, then a pipeline.
STACKS = ("ddp", "ddp_copies", "comm_hook", "fsdp1", "fsdp1_orig", "fsdp2", "megatron",
          "reentrant", "not_reentrant")
CALLS, PIPELINE, STEPS = 18, (19, 20), 21
TRAINING = """
import hashlib, os
import torch.nn as nn, torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.utils.checkpoint import checkpoint
import torch.distributed._functional_collectives as functional
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
# None, or in which of the steps of DDP the reduced gradient of a weight goes wrong.
fault = int(sys.argv[5]) if len(sys.argv) > 5 else None
debugger = None
if sys.argv[4] != "none":
    from plumbline.pytorch import PrecisionDebugger
    debugger = PrecisionDebugger(sys.argv[4])
# What lies in memory that nobody wrote is another in every process.
junk = [torch.full((size,), float(os.getpid())) for size in list(range(1, 400)) * 3]
del junk
join()
mesh = init_device_mesh("cpu", (2,))

class Block(nn.Module):
    reentrant = None
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
    def compute(self, x): return x + self.down(F.gelu(self.up(self.norm(x))))
    def forward(self, x):
        if Block.reentrant is None: return self.compute(x)
        return checkpoint(self.compute, x, use_reentrant=Block.reentrant)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = Block(), Block(), nn.Linear(8, 4)
    def forward(self, x): return self.head(self.second(self.first(x)))

class BufferedGrads(nn.Module):
    # Gradients live in one contiguous buffer, which is reduced as a whole, as Megatron's.
    def __init__(self, module):
        super().__init__()
        self.module = module
        parameters = list(module.parameters())
        self.buffer = torch.zeros(sum(p.numel() for p in parameters))
        at = 0
        for p in parameters:
            p.main_grad = self.buffer[at:at + p.numel()].view_as(p)
            at += p.numel()
            node = p.expand_as(p).grad_fn.next_functions[0][0]
            node.register_hook(self.hook(p))
            self.__dict__.setdefault("nodes", []).append(node)
    def hook(self, p):
        def accumulate(*_):
            p.main_grad.add_(p.grad)
            p.grad = None
        return accumulate
    def forward(self, x): return self.module(x)
    def finish(self):
        dist.all_reduce(self.buffer, async_op=True).wait()
        self.buffer.div_(2)
class MainSGD(torch.optim.Optimizer):
    def __init__(self, parameters, lr): super().__init__(parameters, {"lr": lr})
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]: p.add_(p.main_grad, alpha=-group["lr"])

def ddp(net): return DistributedDataParallel(net, gradient_as_bucket_view=True)
def ddp_copies(net): return DistributedDataParallel(net, static_graph=True)
def comm_hook(net):
    net = DistributedDataParallel(net, gradient_as_bucket_view=True)
    net.register_comm_hook(None, default_hooks.fp16_compress_hook)
    return net
def sharded(net, keeps):
    return FullyShardedDataParallel(net, auto_wrap_policy=ModuleWrapPolicy({Block}),
                                    device_id=torch.device("cpu"), use_orig_params=keeps)
def fsdp1(net): return sharded(net, False)
def fsdp1_orig(net): return sharded(net, True)
def fsdp2(net):
    for part in (net.first, net.second): fully_shard(part, mesh=mesh)
    return fully_shard(net, mesh=mesh)
def megatron(net): return BufferedGrads(net)
def reentrant(net):
    Block.reentrant = True
    return ddp_copies(net)
def not_reentrant(net):
    Block.reentrant = False
    return ddp(net)

def train(kind, steps=2, micro=2):
    torch.manual_seed(3); Block.reentrant = None
    model = kind(Net())
    optimizer = (MainSGD(model.parameters(), 1e-2) if kind is megatron
                 else torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=True))
    local = torch.Generator().manual_seed(rank)
    for step in range(steps):
        if debugger: debugger.start(model=model)
        for part in range(micro):
            x, y = torch.randn(2, 6, 8, generator=local), torch.randn(2, 6, 4, generator=local)
            x.requires_grad_()
            loss = F.mse_loss(model(x), y); loss.backward()
        if kind is megatron: model.finish()
        if kind is ddp and step == fault:
            torch._foreach_mul_([model.module.head.weight.grad], 1.01)  # in no entry
        optimizer.step()
        if kind is megatron: model.buffer.zero_()
        optimizer.zero_grad()
        if debugger: debugger.stop(); debugger.step()
        print(kind.__name__, float(loss.detach()).hex())
    for name, p in model.named_parameters():
        p = p.to_local() if hasattr(p, "to_local") else p
        print(name, hashlib.sha256(p.detach().numpy().tobytes()).hexdigest()[:16])

def calls():
    if debugger: debugger.start(model=nn.Sequential(nn.Linear(2, 2)))
    x = torch.arange(4.0) + rank
    y = functional.wait_tensor(functional.all_reduce(x, "sum", mesh))
    z = functional.all_gather_tensor(x, 0, mesh) + 1
    w = functional.reduce_scatter_tensor(x, "sum", 0, mesh) + 1
    handle = dist.all_reduce(x, async_op=True); handle.wait()
    got = torch.zeros(4)
    peer = 1 - rank
    operations = [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, got, peer)]
    for work in dist.batch_isend_irecv(operations): work.wait()
    if debugger: debugger.stop(); debugger.step()
    print([v.tolist() for v in (x, y, z, w, got)])

def pipeline():
    torch.manual_seed(3); Block.reentrant = None
    net = Net()
    part = nn.Sequential(net.first) if rank == 0 else nn.Sequential(net.second, net.head)
    stage = PipelineStage(part, rank, 2, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=F.mse_loss)
    optimizer = torch.optim.SGD(part.parameters(), lr=1e-2, fused=True)
    local = torch.Generator().manual_seed(11)
    for _ in range(2):
        x, y = torch.randn(4, 5, 8, generator=local), torch.randn(4, 5, 4, generator=local)
        if debugger: debugger.start(model=part)
        losses = []
        if rank == 0: schedule.step(x)
        else: schedule.step(target=y, losses=losses)
        optimizer.step(); optimizer.zero_grad()
        if debugger: debugger.stop(); debugger.step()
        print([float(loss).hex() for loss in losses])
    for p in part.parameters(): print(hashlib.sha256(p.detach().numpy().tobytes()).hexdigest()[:16])

for kind in (ddp, ddp_copies, comm_hook, fsdp1, fsdp1_orig, fsdp2, megatron, reentrant,
             not_reentrant):
    train(kind)
calls()
pipeline()
leave()
"""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return run_ranks(tmp_path_factory.mktemp("reference"), PROLOGUE + TRAINING, "none")


def record(directory: Path, level: str, *words: str) -> list[str]:
    path = config(directory, level=level)
    printed = run_ranks(directory, PROLOGUE + TRAINING, str(path), *words)
    # Nothing was lost, and nothing was left unfinished.
    assert not list(directory.rglob("dump_error_info.log"))
    for rank in range(2):
        steps = [dump_of(directory, rank, step) for step in range(STEPS)]
        assert not [n for data in steps for n in data if data[n].get("incomplete")]
    return printed


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, reference: list[str]) -> Path:
    directory = tmp_path_factory.mktemp("mix")
    assert_equal(record(directory, "mix"), reference)
    return directory


def assert_equal(printed: list[str], reference: list[str]) -> None:
    for rank in range(2):
        lines = [line for line in printed[rank].splitlines() if not line.startswith("20")]
        assert len(lines) > 130 and lines == reference[rank].splitlines(), f"rank {rank}"


def last_of(recorded: Path, stack: str, rank: int = 0) -> dict[str, Any]:
    return dump_of(recorded, rank, 2 * STACKS.index(stack) + 1)


def test_training_is_the_same_and_nothing_is_lost(tmp_path: Path, reference: list[str]) -> None:
    assert_equal(record(tmp_path, "L1"), reference)


@pytest.mark.parametrize("stack", ["ddp", "ddp_copies", "comm_hook", "reentrant", "not_reentrant"])
def test_gradients_before_and_after_the_reduction(recorded: Path, stack: str) -> None:
    ranks = [last_of(recorded, stack, rank) for rank in (0, 1)]
    grads = [data["Module.module.head.Linear.parameters_grad"] for data in ranks]
    assert grads[0]["weight"][0]["Norm"] != grads[1]["weight"][0]["Norm"]
    assert grads[0]["weight.reduced"][0]["Norm"] == grads[1]["weight.reduced"][0]["Norm"]
    stepped = ranks[0]["Optimizer.module.head.weight.0.forward"]["input_args"][1]
    assert stepped["Norm"] == grads[0]["weight.reduced"][0]["Norm"]
    assert ("Distributed.all_reduce.0.forward" in ranks[0]) == (stack == "comm_hook")
    recomputed = [n for n in ranks[0] if ranks[0][n].get("is_recompute")]
    assert bool(recomputed) == stack.endswith("reentrant")


def test_shards_have_their_place_in_the_whole(recorded: Path) -> None:
    data = last_of(recorded, "fsdp2")
    shard = data["Optimizer.head.weight.0.forward"]["input_args"][1]
    assert (shard["shape"], shard["full_shape"]) == ([2, 8], [4, 8])
    reduced = data["Module.head.Linear.parameters_grad"]["weight.reduced"][0]
    assert reduced["Norm"] == shard["Norm"] and reduced["placements"] == [{"Shard": {"dim": 0}}]
    flat = last_of(recorded, "fsdp1")
    name = "Optimizer._fsdp_wrapped_module.first._fsdp_wrapped_module._flat_param.0.forward"
    assert flat[name]["input_args"][0]["shape"] == [148], "half of 8 + 8 + 144 + 136"
    assert "Distributed.reduce_scatter_single.0.forward" in flat
    kept = last_of(recorded, "fsdp1_orig")
    name = "Module._fsdp_wrapped_module.first._fsdp_wrapped_module.up.Linear.parameters_grad"
    assert kept[name]["weight"][0]["shape"] == [16, 8]


def test_gradients_in_a_buffer_of_their_own(recorded: Path) -> None:
    ranks = [last_of(recorded, "megatron", rank) for rank in (0, 1)]
    main = [data["Optimizer.module.head.weight.0.forward"]["input_args"][1] for data in ranks]
    assert main[0]["Norm"] == main[1]["Norm"] > 0
    own = [data["Module.module.head.Linear.parameters_grad"]["weight"][0] for data in ranks]
    assert own[0]["Norm"] != own[1]["Norm"]
    buffer = ranks[0]["Distributed.all_reduce.0.forward"]["output"][0]
    assert buffer["shape"] == [628]


def test_calls_that_are_complete_later(recorded: Path) -> None:
    data = dump_of(recorded, 0, CALLS)
    # arange(4) + rank, summed over the ranks; what is not complete is never read.
    begun = data["_c10d_functional.all_reduce.0.forward"]
    assert begun["input_args"][0]["Max"] == 3 and begun["output"] == [None]
    waited = data["_c10d_functional.wait_tensor.0.forward"]
    assert waited["input_args"] == [None] and waited["output"][0]["Max"] == 7
    for name in ("all_gather_into_tensor", "reduce_scatter_tensor"):
        assert data[f"_c10d_functional.{name}.0.forward"]["output"] == [None]
    assert not [n for n in data if "_wrap_tensor" in n], "reads what is not complete"
    assert data["Distributed.all_reduce.0.forward"]["output"][0]["Max"] == 7
    received = data["Distributed.batch_isend_irecv.0.forward"]["output"][0][1]["tensor"]
    assert received["Max"] == 7


def test_stages_of_a_pipeline(recorded: Path) -> None:
    for rank, module in ((0, "Module.0.Block"), (1, "Module.1.Linear")):
        data = dump_of(recorded, rank, PIPELINE[1])
        forwards = [n for n in data if n.startswith(f"{module}.forward.")]
        assert len(forwards) == 2, "micro-batches"
        assert len([n for n in data if n.startswith(f"{module}.backward.")]) == 2
        assert [n for n in data if n.startswith("Distributed.")]
        assert [n for n in data if n.startswith("Optimizer.0.")]


def wrong_calls(target: Path, golden: Path, steps: list[int]) -> dict[int, str]:
    """By step: the first wrong call of rank 0."""
    named = {}
    for step in steps:
        paths = [root / f"out/step{step}/rank0" for root in (target, golden)]
        done = subprocess.run([PLUMB, "compare", *paths, "-o", target / "result", "--json",
                               "--format", "csv"], capture_output=True, text=True, check=False)
        found = json.loads(done.stdout)["first_wrong_call"]
        named.update({step: found["name"]} if found else {})
    return named


# They gather into memory that nobody wrote before, which their own calls take views of.
OF_FSDP = [2 * at + step for at in (3, 4, 5) for step in (0, 1)]


def test_two_recordings_and_one_fault(tmp_path: Path, recorded: Path) -> None:
    record(tmp_path, "mix", "1")
    named = wrong_calls(tmp_path, recorded, list(range(STEPS)))
    assert named == {1: "Optimizer.module.head.weight.0.forward"}


def test_two_recordings_of_modules(tmp_path: Path, reference: list[str]) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        assert_equal(record(tmp_path / name, "L0"), reference)
    assert wrong_calls(tmp_path / "first", tmp_path / "second", [*OF_FSDP, *PIPELINE]) == {}
