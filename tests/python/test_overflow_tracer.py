"""OverflowTracer: the frames of transformers' class, the training as if it was not there."""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
import signal
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks import PROLOGUE, run_ranks
from recording import config, run
from torch import nn
from transformers.debug_utils import DebugUnderflowOverflow

from plumbline.pytorch import OverflowTracer

torch.set_num_threads(1)


class Block(nn.Module):
    """Returns a nested tuple with things that are no tensors, as decoder blocks do."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.wi, self.act, self.wo = nn.Linear(8, 16, bias=False), nn.ReLU(), nn.Linear(16, 8)
        self.gain = nn.Parameter(torch.ones(1))
        self.register_parameter("absent", None)
        self.scale = scale

    def forward(self, x: torch.Tensor, mask: Any) -> Any:
        h = self.wo(self.act(self.wi(x))) * (self.gain * self.scale)
        return h, (x, None), mask is None


class Net(nn.Module):
    """An encoder whose values grow by `scale` per block."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.blocks = nn.ModuleList(Block(scale) for _ in range(3))
        self.again = self.blocks[0].act  # shared: reported by its first name

    def forward(self, ids: torch.Tensor) -> Any:
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, None)[0]
        return {"logits": self.again(x)}


IDS = torch.arange(6).view(2, 3)


def printed(tracer: Any, dtype: torch.dtype, scale: float, *, nan: bool = False,
            **options: Any) -> tuple[str, bool]:
    """What three batches print, and whether the tracer ended them."""
    torch.manual_seed(0)
    net = Net(scale).to(dtype)
    if nan:
        net.blocks[1].wi.weight.data[0, 0] = math.nan
        net.blocks[1].wi.weight.data[1, 0] = -math.inf
    del net.again
    net.again = nn.Identity()  # transformers hooks a shared module once per place
    tracer(net, **options)
    with redirect_stdout(io.StringIO()) as out:
        try:
            for _ in range(3):
                net(IDS)
        except ValueError:
            return out.getvalue(), True
    return out.getvalue(), False


@pytest.mark.parametrize(("dtype", "scale"), [
    (torch.float16, 3e3), (torch.bfloat16, 1e16), (torch.float32, 1e16), (torch.float32, 1.0)])
def test_prints_what_transformers_prints(tmp_path: Path, dtype: torch.dtype, scale: float) -> None:
    cases: list[dict[str, Any]] = [{}, {"max_frames_to_save": 3}, {"nan": True}]
    if scale == 1.0:
        cases += [{"trace_batch_nums": [0, 2]}, {"abort_after_batch_num": 1}]
    for case in cases:
        wanted = printed(DebugUnderflowOverflow, dtype, scale, **case)
        got = printed(OverflowTracer, dtype, scale, dump_path=tmp_path, **case)
        assert got == wanted, case
        assert got[1] == (scale != 1.0 or "nan" in case or "abort_after_batch_num" in case)


def test_the_file_holds_what_was_printed(tmp_path: Path) -> None:
    text, _ = printed(OverflowTracer, torch.float16, 3e3, dump_path=tmp_path, max_frames_to_save=4)
    written = json.loads((tmp_path / "overflow_trace_rank0.json").read_text())
    assert [written[key] for key in ("model", "rank", "max_frames_to_save", "traced")] == [
        "Net", 0, 4, []]
    found = written["detected"]
    assert found["batch_number"] == 0 and len(found["frames"]) == 4
    assert found["values"] == [line for line in text.splitlines() if " has " in line]
    for frame in found["frames"]:
        assert f"{'':17} {frame['module']} {frame['class']}\n" in text
        for value in frame["values"]:
            if value["kind"] == "tensor":
                assert f"{value['abs_min']:8.2e} {value['abs_max']:8.2e} {value['label']}\n" in text
    last = found["frames"][-1]["values"]
    assert any(value.get("has_infs") for value in last)


class Kinds(nn.Module):
    """Returns tensors of every kind, in a container that has one line."""

    def __init__(self, extra: Any = 0.0) -> None:
        super().__init__()
        self.extra = extra

    def forward(self, x: torch.Tensor) -> Any:
        fine = {
            "empty": torch.ones(0), "bool": torch.tensor([True]), "int": torch.tensor([-7]),
            "double": torch.tensor([1e300], dtype=torch.float64),
            "complex": torch.tensor([3 - 4j]).conj(), "meta": torch.ones(2, device="meta"),
            "sparse": torch.tensor([[0.0, 2.0]]).to_sparse(), "more": [(torch.ones(2),)],
            "view": torch.full((4, 4), 2.0).t()[1:, ::2], "self": x,
        }
        return (*fine.values(), fine, {"loss": torch.tensor([1.0, self.extra])})


def test_kinds_of_tensors_and_containers(tmp_path: Path) -> None:
    with redirect_stdout(io.StringIO()) as out:
        model = Kinds()
        OverflowTracer(model, trace_batch_nums=[0], dump_path=tmp_path)
        model(torch.ones(2))
    lines = out.getvalue().splitlines()
    assert [line[:17] for line in lines[lines.index(f"{'':17}  Kinds") + 1:]] == [
        "1.00e+00 1.00e+00", "0.00e+00 0.00e+00", "1.00e+00 1.00e+00", "7.00e+00 7.00e+00",
        "1.00e+300 1.00e+3", "5.00e+00 5.00e+00", "     not readable", "0.00e+00 2.00e+00",
        "     not a tensor", "2.00e+00 2.00e+00", "1.00e+00 1.00e+00", "     not a tensor",
        "     not a tensor"]
    bad = Kinds(math.inf)
    OverflowTracer(bad, dump_path=tmp_path)
    loss = pytest.raises(ValueError, match=r"output\[11\]\[loss\] has infs")
    with redirect_stdout(io.StringIO()) as out, loss:
        bad(torch.ones(2))
    assert "1.00e+00      inf output[11][loss]\n" in out.getvalue(), "shown because it is bad"
    assert "batch_number=0\n" in out.getvalue()


def test_training_is_the_same_and_nothing_is_left(tmp_path: Path) -> None:
    def train(traced: bool) -> tuple[list[torch.Tensor], Net]:
        torch.manual_seed(1)
        net = Net(0.5)
        hooks = [module._forward_hooks for module in net.modules()]
        tracer = OverflowTracer(net, dump_path=tmp_path) if traced else None
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            net(IDS)["logits"].sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        if tracer is not None:
            clone = copy.deepcopy(net)
            assert pickle.loads(pickle.dumps(net))(IDS).keys() == {"logits"}
            clone(IDS)
            tracer.remove()
            tracer.remove()
        assert all(module._forward_hooks is hook and not hook
                   for module, hook in zip(net.modules(), hooks, strict=True))
        return [parameter.detach() for parameter in net.parameters()], net

    (plain, _), (seen, net) = train(False), train(True)
    assert all(torch.equal(a, b) for a, b in zip(plain, seen, strict=True))
    assert not list(tmp_path.iterdir()), "nothing was found"
    with OverflowTracer(net, dump_path=tmp_path) as tracer:
        net.embed.weight.data[0] = math.nan
        with redirect_stdout(io.StringIO()), pytest.raises(ValueError, match="in embed"):
            net(IDS)
        assert tracer.is_over and not net._forward_hooks
        net(IDS)


def test_compiled_models_stay_whole(tmp_path: Path) -> None:
    net = Net(0.5)
    wanted = net(IDS)["logits"]
    OverflowTracer(net, dump_path=tmp_path)
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    assert torch.equal(compiled(IDS)["logits"], wanted)


@pytest.mark.parametrize(("arguments", "text"), [
    ({"max_frames_to_save": 0}, "max_frames_to_save is 0 (expected an integer of at least 1)"),
    ({"max_frames_to_save": True}, "max_frames_to_save is True"),
    ({"trace_batch_nums": [-1]}, "trace_batch_nums: an element is -1"),
    ({"abort_after_batch_num": 1.5}, "abort_after_batch_num is 1.5"),
    ({"raise_on_overflow": 1}, "raise_on_overflow is 1"),
    ({"model": 3}, "model must be a module (got int)"),
])
def test_wrong_arguments(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as error:
        OverflowTracer(**{"model": Net(), **arguments})
    assert text in str(error.value)


SCRIPT = """
import os, signal, sys, torch
from torch import nn
torch.set_num_threads(1)
from plumbline.pytorch import PrecisionDebugger
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
debugger = PrecisionDebugger(sys.argv[1])
for step in range(4):
    if step == 2:
        with torch.no_grad():
            net[0].weight.fill_(1e38)
    debugger.start(net)
    try:
        net(torch.full((1, 2), 10.0))
    except ValueError as error:
        print("raised:", error)
    debugger.stop()
    debugger.step()
    assert not net._forward_hooks and not net[0]._forward_hooks
    if step == 2 and "kill" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_mode_trace_of_the_task(tmp_path: Path) -> None:
    options: dict[str, Any] = {"mode": "trace", "max_frames_to_save": 2, "trace_batch_nums": [1]}
    done = run(SCRIPT, config(tmp_path, task="overflow_check", step=["1-3"], **options), "kill",
               check=False)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.count("Detected inf/nan during batch_number=1") == 0, "that one is traced"
    written = json.loads((tmp_path / "out" / "overflow_trace_rank0.json").read_text())
    assert [frame["batch_number"] for frame in written["traced"]] == [1, 1, 1]
    options["trace_batch_nums"] = []
    done = run(SCRIPT, config(tmp_path, task="overflow_check", **options), "kill", check=False)
    assert "Last 1 forward frames" not in done.stdout
    assert "raised: OverflowTracer: inf/nan detected in 0 (output has infs)" in done.stdout
    written = json.loads((tmp_path / "out" / "overflow_trace_rank0.json").read_text())
    assert written["detected"]["batch_number"] == 2 and len(written["detected"]["frames"]) == 2
    assert not (tmp_path / "out" / "step0").exists()
    done = run(SCRIPT, config(tmp_path, task="overflow_check", raise_on_overflow=False, **options))
    assert "raised" not in done.stdout and done.stdout.count("Detected inf/nan") == 1
    done = run(SCRIPT, config(tmp_path, task="overflow_check", abort_after_batch_num=0, **options))
    assert "raised: OverflowTracer: 1 batches are done" in done.stdout


@pytest.mark.parametrize(("key", "value", "expected"), [
    ("mode", "tracing", "record, trace"), ("max_frames_to_save", 0, "at least 1"),
    ("trace_batch_nums", 3, "a list such as"), ("abort_after_batch_num", -1, "at least 0"),
    ("raise_on_overflow", "yes", "true or false"), ("saturated", 1, "true or false")])
def test_wrong_settings(tmp_path: Path, key: str, value: Any, expected: str) -> None:
    from plumbline import _core
    path = config(tmp_path, task="overflow_check", **{key: value})
    with pytest.raises(ValueError, match="overflow_check." + key) as error:
        _core.load_config(str(path), None, None, None, None)
    assert expected in str(error.value)


def test_other_ranks_do_not_wait(tmp_path: Path) -> None:
    run_ranks(tmp_path, PROLOGUE + """
from plumbline.pytorch import OverflowTracer
join()
net = torch.nn.Linear(2, 2)
OverflowTracer(net, dump_path=sys.argv[4])
if rank == 1:
    net.weight.data.fill_(float("nan"))
total = net(torch.ones(2)).sum()
dist.all_reduce(total)
leave()
""", tmp_path)
    assert not (tmp_path / "overflow_trace_rank0.json").exists()
    found = json.loads((tmp_path / "overflow_trace_rank1.json").read_text())
    assert found["detected"]["module"] == "" and found["rank"] == 1
