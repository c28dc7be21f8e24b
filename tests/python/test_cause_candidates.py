"""Causes that other recordings explain: earlier steps, sibling ranks, calls of one side only.

The dumps are written here, tensor by tensor, as the recorder lays them out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import plumbline


class Dump:
    """One dump.json with its tensor files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "dump_tensor_data").mkdir(parents=True)
        self.data: dict[str, Any] = {}

    def tensor(self, name: str, value: torch.Tensor) -> dict[str, Any]:
        torch.save(value.clone(), self.directory / "dump_tensor_data" / f"{name}.pt")
        wide = value.double()
        return {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape),
                "Max": wide.max().item(), "Min": wide.min().item(), "Mean": wide.mean().item(),
                "Norm": wide.norm().item(), "requires_grad": False, "data_name": f"{name}.pt"}

    def call(self, name: str, inputs: list[torch.Tensor], output: torch.Tensor) -> Dump:
        self.data[name] = {
            "input_args": [self.tensor(f"{name}.input.{i}", x) for i, x in enumerate(inputs)],
            "input_kwargs": {}, "output": [self.tensor(f"{name}.output.0", output)]}
        return self

    def gradient(self, module: str, parameter: str, value: torch.Tensor) -> Dump:
        name = f"{module}.parameters_grad"
        self.data[name] = {parameter: [self.tensor(f"{name}.{parameter}", value)]}
        return self

    def write(self) -> Path:
        (self.directory / "dump.json").write_text(json.dumps(
            {"task": "tensor", "level": "L1", "framework": "pytorch",
             "dump_data_dir": str(self.directory / "dump_tensor_data"), "data": self.data}))
        return self.directory


def numbers(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def details(target: Path, golden: Path) -> dict[str, Any]:
    found = plumbline.compare(target, golden).details
    assert found is not None
    return found


def test_weight_of_an_earlier_step_is_stale(tmp_path: Path) -> None:
    x, old, new = numbers(1, 5, 8), numbers(2, 8, 8), numbers(3, 8, 8)
    name = "Functional.linear.0.forward"
    for step, weight in ((0, old), (1, old)):
        Dump(tmp_path / f"target/step{step}/rank").call(name, [x, weight], x @ weight.T).write()
    for step, weight in ((0, old), (1, new)):
        Dump(tmp_path / f"golden/step{step}/rank").call(name, [x, weight], x @ weight.T).write()
    found = details(tmp_path / "target/step1", tmp_path / "golden/step1")
    assert found["item"] == f"{name}.input.1"
    assert found["cause"] == "stale" and found["confidence"] == "high"
    assert "of step 0 of the target" in found["cause_text"]


def test_exchanged_operands_are_a_fault_only_where_the_result_shows_it(tmp_path: Path) -> None:
    x, y = numbers(21, 6, 6), numbers(22, 6, 6)
    symmetric = [torch.mul, torch.add, torch.maximum, torch.logaddexp, torch.hypot, torch.eq]
    for function in [*symmetric, torch.sub, torch.atan2, torch.matmul, torch.special.xlog1py]:
        name = f"Torch.{function.__name__}.0.forward"
        sides = {}
        for side, inputs in (("target", [y, x]), ("golden", [x, y]), ("stale", [x, x])):
            dump = Dump(tmp_path / function.__name__ / side)
            for i, value in enumerate((x, y)):
                dump.call(f"Torch.asinh.{i}.forward", [value.sinh()], value)
            sides[side] = dump.call(name, inputs, function(*inputs)).write()
        if function in symmetric:
            assert plumbline.compare(sides["target"], sides["golden"]).details is None, name
        else:
            found = details(sides["target"], sides["golden"])
            assert found["item"].startswith(name) and found["cause"] == "operands-exchanged"
        found = details(sides["stale"], sides["golden"])
        assert (found["item"], found["cause"]) == (f"{name}.input.1", "stale")


def test_gradient_that_one_rank_keeps_is_not_reduced(tmp_path: Path) -> None:
    shares = [numbers(4, 6, 6), numbers(5, 6, 6), numbers(6, 6, 6)]
    for factor, word in ((1.0, "sum"), (1 / 3, "mean")):
        whole = sum(shares) * factor
        assert isinstance(whole, torch.Tensor)
        for rank, share in enumerate(shares):
            Dump(tmp_path / f"{word}/target/step0/rank{rank}").gradient(
                "Module.fc.Linear", "weight", share).write()
            Dump(tmp_path / f"{word}/golden/step0/rank{rank}").gradient(
                "Module.fc.Linear", "weight", whole).write()
        found = details(tmp_path / f"{word}/target/step0/rank1",
                        tmp_path / f"{word}/golden/step0/rank1")
        assert found["cause"] == "not-reduced", found["cause_text"]
        assert f"the {word} of the target's 3 ranks" in found["cause_text"]


def test_collective_that_returns_its_input_is_not_reduced(tmp_path: Path) -> None:
    own, other = numbers(7, 6, 6), numbers(8, 6, 6)
    name = "Distributed.all_reduce.0.forward"
    target = Dump(tmp_path / "target").call(name, [own], own).write()
    golden = Dump(tmp_path / "golden").call(name, [own], own + other).write()
    found = details(target, golden)
    assert found["cause"] == "not-reduced" and "input.0" in found["cause_text"]


def test_addend_recorded_by_another_call_is_found(tmp_path: Path) -> None:
    """The residual is no operand of the call that lost it; its norm gives it away."""
    x, branch = numbers(9, 4, 16), numbers(10, 4, 16)
    dumps = []
    for name, result in (("target", branch * 2), ("golden", branch * 2 + torch.tanh(x))):
        dumps.append(Dump(tmp_path / name)
                     .call("Torch.tanh.0.forward", [x], torch.tanh(x))
                     .call("Torch.fused.0.forward", [branch], result).write())
    found = details(*dumps)
    assert found["name"] == "Torch.fused.0.forward"
    assert found["cause"] == "missing-addend", found["cause_text"]
    assert "Torch.tanh.0.forward.output.0" in found["cause_text"]


def test_missing_tensor_file_of_a_candidate_is_left_out(tmp_path: Path) -> None:
    x, branch = numbers(9, 4, 16), numbers(10, 4, 16)
    dumps = []
    for name, result in (("target", branch * 2), ("golden", branch * 2 + x)):
        dump = Dump(tmp_path / name).call("Torch.fused.0.forward", [branch, x], result)
        dumps.append(dump.write())
    for directory in dumps:
        (directory / "dump_tensor_data" / "Torch.fused.0.forward.input.1.pt").write_bytes(b"PK cut")
    found = details(*dumps)
    assert found["cause"] and found["cause"] != "missing-addend"


def test_data_type_that_is_narrower_is_named(tmp_path: Path) -> None:
    x = numbers(11, 4, 16)
    name = "Torch.exp.0.forward"
    golden = Dump(tmp_path / "golden").call(name, [x], x.exp()).write()
    target = Dump(tmp_path / "target").call(name, [x], x.to(torch.bfloat16).exp().float()).write()
    found = details(target, golden)
    assert found["cause"] == "narrowed" and found["confidence"] == "high"


def test_transposed_result_of_another_shape(tmp_path: Path) -> None:
    x = numbers(12, 4, 16)
    name = "Torch.f.0.forward"
    golden = Dump(tmp_path / "golden").call(name, [x], 2 * x).write()
    target = Dump(tmp_path / "target").call(name, [x], (2 * x).T.contiguous()).write()
    found = details(target, golden)
    assert found["cause"] == "transposed", found["cause_text"]


def stack_of_layers(dump: Dump, layers: list[int], x: torch.Tensor) -> Path:
    """Residual layers, each with weights of its own and three calls."""
    for count, layer in enumerate(layers):
        weight = numbers(20 + layer, 16, 16) / 8
        up, act = x @ weight.T, torch.tanh(x @ weight.T)
        dump.call(f"Functional.linear.{count}.forward", [x, weight], up)
        dump.call(f"Torch.tanh.{count}.forward", [up], act)
        dump.call(f"Tensor.__add__.{count}.forward", [x, act], x + act)
        x = x + act
    return dump.call("Torch.exp.0.forward", [x], x.exp()).write()


@pytest.mark.parametrize("skipped_by", ["target", "golden"])
def test_skipped_layer_is_no_addend(tmp_path: Path, skipped_by: str) -> None:
    x = numbers(13, 4, 16)
    sides = {name: stack_of_layers(Dump(tmp_path / name),
                                   [0, 1, 3] if name == skipped_by else [0, 1, 2, 3], x)
             for name in ("target", "golden")}
    found = details(sides["target"], sides["golden"])
    missing = skipped_by == "target"
    assert found["cause"] == ("missing-call" if missing else "extra-call"), found["cause_text"]
    assert f"{'the target' if missing else 'golden'} leaves out 3 calls" in found["cause_text"]
    # The fourth layer of one side stands where the other has its third.
    assert "in Functional.linear.3.forward, not in Functional.linear.2" in found["cause_text"]


@pytest.mark.parametrize("skipped_by", ["target", "golden"])
def test_skipped_calls_of_their_own_kind(tmp_path: Path, skipped_by: str) -> None:
    """Three calls that the other side has none like: the next one takes their result."""
    x = numbers(13, 4, 16)
    for side in ("target", "golden"):
        dump, value = Dump(tmp_path / side).call("Torch.tanh.0.forward", [x], x.tanh()), x.tanh()
        for name in ("sin", "cos", "sigmoid") if side != skipped_by else ():
            made = getattr(torch, name)(value)
            dump.call(f"Torch.{name}.0.forward", [value], made)
            value = made
        dump.call("Torch.exp.0.forward", [value], value.exp()).write()
    found = details(tmp_path / "target", tmp_path / "golden")
    missing = skipped_by == "target"
    assert found["cause"] == ("missing-call" if missing else "extra-call"), found["cause_text"]
    assert ("leaves out 3 calls" if missing else "makes 3 calls") in found["cause_text"]
    assert "Torch.sin.0.forward to Torch.sigmoid.0.forward" in found["cause_text"]
    if not missing:  # the first of the lone calls is named, and whose result is wrong
        assert found["name"] == "Torch.sin.0.forward"
        assert "it leads to Torch.sigmoid.0.forward, whose result" in found["what"]


def test_input_is_said_with_the_calls_that_made_it(tmp_path: Path) -> None:
    """The target takes an earlier value where golden takes that of a call of its own."""
    x = numbers(14, 4, 16)
    target = Dump(tmp_path / "target").call("Torch.tanh.0.forward", [x], x.tanh()).call(
        "Torch.exp.0.forward", [x.tanh()], x.tanh().exp()).write()
    golden = Dump(tmp_path / "golden").call("Torch.tanh.0.forward", [x], x.tanh()).call(
        "Torch.sin.0.forward", [x.tanh()], x.tanh().sin()).call(
        "Torch.exp.0.forward", [x.tanh().sin()], x.tanh().sin().exp()).write()
    found = details(target, golden)
    assert "the result of Torch.tanh.0.forward, golden's of Torch.sin.0.forward" in found["what"]
    assert "missing-call" == found["cause"] and "leaves out" not in found["cause_text"]


def with_parameters(directory: Path, weights: list[torch.Tensor], x: torch.Tensor) -> Path:
    """Modules of one weight each, as level L0 records them."""
    dump = Dump(directory)
    for layer, weight in enumerate(weights):
        name = f"Module.layers.{layer}.Linear.forward.0"
        dump.call(name, [x], x @ weight.T)
        dump.data[name]["parameters"] = {"weight": dump.tensor(f"{name}.parameters.weight", weight)}
        x = x @ weight.T
    return dump.write()


def test_parameters_that_differ_at_the_start_are_said(tmp_path: Path) -> None:
    x = numbers(15, 4, 8)
    weights = [numbers(40 + i, 8, 8) for i in range(4)]
    golden = with_parameters(tmp_path / "golden", weights, x)
    drawn_anew = [numbers(50 + i, 8, 8) for i in range(4)]
    found = details(with_parameters(tmp_path / "all", drawn_anew, x), golden)
    assert found["cause"] == "earlier-step", found["cause_text"]
    assert "(4 of 4)" in found["cause_text"] and "step before" in found["cause_text"]
    # Where the directories say which step it is; fused and foreach optimizers record no calls.
    for step, earlier, text in ((5, None, "between step 4 and step 5 (no calls of it are"),
                                (5, 2, "between step 2 and step 5 (no calls of it are"),
                                (0, None, "look at how they are initialised")):
        run = tmp_path / f"run{step}{earlier}"
        if earlier is not None:
            with_parameters(run / f"step{earlier}/rank0", weights, x)
        found = details(with_parameters(run / f"step{step}/rank0", drawn_anew, x), golden)
        assert found["cause"] == "earlier-step" and text in found["cause_text"], found
    scaled = [weights[0] * 1.5, *weights[1:]]
    found = details(with_parameters(tmp_path / "one", scaled, x), golden)
    assert found["cause"] == "scale" and "(1 of 4)" in found["cause_text"], found["cause_text"]
