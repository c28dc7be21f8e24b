"""Training under DeepSpeed and Megatron-Core, the real packages: two processes of each example.

The same to the bit with and without the recorder, no call is lost, two recordings agree, and a
fault is named.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ranks import PROLOGUE, dump_of, run_ranks
from recording import AT_LEVEL, PLUMB
from warm_python import OPTIMIZER, Server

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "build" / "parallel" / "bin" / "python"  # tools/bootstrap.sh parallel
# Imported once, for all runs of the file. What DeepSpeed would have compiled, for collectives in
# shared memory, takes a minute.
IMPORTS = OPTIMIZER + """
import os, warnings
warnings.simplefilter("ignore")
os.environ["DS_ACCELERATOR"] = "cpu"
import deepspeed
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
import megatron.core.distributed, megatron.core.tensor_parallel
import megatron.core.transformer.transformer_config
"""

# Arguments: EXAMPLE DIRECTORY|none LEVEL [FAULT CALL ...]. FAULT is an operator, of whose calls
# these go wrong on rank 1, below what is recorded: its result, or what it gives a collective.
RUN = PROLOGUE + AT_LEVEL + """
import os, runpy
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
example, directory, level, *fault = sys.argv[4:]
os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))

class Changed(TorchDispatchMode):
    uses = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            is_wrong = False
            if func.overloadpacket.__name__ == fault[0]:
                is_wrong = str(self.uses) in fault[1:]
                self.uses += 1
            if is_wrong and func.namespace == "c10d":
                args[0][0].mul_(1.05)
            result = func(*args, **(kwargs or {}))
            if is_wrong and func.namespace != "c10d":
                result.mul_(1.05)
            return result

join()
dist.init_process_group = lambda *_, **__: None  # the examples'
if directory != "none":
    at_level(level)
if fault and rank == 1:
    Changed().__enter__()
sys.argv[:] = [example, directory]
runpy.run_path(example, run_name="__main__")
finish()
"""
STEPS = {"deepspeed": 6, "megatron": 4}  # two of each training
RUNS = {"without": "mix", "mix": "mix", "again": "mix", "L0": "L0", "L1": "L1"}
# The first call of an activation in a training, and the reduction of Megatron's main_grad.
GELU = {"deepspeed": ("gelu", 0, 4, 8), "megatron": ("gelu", 0)}
REDUCTION = ("allreduce_coalesced_", 2)

pytestmark = pytest.mark.skipif(not PYTHON.is_file(), reason="tools/bootstrap.sh parallel")


def results(printed: list[str]) -> list[list[str]]:
    """Losses and hashes of weights by rank."""
    return [[line for line in each.splitlines() if line.startswith(("loss ", "weights "))]
            for each in printed]


class Recordings:
    """What the runs of one example printed and recorded."""

    def __init__(self, server: Server, root: Path, stack: str) -> None:
        self.server, self.root, self.stack = server, root, stack
        self.printed = {name: self.run(name, level) for name, level in RUNS.items()}

    def run(self, name: str, level: str, *fault: Any) -> list[list[str]]:
        directory = self.root / name
        target = "none" if name == "without" else directory / "out"
        example = ROOT / "examples" / f"record_{self.stack}.py"
        return results(run_ranks(directory, RUN, example, target, level, *fault,
                                 server=self.server))

    def entries(self, step: int, rank: int, name: str = "mix") -> dict[str, Any]:
        return dump_of(self.root / name, rank, step)

    def compare(self, target: str, golden: str, step: int, rank: int) -> dict[str, Any]:
        paths = [self.root / name / f"out/step{step}/rank{rank}" for name in (target, golden)]
        done = subprocess.run([PLUMB, "compare", *paths, "-o", self.root / "result", "--json",
                               "--format", "csv"], capture_output=True, text=True, check=False)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def wrong_call(self, target: str, step: int, rank: int) -> str | None:
        found = self.compare(target, "mix", step, rank)["first_wrong_call"]
        return found["name"] if found else None


@pytest.fixture(scope="module")
def server() -> Server:
    return Server(IMPORTS, PYTHON)


@pytest.fixture(scope="module")
def deepspeed(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    return Recordings(server, tmp_path_factory.mktemp("deepspeed"), "deepspeed")


@pytest.fixture(scope="module")
def megatron(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    return Recordings(server, tmp_path_factory.mktemp("megatron"), "megatron")


@pytest.fixture(params=list(STEPS))
def recordings(request: pytest.FixtureRequest) -> Recordings:
    found: Recordings = request.getfixturevalue(request.param)
    return found


def grad_norm(data: dict[str, Any], parameter: str) -> float:
    """Of the gradient that the optimizer gets."""
    norm: float = data[f"Optimizer.{parameter}.0.forward"]["input_args"][1]["Norm"]
    return norm


def test_every_level_loses_nothing_and_changes_nothing(recordings: Recordings) -> None:
    steps = STEPS[recordings.stack]
    for rank in range(2):
        lines = recordings.printed["without"][rank]
        assert len(lines) == steps + steps // 2
        assert all(printed[rank] == lines for printed in recordings.printed.values())
    assert not list(recordings.root.rglob("dump_error_info.log"))
    for name in RUNS:
        if name == "without":
            continue
        for step in range(steps):
            for rank in range(2):
                data = recordings.entries(step, rank, name)
                assert not [n for n in data if data[n].get("incomplete")]
                assert any(n.startswith("Distributed.") for n in data) == (name != "L0")
                assert any(n.startswith("Module.") for n in data) == (name != "L1")


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_a_recording_agrees_with_itself(recordings: Recordings, level: str) -> None:
    # Of two runs at mix all steps; of the other levels the last one.
    steps = range(STEPS[recordings.stack])
    for step in steps if level == "mix" else steps[-1:]:
        for rank in range(2):
            answer = recordings.compare("again" if level == "mix" else level, level, step, rank)
            assert answer["first_wrong_call"] is None
            counts = answer["counts"]
            assert counts["same"] > 30 and not counts["suspicious"] + counts["broken"]
            assert not counts["unmatched target"] + counts["unmatched golden"]
            # DeepSpeed's bucket is full of NaN where nobody wrote yet.
            assert answer["complete"] or recordings.stack == "deepspeed"


def test_a_fault_on_one_rank_is_named(recordings: Recordings) -> None:
    stack = recordings.stack
    changed = recordings.run("fault", "mix", *GELU[stack])
    assert changed != recordings.printed["without"]
    # Rank 0 gets it by communication: of gradients, or of the partial sums of a layer.
    received = {"deepspeed": ("all_reduce.0", "all_reduce.0", "reduce_scatter_tensor.0"),
                "megatron": ("all_reduce.1",)}[stack]
    for training, call in enumerate(received):
        assert recordings.wrong_call("fault", 2 * training, 1) == "Functional.gelu.0.forward"
        assert recordings.wrong_call("fault", 2 * training, 0) == f"Distributed.{call}.forward"


def test_a_wrong_reduction_of_main_grad_is_named(megatron: Recordings) -> None:
    megatron.run("reduction", "mix", *REDUCTION)
    for rank in range(2):
        named = [megatron.wrong_call("reduction", step, rank) for step in range(3)]
        assert named == [None, None, "Distributed.all_reduce.6.forward"]


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_what_zero_does_is_seen(deepspeed: Recordings, stage: int) -> None:
    ranks = [deepspeed.entries(2 * stage - 1, rank) for rank in range(2)]
    # Each micro-batch's own gradient, and half of all parameters at the optimizer, clipped to 1.
    own = [data["Module.module.up.Linear.parameters_grad"]["weight"][0] for data in ranks]
    assert own[0]["shape"] == [16, 8] and own[0]["Norm"] != own[1]["Norm"]
    stepped = [data["Optimizer.0.0.0.forward"]["input_args"] for data in ranks]
    assert [each["shape"] for both in stepped for each in both] == [[122]] * 4
    norms = [grad_norm(data, "0.0") for data in ranks]
    assert norms[0] ** 2 + norms[1] ** 2 == pytest.approx(1, rel=1e-5)
    for data in ranks:
        forwards = [n for n in data if n.startswith("Module.module.head.Linear.forward.")]
        assert len(forwards) == 2, "micro-batches"
        # Parameters: once behind the optimizer, or of 3 modules for 2 passes of 2 micro-batches.
        gathers = [n for n in data if n.startswith("Distributed.all_gather_into_tensor.")]
        assert len(gathers) == (12 if stage == 3 else 1)
        weight = data["Functional.linear.0.forward"]["input_args"][1]
        held = data["Module.module.up.Linear.forward.0"]["parameters"]["weight"]
        assert weight["shape"] == [16, 8] and held["shape"] == ([0] if stage == 3 else [16, 8])
    reduces = [n for n in ranks[0] if n.startswith("Distributed.reduce_scatter_tensor.")]
    assert len(reduces) == (2 if stage == 3 else 0)
    whole = [data["Distributed.all_reduce.0.forward"]["output"][0]["Norm"] for data in ranks]
    assert whole[0] == whole[1], "reduced gradients, or their norm in stage 3"


def test_tensor_parallel_layers_hold_their_parts(megatron: Recordings) -> None:
    ranks = [megatron.entries(1, rank) for rank in range(2)]
    shapes = {"words.VocabParallelEmbedding": [16, 8], "up.ColumnParallelLinear": [8, 8],
              "down.RowParallelLinear": [8, 8], "head.ColumnParallelLinear": [16, 8]}
    for data in ranks:
        for layer, shape in shapes.items():
            module = data[f"Module.module.{layer}.forward.0"]
            assert module["parameters"]["weight"]["shape"] == shape
            assert data[f"Module.module.{layer}.parameters_grad"]["weight"][0]["shape"] == shape
    # The sum of the parts of a row-parallel layer, and three reductions of the cross entropy.
    outputs = [data["Distributed.all_reduce.1.forward"]["output"][0] for data in ranks]
    assert outputs[0]["shape"] == [2, 6, 8] and outputs[0]["Norm"] == outputs[1]["Norm"]
    for call, operator in ((2, "MAX"), (3, "SUM"), (4, "SUM")):
        entry = ranks[0][f"Distributed.all_reduce.{call}.forward"]
        assert entry["input_kwargs"]["op"]["value"] == f"RedOpType.{operator}"


def test_main_grad_is_what_the_optimizer_gets(megatron: Recordings) -> None:
    ranks = [megatron.entries(3, rank) for rank in range(2)]
    layers = ("words.VocabParallelEmbedding", "up.ColumnParallelLinear", "down.RowParallelLinear",
              "head.ColumnParallelLinear")
    parameters = [n.removesuffix(".0.forward").removeprefix("Optimizer.") for n in ranks[0]
                  if n.startswith("Optimizer.")]
    assert len(parameters) == 6
    for layer in layers:
        # Of the last micro-batch, before the reduction.
        own = [data[f"Module.module.{layer}.parameters_grad"]["weight"][0] for data in ranks]
        main = [grad_norm(data, f"module.{layer.split('.')[0]}.weight") for data in ranks]
        assert own[0]["Norm"] != own[1]["Norm"] and main[0] == main[1] != own[0]["Norm"]
    # All of them lie in the buffer that was reduced.
    buffers = [data["Distributed.all_reduce.6.forward"] for data in ranks]
    assert buffers[0]["input_args"][0]["Norm"] != buffers[1]["input_args"][0]["Norm"]
    squares = sum(grad_norm(ranks[0], name) ** 2 for name in parameters)
    for buffer in buffers:
        assert buffer["output"][0]["shape"] == [792]
        assert buffer["output"][0]["Norm"] ** 2 == pytest.approx(squares, rel=1e-5)
