"""A run against the same run again: no call is named, whatever memory that nobody wrote holds.

What is written into such memory wrongly, or not at all, is named nevertheless.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from recording import PLUMB

# Steps of a model, one recording per level and task. Each is made by a process of its own: a
# debugger is one per process.
SCRIPT = """
import json, os, sys, torch
from transformers import (DeepseekV3Config, DeepseekV3ForCausalLM, MixtralConfig,
                          MixtralForCausalLM)
from plumbline.pytorch import PrecisionDebugger

def mixtral():
    return MixtralForCausalLM(MixtralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, num_local_experts=4,
        experts_implementation="grouped_mm"))

def deepseek():
    return DeepseekV3ForCausalLM(DeepseekV3Config(
        vocab_size=64, hidden_size=32, intermediate_size=48, moe_intermediate_size=16,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, n_routed_experts=8,
        n_group=2, topk_group=1, num_experts_per_tok=2, first_k_dense_replace=1,
        kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8))

def record(out, level, task, mode):
    options = {"task": task, "dump_path": out, "level": level, task: {"summary_mode": mode}}
    json.dump(options, open(out + ".json", "w"))
    torch.manual_seed(0)
    model = globals()[sys.argv[2]]()
    debugger = PrecisionDebugger(out + ".json")
    tokens = torch.randint(0, 64, (2, 16))
    debugger.start(model)
    model(tokens, labels=tokens).loss.backward()
    debugger.stop()
    debugger.step()

torch.set_num_threads(1)
for name in sys.argv[3:]:
    child = os.fork()
    if child == 0:
        record(os.path.join(sys.argv[1], name), *name.split("-"))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""
RECORDINGS = ["mix-statistics-statistics", "L1-statistics-statistics", "L1-statistics-md5",
              "L1-tensor-statistics"]

# Memory that is filled part by part. `fault`: the last part is "wrong", or "forgotten".
FILLS = """
import json, numpy, os, sys, torch
from plumbline.pytorch import PrecisionDebugger

def part(x, fault, last):
    "Made where nothing is recorded."
    more = numpy.float32(0.5 if fault == "wrong" and last else 0)
    return torch.from_numpy(x.numpy() * 3 + more)

def loop(x, fault):
    y = torch.empty(4, 64, 32)
    for i in range(3 if fault == "forgotten" else 4):
        y[i] = part(x, fault, i == 3)
    return y

def halves(x, fault):
    y = torch.empty(64, 32)
    y[:32] = part(x[:32], fault, False)
    if fault != "forgotten":
        y[32:] = part(x[32:], fault, True)
    return y

def scatter(x, fault):
    y = torch.empty(64, 32)
    index = torch.arange(32).flip(0).expand(64, 32)
    if fault == "forgotten":
        index = index.clamp(min=1)
    return y.scatter_(1, index, part(x, fault, True))

def masked(x, fault):
    mask = torch.ones(64, 32, dtype=torch.bool)
    mask[63] = fault != "forgotten"
    return torch.empty(64, 32).masked_fill_(mask, 0.25 if fault == "wrong" else 0.5) + x

def narrow(x, fault):
    y = torch.empty(64, 32)
    y.narrow(0, 0, 32).copy_(part(x[:32], fault, False))
    if fault != "forgotten":
        y.narrow(0, 32, 32).copy_(part(x[32:], fault, True))
    return y

def views(x, fault):
    y = torch.empty(64, 32)
    first, second = y[:32], y[32:]
    first.numpy()[:] = part(x[:32], fault, False).numpy()
    if fault != "forgotten":
        second.numpy()[:] = part(x[32:], fault, True).numpy()
    return y

def record(out, case, level, task, mode):
    options = {"task": task, "dump_path": out, "level": level, task: {"summary_mode": mode}}
    json.dump(options, open(out + ".json", "w"))
    torch.manual_seed(0)
    x, linear = torch.randn(64, 32), torch.nn.Linear(32, 32)
    debugger = PrecisionDebugger(out + ".json")
    debugger.start(linear)
    with torch.no_grad():
        linear(globals()[case](x.tanh(), sys.argv[2])).sum()
    debugger.stop()
    debugger.step()

torch.set_num_threads(1)
for name in sys.argv[3:]:
    child = os.fork()
    if child == 0:
        record(os.path.join(sys.argv[1], name), *name.split("-"))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""
CASES = ["loop", "halves", "scatter", "masked", "narrow", "views"]
KINDS = ["mix-statistics-statistics", "L1-statistics-md5", "L1-tensor-statistics"]
FILLED = [f"{case}-{kind}" for case in CASES for kind in KINDS]


def record(directory: Path, script: str, what: str, fill: str, names: list[str]) -> Path:
    """Records with fresh memory that is filled with this byte."""
    environment = dict(os.environ, MALLOC_PERTURB_=fill, PLUMBLINE_LOG_LEVEL="2")
    result = subprocess.run([sys.executable, "-c", script, directory, what, *names],
                            capture_output=True, text=True, env=environment, timeout=600,
                            check=False)
    assert result.returncode == 0, result.stderr
    return directory


def compare(target: Path, golden: Path, name: str, out: Path) -> tuple[str, int]:
    """What is printed, and the exit status under --fail-on any."""
    sides = [directory / name / "step0" / "rank" for directory in (target, golden)]
    command = [PLUMB, "compare", *sides, "-o", out, "--fail-on", "any"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout + result.stderr, result.returncode


@pytest.fixture(scope="module", params=["mixtral", "deepseek"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Directories of two equal runs whose fresh memory is filled with different bytes."""
    return [record(tmp_path_factory.mktemp("run"), SCRIPT, request.param, fill, RECORDINGS)
            for fill in ("90", "165")]


@pytest.mark.parametrize("name", RECORDINGS)
def test_experts_run_twice(name: str, runs: list[Path], tmp_path: Path) -> None:
    text, status = compare(*runs, name, tmp_path)
    assert text.startswith("no wrong call"), text
    assert status == 0
    # Otherwise nothing is shown: memory that was left unwritten differs.
    target, golden = ((run / name / "step0" / "rank" / "dump.json").read_text() for run in runs)
    assert target != golden or name == "L1-tensor-statistics"


@pytest.fixture(scope="module")
def fills(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Recordings of what fills memory, by what is done: twice right, and with each fault."""
    return {what: record(tmp_path_factory.mktemp(what), FILLS, what, fill, FILLED)
            for what, fill in (("right", "90"), ("again", "165"), ("wrong", "165"),
                               ("forgotten", "165"))}


@pytest.mark.parametrize("name", FILLED)
def test_memory_that_is_filled_in_parts(name: str, fills: dict[str, Path], tmp_path: Path) -> None:
    text, status = compare(fills["again"], fills["right"], name, tmp_path)
    assert text.startswith("no wrong call"), text
    assert status == 0


@pytest.mark.parametrize("fault", ["wrong", "forgotten"])
@pytest.mark.parametrize("name", FILLED)
def test_a_wrong_part_is_named(
    name: str, fault: str, fills: dict[str, Path], tmp_path: Path
) -> None:
    text, status = compare(fills[fault], fills["right"], name, tmp_path)
    assert text.startswith("first wrong call: "), text
    assert status == 1
