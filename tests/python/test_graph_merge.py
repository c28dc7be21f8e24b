"""plumb graph merges the ranks of a parallel run: recordings of a small model that is split in
every way are merged, and compared with the one of a single rank, whose numbers they must have.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_dumps_for_viewers import graph, only, read_db
from parallel_dumps import Split, tensor, weights_of, write_run
from ranks import PROLOGUE, run_ranks
from recording import PLUMB, config
from test_view_store import Result
from view_client import viewer

STATISTICS = ("Max", "Min", "Mean", "Norm")
LAYER = "Module.module.module.decoder.layers.{}"
FIRST_WEIGHT = "mlp.linear_fc1.ColumnParallelLinear.forward.0"


def sizes(*splits: Split) -> list[str]:
    """The options that say how runs were split."""
    def each(of: str) -> str:
        return ",".join(str(getattr(split, of)) for split in splits)
    return ["--rank_size", each("ranks"), "--tp", each("tp"), "--pp", each("pp"),
            "--vpp", each("vpp")]


def merged(root: Path, split: Split, *words: Any) -> Path:
    """The run is recorded and merged; the directory of the merged recordings."""
    source = write_run(root / "ranks", split)
    done = graph(source, "-o", root / "merged", "--file_type", "json", *sizes(split), *words)
    assert done.returncode == 0, done.stderr
    return root / "merged" / "step0"


def read(rank: Path, name: str) -> Any:
    """One file of a rank."""
    return json.loads((rank / f"{name}.json").read_text())


def compared(root: Path, target: Split, golden: Split) -> subprocess.CompletedProcess[str]:
    """plumb graph of two runs, which are merged first."""
    sides = [write_run(root / "target", target), write_run(root / "golden", golden)]
    done = graph(*sides, "-o", root / "out", *sizes(target, golden))
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("target", [
    Split(tp=2), Split(tp=4), Split(pp=2), Split(pp=4), Split(tp=2, pp=2),
    Split(pp=2, vpp=2), Split(tp=2, pp=2, vpp=2), Split(pp=2, hands_over=True),
    Split(tp=2, pp=2, batched=True, dict_weights=False)], ids=str)
def test_merged_ranks_have_the_numbers_of_one(tmp_path, target):
    done = compared(tmp_path, target, Split(dict_weights=target.dict_weights))
    assert "no wrong call" in done.stdout.splitlines()[0]
    nodes = read_db(only(tmp_path / "out", "*.vis.db"))
    one = read_db(only(tmp_path / "out", "*.vis.db"), "Bench")
    paired = {name: node for name, node in nodes.items()
              if node["matched_node_link"] and name != "DefaultModel"}
    # Every call of the single rank has its counterpart, and agrees.
    assert len(paired) == len(one) - 1
    assert all(node["precision_index"] == 0 for node in paired.values())


def test_replicas_pair_in_order(tmp_path):
    done = compared(tmp_path, Split(tp=2, pp=2, dp=2), Split(dp=2))
    assert done.stdout.splitlines()[0] == "0 of 2 comparisons name a wrong call; 2 complete"
    database = only(tmp_path / "out", "*.vis.db")
    assert read_db(database, rank=0) and read_db(database, rank=2) and not read_db(database, rank=1)


@pytest.mark.parametrize("split", [Split(tp=2), Split(tp=2, pp=2), Split(pp=2, vpp=2)], ids=str)
def test_first_wrong_call_is_the_planted_one(tmp_path, split):
    faulty = Split(**{**split.__dict__, "fault": (2, 1.01)})
    first = compared(tmp_path / "target", faulty, Split()).stdout.splitlines()[0]
    assert first.startswith("first wrong call: Torch.tanh")
    nodes = read_db(only(tmp_path / "target/out", "*.vis.db"))
    prefix = "Module.0.module.module" if split.vpp > 1 else "Module.module.module"
    wrong = first.split(": ")[1]
    assert nodes[wrong]["up_node"] == f"{prefix}.decoder.layers.2.mlp.MLP.forward.0"
    # The other way round the single rank is wrong.
    first = compared(tmp_path / "golden", Split(fault=(2, 1.01)), split).stdout.splitlines()[0]
    assert first == "first wrong call: Torch.tanh.2.forward"


def test_tensor_parallel_statistics_with_their_formulas(tmp_path):
    rank = merged(tmp_path, Split(tp=2)) / "rank0"
    name = f"{LAYER.format(0)}.{FIRST_WEIGHT}"
    entry = read(rank, "dump")["data"][name]
    # Weights, too, are those of the whole model.
    whole = tensor(weights_of(4)[0].first)
    shown = entry["parameters"]["weight"]
    assert [shown[key] for key in STATISTICS] == pytest.approx([whole[key] for key in STATISTICS])
    parts = [read(tmp_path / f"ranks/step0/rank{r}", "dump")["data"][name]["parameters"]["weight"]
             for r in (0, 1)]
    low, high = (part["Mean"] for part in parts)
    lines = entry["parallel_merge_info"]
    assert lines[0] == "Merged over tensor parallel ranks [0, 1]"
    assert f"Mean of parameters.weight: ({low} + {high}) / 2 = {(low + high) / 2}" in lines
    assert sum(line.split()[0] in STATISTICS and "parameters.weight:" in line
               for line in lines) == 4


def test_merged_dump_is_read_like_any_other(tmp_path):
    target = merged(tmp_path / "target", Split(tp=2, fault=(1, 1.01)))
    golden = merged(tmp_path / "golden", Split())
    dump = read(target / "rank0", "dump")
    assert {key: dump[key] for key in dump if key != "data"} == {
        "task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None,
        "is_merged": True}
    construct = read(target / "rank0", "construct")
    order = list(construct)
    assert all(parent == "DefaultModel" or order.index(parent) > order.index(child)
               for child, parent in construct.items())
    stacks = read(target / "rank0", "stack")
    [names, frames] = stacks["0"]
    assert names[0] in construct and frames[0].startswith("File ")
    done = subprocess.run([PLUMB, "compare", target, golden, "-o", tmp_path / "compared"],
                          capture_output=True, text=True, check=False)
    assert "first wrong call: Torch.tanh.1.forward" in done.stdout
    done = graph(target, golden, "-o", tmp_path / "again")
    assert "first wrong call: Torch.tanh.1.forward" in done.stdout


def test_the_viewer_shows_how_ranks_were_merged(tmp_path):
    target = merged(tmp_path / "target", Split(tp=2, pp=2, fault=(3, 1.01)))
    golden = merged(tmp_path / "golden", Split())
    with viewer(tmp_path / "cache", target, golden) as running:
        result = Result(running)
        first = result("meta")["first"]["name"]
        assert first == "Torch.tanh_rank2.1.forward"
        node = result.node(first)
        assert node["flags"] & 64 and node["partner"] >= 0
        lines = result("node", node=node["id"])["merge"]
        assert lines[0] == "Merged over tensor parallel ranks [2, 3]"
        assert lines[1].startswith("Max of input.0: max(")
        loose = result.node("Apis_Between_Modules_Rank2.0")
        assert result.node("Distributed.irecv_rank2.0.forward")["parent"] == loose["id"]
        assert {each["name"] for each in result.find("flag:merged")} >= {first}


def test_pipeline_layers_are_numbered_on(tmp_path):
    rank = merged(tmp_path, Split(pp=2, layers=8)) / "rank0"
    construct = read(rank, "construct")
    layers = [name.split(".")[5] for name in construct
              if name.endswith("TransformerLayer.forward.0")]
    assert layers == [str(i) for i in range(8)]
    layers = [name.split(".")[5] for name in construct
              if name.endswith("TransformerLayer.backward.0")]
    assert layers == [str(i) for i in reversed(range(8))]
    groups = {parent for parent in construct.values() if "Modules_Rank" in parent}
    assert groups == {"Apis_Between_Modules_Rank0.0", "Apis_Between_Modules_Rank1.0",
                      "Apis_Between_Modules_Rank1.1"}


def test_a_copy_that_differs_is_marked(tmp_path):
    rank = merged(tmp_path, Split(tp=2, replicated_fault=1)) / "rank0"
    entry = read(rank, "dump")["data"][f"{LAYER.format(1)}.input_layernorm.LayerNorm.forward.0"]
    assert any("of copies that differ it is too large" in line
               for line in entry["parallel_merge_info"])


PROBLEMS = [
    (["--rank_size", "4", "--tp", "2"], "--pp: is missing"),
    (["--tp", "2", "--pp", "2"], "--rank_size: is missing"),
    (["--rank_size", "4,4", "--tp", "2,2", "--pp", "2,2"],
     "--tp: expected one value for one recording, got 2 values"),
    (["--rank_size", "8", "--tp", "3", "--pp", "1"],
     "target: --rank_size: expected 4, the number of recorded ranks, got 8"),
    (["--rank_size", "4", "--tp", "3", "--pp", "1"],
     "target: --rank_size: 4 is not divisible by --tp 3"),
    (["--rank_size", "4", "--tp", "4", "--pp", "1", "--vpp", "2"],
     "target: --vpp: 2 needs --pp 2 or more, got --pp 1"),
    (["--rank_size", "4", "--tp", "2", "--pp", "2", "--order", "TP"],
     "target: --order: expected lower-case letters"),
    (["--rank_size", "4", "--tp", "2", "--pp", "2", "--ranks", "0"], "--ranks: merging needs all"),
]


@pytest.mark.parametrize("words, message", PROBLEMS, ids=lambda each: " ".join(each)
                         if isinstance(each, list) else "")
def test_options_that_contradict_each_other(tmp_path, words, message):
    source = write_run(tmp_path / "ranks", Split(tp=2, pp=2))
    for form in ("db", "json"):
        done = graph(source, "-o", tmp_path / "out", *words, "--file_type", form)
        assert done.returncode == 2
        assert message in done.stderr and len(done.stderr.splitlines()) == 1
        left = [path for path in (tmp_path / "out").rglob("*") if path.is_file()] \
            if (tmp_path / "out").exists() else []
        assert left == []


def test_other_numbers_of_replicas_are_both_named(tmp_path):
    target, golden = Split(tp=2, dp=2), Split()
    sides = [write_run(tmp_path / "target", target), write_run(tmp_path / "golden", golden)]
    done = graph(*sides, "-o", tmp_path / "out", *sizes(target, golden))
    assert done.returncode == 2
    assert "2 graphs of the target and 1 graph of golden" in done.stderr


def test_json_is_for_merging_one_recording(tmp_path):
    split = Split(tp=2)
    source = write_run(tmp_path / "ranks", split)
    done = graph(source, source, "-o", tmp_path / "out", *sizes(split, split),
                 "--file_type", "json")
    assert done.returncode == 2 and "expected no GOLDEN" in done.stderr
    done = graph(source, "-o", tmp_path / "out", "--file_type", "json")
    assert done.returncode == 0 and "--file_type json" in done.stderr
    assert only(tmp_path / "out", "build_*.vis.db")


def test_recordings_are_never_replaced(tmp_path):
    target = merged(tmp_path, Split(tp=2))
    before = (target / "rank0" / "dump.json").read_bytes()
    done = graph(tmp_path / "ranks/step0", "-o", tmp_path / "merged", "--file_type", "json",
                 *sizes(Split(tp=2)))
    assert done.returncode == 2 and "exists already" in done.stderr
    assert (target / "rank0" / "dump.json").read_bytes() == before


def test_groups_follow_what_the_ranks_sent(tmp_path):
    """Ranks placed in another order than Megatron's: the communication tells, --order need not."""
    split = Split(tp=2, pp=2)
    source = write_run(tmp_path / "ranks", split)
    done = graph(source, "-o", tmp_path / "out", "--file_type", "json", *sizes(split),
                 "--order", "pp-tp-cp-ep-dp")
    assert done.returncode == 0 and "computed" not in done.stderr
    info = json.dumps(read(tmp_path / "out/step0/rank0", "dump"))
    assert "tensor parallel ranks [0, 1]" in info and "tensor parallel ranks [2, 3]" in info


def test_structure_alone_cannot_be_merged(tmp_path):
    source = write_run(tmp_path / "ranks", Split(tp=2))
    for rank in ("rank0", "rank1"):
        dump = read(source / rank, "dump")
        dump["task"] = "structure"
        (source / rank / "dump.json").write_text(json.dumps(dump))
    done = graph(source, "-o", tmp_path / "out", *sizes(Split(tp=2)))
    assert done.returncode == 4 and "has no statistics to merge" in done.stderr


def test_nan_of_one_rank_is_not_lost(tmp_path):
    source = write_run(tmp_path / "ranks", Split(tp=2))
    path = source / "rank1" / "dump.json"
    dump = json.loads(path.read_text())
    name = "Torch.tanh.0.forward"
    dump["data"][name]["output"][0].update(dict.fromkeys(STATISTICS, float("nan")))
    path.write_text(json.dumps(dump))
    done = graph(source, "-o", tmp_path / "out", "--file_type", "json", *sizes(Split(tp=2)))
    assert done.returncode == 0, done.stderr
    shown = read(tmp_path / "out/step0/rank0", "dump")["data"][name]["output"][0]
    assert all(np.isnan(shown[key]) for key in STATISTICS)


def test_upstreams_words_for_the_same(tmp_path):
    target, golden = Split(tp=2), Split()
    sides = [write_run(tmp_path / "target", target), write_run(tmp_path / "golden", golden)]
    done = subprocess.run(
        [PLUMB, "msprobe", "graph_visualize", "-tp", sides[0], "-gp", sides[1], "-o",
         tmp_path / "out", "--rank_size", "2", "1", "--tp", "2", "1", "--pp", "1", "1"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "no wrong call" in done.stdout


# Two processes hold halves of each layer, as Megatron splits them; one alone holds all.
TRAINING = """
import torch.nn as nn
import torch.nn.functional as F

class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x
    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        if world > 1: dist.all_reduce(grad, group=group)
        return grad

class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        if world > 1: dist.all_reduce(x, group=group)
        return x
    @staticmethod
    def backward(ctx, grad): return grad

class ColumnParallelLinear(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.weight = nn.Parameter(whole.chunk(world, 0)[rank].clone())
    def forward(self, x): return torch.matmul(Copy.apply(x), self.weight.t())

class RowParallelLinear(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.weight = nn.Parameter(whole.chunk(world, 1)[rank].clone())
    def forward(self, x): return Reduce.apply(torch.matmul(x, self.weight.t()))

class MLP(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.linear_fc1 = ColumnParallelLinear(torch.randn(wide, 32) / 6)
        self.linear_fc2 = RowParallelLinear(torch.randn(32, wide) / 11)
    def forward(self, x):
        heads = self.linear_fc1(x)
        heads = heads.view(8, 4, heads.shape[-1] // 4).reshape(8, -1)
        return self.linear_fc2(F.gelu(heads))

class TransformerLayer(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.input_layernorm = nn.LayerNorm(32, eps=eps)
        self.mlp = MLP(128)
    def forward(self, x): return x + self.mlp(self.input_layernorm(x))

class TransformerBlock(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.layers = nn.ModuleList([TransformerLayer(1e-5), TransformerLayer(eps),
                                     TransformerLayer(1e-5)])
    def forward(self, x):
        for layer in self.layers: x = layer(x)
        return x

class GPTModel(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.decoder = TransformerBlock(eps)
    def forward(self, x): return self.decoder(x)

from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[4])
group = None
if world > 1:
    join()
    group = dist.new_group(list(range(world)))
torch.manual_seed(5)
model = GPTModel(float(sys.argv[5]))
x = torch.randn(8, 32)
debugger.start(model)
model(x).square().mean().backward()
debugger.stop()
debugger.step()
if world > 1: leave()
"""


def recorded(root: Path, world: int, eps: float) -> Path:
    """The training recorded at level mix; the directory of its step."""
    root.mkdir()
    run_ranks(root, PROLOGUE + TRAINING, config(root, level="mix"), eps, world=world)
    return root / "out" / "step0"


def test_real_tensor_parallel_training(tmp_path):
    one = recorded(tmp_path / "one", 1, 1e-5)
    words = ["--rank_size", "2,1", "--tp", "2,1", "--pp", "1,1"]
    done = graph(recorded(tmp_path / "two", 2, 1e-5), one, "-o", tmp_path / "out", *words)
    assert done.returncode == 0, done.stderr
    assert "no wrong call" in done.stdout.splitlines()[0]
    done = graph(recorded(tmp_path / "bad", 2, 1e-2), one, "-o", tmp_path / "bad_out", *words)
    first = done.stdout.splitlines()[0]
    assert first == "first wrong call: Functional.layer_norm.1.forward"
    nodes = read_db(only(tmp_path / "bad_out", "*.vis.db"))
    assert ".decoder.layers.1.input_layernorm." in nodes[first.split(": ")[1]]["up_node"]
