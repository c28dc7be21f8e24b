"""Recordings of MindSpore compared: with each other, and with PyTorch's of the same network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ms_models
import numpy as np
import pytest
from mindspore import Tensor, nn
from ms_recording import new_debugger

PLUMB = os.environ.get("PLUMB") or str(Path(__file__).parents[2] / ".venv/bin/plumb")
SAME_NETWORK = Path(__file__).with_name("ms_and_torch.py")
SAME_LAYERS = Path(__file__).with_name("layers_in_both.py")


def compare(target: Path, golden: Path, out: Path, *options: str) -> dict[str, Any]:
    command = [PLUMB, "compare", str(target), str(golden), "-o", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(next(out.glob("*.json")).read_text())
    return result


def test_an_injected_fault_is_named(tmp_path: Path) -> None:
    def wrong(net: Any) -> None:
        bias = net.blocks[1].attention.out.bias
        bias.set_data(Tensor(bias.asnumpy() + np.float32(0.05)))

    for name, change in (("good", None), ("same", None), ("bad", wrong)):
        (tmp_path / name).mkdir()
        debugger = new_debugger(tmp_path / name, level="mix", task="tensor")
        ms_models.train("transformer", debugger, steps=1, change=change)
    runs = {name: tmp_path / name / "out/step0/rank" for name in ("good", "same", "bad")}
    same = compare(runs["same"], runs["good"], tmp_path / "r1")
    assert same["first_wrong_call"] is None and same["complete"]
    found = compare(runs["bad"], runs["good"], tmp_path / "r2")["first_wrong_call"]
    assert found["name"].startswith("Primitive.bias_add.BiasAdd.")
    assert "blocks.1.attention.out" in json.dumps(found)


def test_a_wrong_momentum_is_named_at_cells(tmp_path: Path) -> None:
    """Running statistics are parameters here, which are recorded behind the call."""
    x = Tensor(np.random.default_rng(2).standard_normal((8, 3, 4, 4)).astype(np.float32))
    for name, momentum in (("good", 0.9), ("same", 0.9), ("bad", 0.8)):
        (tmp_path / name).mkdir()
        debugger = new_debugger(tmp_path / name, level="L0")
        net = nn.SequentialCell(nn.BatchNorm2d(3, momentum=momentum), nn.ReLU()).set_train()
        debugger.start(net)
        net(x)
        debugger.stop()
        debugger.step()
    runs = {name: tmp_path / name / "out/step0/rank" for name in ("good", "same", "bad")}
    assert compare(runs["same"], runs["good"], tmp_path / "r1")["complete"]
    found = compare(runs["bad"], runs["good"], tmp_path / "r2")["first_wrong_call"]
    assert found["name"] == "Cell.0.BatchNorm2d.forward.0"
    assert "moving_mean" in found["what"]


def record(script: Path, folder: Path, runs: dict[str, tuple[str, str]]) -> Path:
    """Runs `script` once for each name with its framework and level, all at the same time."""
    running = []
    for name, (framework, level) in runs.items():
        extra = ["wrong"] if name.endswith("wrong") else []
        command = [sys.executable, "-W", "ignore", str(script), framework, level,
                   str(folder / name), *extra]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True))
    for process in running:
        out, _ = process.communicate(timeout=300)
        assert process.returncode == 0, out
    return folder


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories mindspore, pytorch, wrong, graph and graph_wrong."""
    return record(SAME_NETWORK, tmp_path_factory.mktemp("frameworks"), {
        "mindspore": ("mindspore", "mix"), "pytorch": ("pytorch", "mix"),
        "wrong": ("mindspore", "mix"), "graph": ("graph", "L2"), "graph_wrong": ("graph", "L2")})


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories mindspore, pytorch, wrong and torch_wrong, of cells and modules alone."""
    return record(SAME_LAYERS, tmp_path_factory.mktemp("layers"), {
        "mindspore": ("mindspore", "L0"), "pytorch": ("pytorch", "L0"),
        "wrong": ("mindspore", "L0"), "torch_wrong": ("pytorch", "L0")})


@pytest.mark.parametrize("options", [("-am", "-cm"), ("-lm",)])
def test_the_same_network_in_both_frameworks(
    recordings: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    result = compare(recordings / "mindspore", recordings / "pytorch", tmp_path / "ok", *options)
    assert result["first_wrong_call"] is None
    counts = result["counts"]
    assert counts["unmatched target"] == counts["unmatched golden"] == 0, counts
    assert counts["suspicious"] == counts["broken"] == 0
    wrong = compare(recordings / "wrong", recordings / "pytorch", tmp_path / "bad", *options)
    assert wrong["first_wrong_call"]["name"] == "Mint.mul.0.forward"


@pytest.mark.parametrize("option", ["-cm", "-lm"])
def test_layers_whose_parameters_have_other_names(
    layers: Path, tmp_path: Path, option: str
) -> None:
    """A normalisation has gamma and beta in MindSpore: with -cm nothing of it was compared."""
    mapping = tmp_path / "cells.yaml"
    mapping.write_text("Dense: Linear\n")
    options = [option, str(mapping)] if option == "-cm" else [option]
    result = compare(layers / "mindspore", layers / "pytorch", tmp_path / "ok", *options)
    assert result["first_wrong_call"] is None
    counts = result["counts"]
    assert counts["paired calls"] == 29
    assert counts["suspicious"] == counts["broken"] == 0, counts
    alone = [(row["target"] or row["golden"])["name"] for row in result["rows"]
             if not (row.get("target") and row.get("golden"))]
    # PyTorch's running statistics are no parameters but buffers, and it counts batches.
    statistics = [f"Cell.bn.BatchNorm2d.forward.0.parameters.moving_{name}"
                  for name in ("mean", "variance")]
    buffers = [f"Module.bn.BatchNorm2d.forward.0.buffers.{name}"
               for name in ("running_mean", "running_var", "num_batches_tracked")]
    assert alone == (buffers[2:] if option == "-cm" else statistics + buffers)
    pairs = {row["target"]["name"]: row["golden"]["name"] for row in result["rows"]
             if row.get("target") and row.get("golden")}
    assert (pairs["Cell.bn.BatchNorm2d.parameters_grad.gamma"]
            == "Module.bn.BatchNorm2d.parameters_grad.weight")
    assert (pairs["Cell.bn.BatchNorm2d.forward.0.parameters.beta"]
            == "Module.bn.BatchNorm2d.forward.0.parameters.bias")
    assert pairs.get(statistics[1]) == (buffers[1] if option == "-cm" else None)
    wrong = compare(layers / "wrong", layers / "pytorch", tmp_path / "bad", *options)
    assert wrong["first_wrong_call"]["name"] == "Cell.attention.Attention.forward.0"


@pytest.mark.parametrize("options", [("-lm",), ("-am",)])
def test_biases_whose_gradient_is_rounding_alone(
    layers: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Sums that are zero but for the order of their terms, which each framework has its own of."""
    result = compare(layers / "mindspore", layers / "pytorch", tmp_path / "ok", *options)
    assert result["first_wrong_call"] is None
    rows = [row for row in result["rows"] if row.get("target") and row.get("golden")
            and row["target"]["name"] == "Cell.conv.Conv2d.parameters_grad.bias"]
    assert [row["verdict"] for row in rows] == ["within noise"] and rows[0]["error"] > 0.1
    wrong = compare(layers / "mindspore", layers / "torch_wrong", tmp_path / "bad", *options)
    assert wrong["first_wrong_call"]["name"] == "Cell.conv.Conv2d.parameters_grad"


# Values of kernels -> those of calls, without the framework's prefix.
KERNELS = {
    "Expand__MatMulExt_MatMul-op0.MatMul": "matmul.0", "Default_AddExt-op0.AddExt": "add.0",
    "Default_ReLU-op0.ReLU": "relu.0", "Expand__Muls_Mul-op0.Mul": "mul.0",
    "Expand__MatMulExt_MatMul-op1.MatMul": "matmul.1", "Default_AddExt-op1.AddExt": "add.1",
    "Default_ReLU-op1.ReLU": "relu.1", "Expand__MatMulExt_MatMul-op2.MatMul": "matmul.2",
    "Default_AddExt-op2.AddExt": "add.2", "Default_Square-op0.Square": "square.0",
}


@pytest.mark.parametrize("golden", ["mindspore", "pytorch"])
def test_a_static_graph_against_calls(recordings: Path, tmp_path: Path, golden: str) -> None:
    names = {"mindspore": ("Mint", "MintFunctional"), "pytorch": ("Torch", "Functional")}[golden]
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("".join(
        f"{kernel}.0.forward.{value}: {names['relu' in call]}.{call}.forward.{value}\n"
        for kernel, call in KERNELS.items() for value in ("input.0", "output.0")))
    result = compare(recordings / "graph", recordings / golden, tmp_path / "ok", "-dm",
                     str(mapping))
    assert result["first_wrong_call"] is None
    counts = result["counts"]
    assert counts["unmatched target"] == counts["unmatched golden"] == 0, counts
    assert counts["suspicious"] == counts["broken"] == 0, counts
    assert len(result["rows"]) == 2 * len(KERNELS)
    wrong = compare(recordings / "graph_wrong", recordings / golden, tmp_path / "bad", "-dm",
                    str(mapping))
    assert wrong["first_wrong_call"]["name"] == "Expand__Muls_Mul-op0.Mul.0.forward"
    other_way = compare(recordings / golden, recordings / "graph", tmp_path / "back", "-dm",
                        str(backwards(mapping)))
    assert other_way["first_wrong_call"] is None
    assert len(other_way["rows"]) == 2 * len(KERNELS)


def backwards(mapping: Path) -> Path:
    """The mapping of the same two recordings named the other way round."""
    pairs = [line.split(": ") for line in mapping.read_text().splitlines()]
    path = mapping.with_name("backwards.yaml")
    path.write_text("".join(f"{right}: {left}\n" for left, right in pairs))
    return path
