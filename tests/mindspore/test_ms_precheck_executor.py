"""Calls in MindSpore's executors, driven as `plumb` drives them, against PyTorch in float64."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from precheck_processes import Executor, Raw, Zygote

from plumbline.precheck_run.native_torch import path_without_adapters


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    answer = zygote.start(framework="mindspore", device="auto")
    assert answer["ready"] and answer["device"] == "cpu", answer
    assert answer["framework_version"].startswith("2.")
    yield zygote
    zygote.close()


@pytest.fixture(scope="module")
def executor(zygote: Zygote) -> Executor:
    executor = zygote.fork(role="device")
    assert executor.ready().get("ready")
    return executor


def uniform(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(*shape, generator=generator) * 2 - 1).to(dtype).requires_grad_()


def check(executor: Executor, name: str, *args: Any, golden: Any, limit: float = 1e-5,
          kwargs: dict[str, Any] | None = None) -> None:
    """Forward, and backward with a random gradient, against `golden` in float64."""
    kwargs = kwargs or {}
    wide = [arg.detach().double().requires_grad_() if isinstance(arg, torch.Tensor)
            and arg.is_floating_point() else arg for arg in args]
    expected = golden(*wide, **kwargs)
    gradient = uniform(*expected.shape, seed=9).detach()
    given = gradient.to(next(arg for arg in args if isinstance(arg, torch.Tensor)
                             and arg.is_floating_point()).dtype)
    answer = executor.ask(name, *args, kwargs=kwargs, grads=[given])
    found = executor.result(answer)
    assert found.shape == expected.shape
    torch.testing.assert_close(found.double(), expected, rtol=limit, atol=limit)
    expected.backward(given.double())
    gradients = executor.result(answer, "backward")
    tensors = [arg for arg in wide if isinstance(arg, torch.Tensor)]
    assert len(gradients) == len(tensors)
    for one, tensor in zip(gradients, tensors, strict=True):
        if tensor.grad is None:
            assert one is None
        else:
            torch.testing.assert_close(one.double(), tensor.grad, rtol=limit, atol=limit)


def test_mint_matmul_gives_both_gradients(executor: Executor) -> None:
    check(executor, "Mint.matmul.0", uniform(3, 4), uniform(4, 5, seed=1), golden=torch.matmul)


def test_mint_mul_of_integers_gives_the_floating_gradient_alone(executor: Executor) -> None:
    integers = torch.arange(12).view(3, 4)
    check(executor, "Mint.mul.0", integers, uniform(3, 4), golden=torch.mul)


def test_functional_relu_and_softmax_with_a_keyword(executor: Executor) -> None:
    functional = torch.nn.functional
    check(executor, "MintFunctional.relu.0", uniform(7), golden=functional.relu)
    check(executor, "MintFunctional.softmax.0", uniform(3, 4), golden=functional.softmax,
          kwargs={"dim": -1})


def test_tensor_methods_take_the_tensor_first(executor: Executor) -> None:
    check(executor, "Tensor.sub.0", uniform(3, 4), uniform(3, 4, seed=1), golden=torch.sub)
    check(executor, "Tensor.reshape.0", uniform(3, 4), (2, 6), golden=torch.reshape)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_types_of_elements_come_and_go_unchanged(executor: Executor, dtype: torch.dtype) -> None:
    values = uniform(5, 3, dtype=dtype).detach()
    found = executor.result(executor.ask("Mint.add.0", values, torch.zeros(5, 3, dtype=dtype)))
    assert found.dtype == dtype
    assert torch.equal(found, values)


def test_in_place_calls_leave_the_shared_input_alone(executor: Executor) -> None:
    values = uniform(4)
    for _ in range(2):  # the second call reads the same memory
        answer = executor.ask("Tensor.add_.0", values, uniform(4, seed=1), grads=[torch.ones(4)])
        expected = values.detach() + uniform(4, seed=1).detach()
        torch.testing.assert_close(executor.result(answer), expected)
        assert torch.equal(executor.result(answer, "backward")[1], torch.ones(4))


def test_tensors_in_a_list_have_their_gradients(executor: Executor) -> None:
    grad = uniform(5, 3).detach()
    answer = executor.ask("Mint.cat.0", [uniform(2, 3), uniform(3, 3)], kwargs={"dim": 0},
                          grads=[grad])
    first, second = executor.result(answer, "backward")
    assert torch.equal(first, grad[:2]) and torch.equal(second, grad[2:])


def test_keyword_tensors_have_their_gradients_last(executor: Executor) -> None:
    answer = executor.ask("Mint.mul.0", uniform(3), kwargs={"other": uniform(3, seed=1)},
                          grads=[torch.ones(3)])
    first, second = executor.result(answer, "backward")
    torch.testing.assert_close(first, uniform(3, seed=1).detach())
    torch.testing.assert_close(second, uniform(3).detach())


def test_an_output_without_gradient_gets_zeros(executor: Executor) -> None:
    grad = uniform(3, 2).detach()
    answer = executor.ask("Mint.split.0", uniform(3, 4), 2, 1, grads=[grad, None])
    (found,) = executor.result(answer, "backward")
    assert torch.equal(found, torch.cat([grad, torch.zeros(3, 2)], 1))


def test_the_quick_start_call(executor: Executor) -> None:
    answer = executor.ask("Mint.where.0", torch.zeros(1, 4096, dtype=torch.bool), 0, 1)
    assert torch.equal(executor.result(answer), torch.ones(1, 4096, dtype=torch.int64))
    assert answer["backward"] is None


def test_results_that_are_no_tensors(executor: Executor) -> None:
    assert executor.result(executor.ask("Tensor.item.0", torch.tensor([2.5]))) == 2.5
    assert executor.result(executor.ask("Tensor.tolist.0", torch.tensor([1, 2]))) == [1, 2]
    array = executor.result(executor.ask("Tensor.numpy.0", torch.tensor([1.5, 2])))
    assert torch.equal(array, torch.tensor([1.5, 2]))


def test_a_dtype_is_taken_by_pytorchs_name(executor: Executor) -> None:
    answer = executor.ask("Tensor.to.0", uniform(3), torch.float16)
    assert executor.result(answer).dtype == torch.float16


def test_an_empty_tensor(executor: Executor) -> None:
    assert executor.result(executor.ask("Mint.add.0", torch.zeros(0, 3), 1)).shape == (0, 3)


def test_what_cannot_run_is_skipped_with_its_cause(executor: Executor) -> None:
    unknown = executor.ask("Mint.no_such_call.0", uniform(2))
    assert unknown["forward"]["skip"][0] == "not-in-inventory"
    property_ = executor.ask("Tensor.size.0", uniform(2))
    assert property_["forward"]["skip"][0] == "not-in-inventory"
    shapes = executor.ask("Mint.matmul.0", uniform(2, 3), uniform(4, 5), grads=[uniform(2, 5)])
    assert shapes["forward"]["skip"][0] == "device-failed"
    assert shapes["backward"]["skip"][0] == "backward-skipped"
    argument = executor.ask("Mint.add.0", uniform(2), Raw({"memory_format": "contiguous"}))
    assert argument["forward"]["skip"][0] == "bad-argument"
    # Nothing of it is left: the next call is right.
    assert torch.equal(executor.result(executor.ask("Mint.add.0", torch.ones(2), 1)),
                       torch.full((2,), 2.0))


def test_gradients_that_fit_no_output_are_no_backward(executor: Executor) -> None:
    answer = executor.ask("Mint.add.0", uniform(3), uniform(3), grads=[torch.ones(4)])
    assert answer["backward"]["skip"][0] == "backward-skipped"


def test_pytorch_runs_the_same_request(zygote: Zygote, executor: Executor) -> None:
    bench = zygote.fork(role="bench")
    assert bench.ready()["ready"]
    for name, count in (("Mint.add.0", 2), ("Tensor.sub.0", 2), ("MintFunctional.relu.0", 1)):
        args = [uniform(3, seed=seed) for seed in range(count)]
        grads = [torch.ones(3)]
        tested = executor.ask(name, *args, grads=grads)
        judged = bench.ask(name, *args, grads=grads)
        torch.testing.assert_close(bench.result(judged).float(), executor.result(tested))
        for one, other in zip(bench.result(judged, "backward"), executor.result(tested, "backward"),
                              strict=True):
            torch.testing.assert_close(one.float(), other)


def test_an_absent_device_is_an_error() -> None:
    zygote = Zygote()
    try:
        assert "none of this name" in zygote.start(framework="mindspore", device="xyz")["error"]
        assert "Ascend" in zygote.start(framework="mindspore", device="npu")["error"]
        error = zygote.start(framework="mindtorch", device="cpu")["error"]
        assert "is PyTorch, not MindTorch" in error
    finally:
        zygote.close()


def test_mindtorch_is_tested_and_pytorch_behind_it_the_benchmark(tmp_path: Path) -> None:
    functional = tmp_path / "torch/nn/functional"
    functional.mkdir(parents=True)
    (tmp_path / "torch/__init__.py").write_text(
        "from mindspore import Tensor, mint\nadd = mint.add\n")
    (tmp_path / "torch/nn/__init__.py").write_text("")
    (functional / "__init__.py").write_text(
        "from mindspore import mint\n\ndef relu(x):\n    return mint.nn.functional.relu(x) + 1\n")
    zygote = Zygote(environment={"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])})
    try:
        answer = zygote.start(framework="mindtorch", device="cpu")
        assert answer.get("ready"), answer
        values = uniform(3).detach()
        for role, surplus in (("device", 1.0), ("bench", 0.0)):
            executor = zygote.fork(role=role)
            assert executor.ready().get("ready")
            assert torch.equal(executor.result(executor.ask("Torch.add.0", values, 1)), values + 1)
            found = executor.result(executor.ask("Functional.relu.0", values))
            torch.testing.assert_close(found.float(), values.clamp(min=0) + surplus)
    finally:
        zygote.close()


def test_an_adapter_on_the_path_is_stepped_over(tmp_path: Path) -> None:
    adapter = tmp_path / "torch"
    adapter.mkdir()
    (adapter / "__init__.py").write_text("raise ImportError('the adapter')\n")
    found = path_without_adapters([str(tmp_path), *sys.path])
    assert str(tmp_path) not in found
    assert str(Path(torch.__file__).parents[1]) in found
    with pytest.raises(RuntimeError, match="no PyTorch on the module path"):
        path_without_adapters([str(tmp_path)])
