"""A run against the same run again: no call is named, whatever memory that nobody wrote holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from recording import PLUMB

# Steps of a mixture of experts, one recording per level and task. Each is made by a process of its
# own: a debugger is one per process.
SCRIPT = """
import json, os, sys, torch
from transformers import MixtralConfig, MixtralForCausalLM
from plumbline.pytorch import PrecisionDebugger

def record(out, level, task, mode):
    options = {"task": task, "dump_path": out, "level": level, task: {"summary_mode": mode}}
    json.dump(options, open(out + ".json", "w"))
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, num_local_experts=4,
        experts_implementation=sys.argv[2]))
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


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Directories of two equal runs whose fresh memory is filled with different bytes."""
    directories = []
    for fill in ("90", "165"):
        directory = tmp_path_factory.mktemp("run")
        environment = dict(os.environ, MALLOC_PERTURB_=fill, PLUMBLINE_LOG_LEVEL="2")
        command = [sys.executable, "-c", SCRIPT, directory, "grouped_mm", *RECORDINGS]
        result = subprocess.run(command, capture_output=True, text=True, env=environment,
                                timeout=600, check=False)
        assert result.returncode == 0, result.stderr
        directories.append(directory)
    return directories


@pytest.mark.parametrize("name", RECORDINGS)
def test_experts_run_twice(name: str, runs: list[Path], tmp_path: Path) -> None:
    target, golden = (directory / name / "step0" / "rank" for directory in runs)
    command = [PLUMB, "compare", target, golden, "-o", tmp_path, "--fail-on", "any"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "no wrong call" in result.stdout, result.stdout + result.stderr
    assert result.returncode == 0
    # Otherwise nothing is shown: memory that was left unwritten differs.
    written = (target / "dump.json").read_text() != (golden / "dump.json").read_text()
    assert written or name == "L1-tensor-statistics"
