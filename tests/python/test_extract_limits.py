"""How far results of an extracted test may be off: right devices pass, wrong results do not."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.precheck_run.case_limits import (
    Expected,
    NoTestError,
    expect,
    first_problem,
    judge,
)
from plumbline.precheck_run.case_script import About, script
from plumbline.precheck_run.extracted_case import Case, Side, TensorName

FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def case(name: str, *args: Any, backward: bool = False, **kwargs: Any) -> Case:
    """A call with its tensors by place; with a backward by a gradient of the shape of the first."""
    kind, api = name.split(".", 1)
    tensors = {f"arg{i}": value for i, value in enumerate(args) if isinstance(value, torch.Tensor)}
    side = Side([TensorName(f"arg{i}") if f"arg{i}" in tensors else value
                 for i, value in enumerate(args)], kwargs)
    grads: list[TensorName | None] = []
    wanted = frozenset(tensors) if backward else frozenset()
    if backward:
        tensors["grad0"] = torch.linspace(-1, 2, args[0].numel()).view(args[0].shape).to(
            args[0].dtype)
        grads = [TensorName("grad0")]
    return Case(kind, api, side, None, grads, tensors, wanted)


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7)).to(dtype)


def problem(expected: Expected, **changes: torch.Tensor) -> str:
    """What is said of results that are the expected ones but for `changes` (output_0)."""
    results = {**expected.values, **{name.replace("_", ".", 1): value
                                     for name, value in changes.items()}}
    return first_problem(results, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_element_of_exp_is_judged(dtype: torch.dtype) -> None:
    """By the largest one alone anything would do for most of them."""
    largest = 11.0 if dtype == torch.float16 else 88.0
    made = case("Torch.exp", torch.linspace(0, largest, 200).to(dtype))
    expected = expect(made)
    assert not judge(made, made.target, "cpu", expected).fails
    right = expected.values["output.0"]
    for place in (0, 50, 199):
        wrong = right.clone()
        wrong[place] *= 1.07
        assert problem(expected, output_0=wrong).startswith("output.0 is off by ")
        wrong[place] = 0.0
        assert problem(expected, output_0=wrong)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("api", ["Functional.softmax", "Functional.layer_norm", "Torch.sin",
                                 "Functional.gelu", "Torch.cumsum"])
def test_another_order_of_sums_passes_and_a_percent_does_not(api: str, dtype: torch.dtype) -> None:
    words: dict[str, tuple[Any, ...]] = {"softmax": (-1,), "layer_norm": ([64],), "cumsum": (-1,)}
    made = case(api, noise(8, 64, dtype=dtype), *words.get(api.split(".")[1], ()), backward=True)
    expected = expect(made)
    for name, right in expected.values.items():
        # What rounding to the type once more, by up to a unit, makes of it.
        rounded = right.to(dtype).double()
        off = 1 + torch.finfo(dtype).eps
        assert not first_problem({**expected.values, name: rounded * off}, expected)
        if name in expected.limits:
            assert first_problem({**expected.values, name: right * 1.13}, expected)


def test_sums_that_cancel_have_room() -> None:
    left, right = noise(16, 500), noise(500, 16)
    made = case("Torch.matmul", left, right)
    expected = expect(made)
    parts = sum(left[:, at:at + 50] @ right[at:at + 50] for at in range(0, 500, 50))
    assert not problem(expected, output_0=parts)
    assert problem(expected, output_0=(left.bfloat16() @ right.bfloat16()).float())


def cancelling(scale: float) -> Case:
    """A sum of 1 of parts that large."""
    values = noise(5000) * scale
    return case("Torch.sum", torch.cat([values, -values.flip(0).roll(17), torch.ones(1)]))


def test_the_room_is_cut_where_a_wrong_result_would_pass() -> None:
    expected = expect(cancelling(500))
    limit = expected.limits["output.0"]
    assert limit.cut_from > limit.absolute == pytest.approx(1 / 16, rel=2e-3)
    assert problem(expected, output_0=torch.tensor(1.1, dtype=torch.float64))
    with pytest.raises(NoTestError, match=r"tell right from wrong: output.0: in the recorded"):
        expect(cancelling(1e6))


@pytest.mark.parametrize(("made", "said"), [
    (case("Torch.add", torch.zeros(0, 3), 1), "is empty"),
    (case("Functional.dropout", noise(40), p=0.5), "draws random numbers"),
    (case("Functional.rrelu", noise(40), training=True), "draws random numbers"),
])
def test_what_cannot_be_judged_is_refused(made: Case, said: str) -> None:
    with pytest.raises(NoTestError, match=said):
        expect(made)


def test_a_result_that_says_nothing_is_left_out() -> None:
    """The gradient of what a normalisation takes away is rounding alone."""
    x = noise(6, 50) + 1
    made = case("Functional.layer_norm", x, [50], backward=True)
    made.tensors["grad0"] = torch.ones(6, 50)
    expected = expect(made)
    assert list(expected.limits) == ["output.0"]
    assert "in the recorded type this CPU's own is off by" in expected.left_out["gradient of arg0"]
    assert not first_problem({**expected.values, "gradient of arg0": torch.rand(6, 50)}, expected)


def test_nan_and_infinity_are_no_numbers() -> None:
    expected = expect(case("Torch.log", torch.tensor([-1.0, 0.0, 1.0, 2.0])))
    right = expected.values["output.0"]
    for place, value in ((0, 0.0), (0, -torch.inf), (1, -1e300), (1, torch.inf), (2, torch.nan),
                         (3, torch.inf)):
        wrong = right.clone()
        wrong[place] = value
        assert problem(expected, output_0=wrong), (place, value)
    assert not problem(expected, output_0=right.float())


def test_integers_and_shapes_are_equal() -> None:
    expected = expect(case("Torch.topk", noise(4, 9), 2))
    places = expected.values["output.1"]
    assert problem(expected, output_1=places + 1).startswith("output.1 has 8 wrong of 8")
    assert "has the shape" in problem(expected, output_0=expected.values["output.0"][:1])


@pytest.mark.parametrize("made", [
    case("Tensor.__setitem__", noise(4, 5), (slice(0, 2),), noise(2, 5)),
    case("Tensor.index_fill_", noise(4, 5), 0, torch.tensor([1]), 2.0),
])
def test_what_a_call_changes_is_its_result(made: Case) -> None:
    expected = expect(made)
    assert expected.values["output.0"].shape == (4, 5)
    assert expected.is_in_place == (made.api == "__setitem__")
    assert problem(expected, output_0=made.tensors["arg0"])


def test_what_a_call_changes_and_does_not_return_is_expected_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Running statistics: no output of the call tells of them."""
    made = case("Functional.batch_norm", noise(4, 3, 5), torch.zeros(3), torch.ones(3), None, None,
                True, 0.1)
    expected = expect(made)
    assert {"output.0", "changed arg1", "changed arg2"} == set(expected.limits)
    assert not judge(made, made.target, "cpu", expected).fails
    test = tmp_path / "test_batch_norm.py"
    about = About("Functional.batch_norm.0", "dump.json", "", "cpu")
    test.write_text(script(made, expected, about))
    torch.save({"tensors": made.tensors, "expected": expected.values}, tmp_path / "data.pt")
    runpy.run_path(str(test))["test_forward"]()
    right = torch.nn.functional.batch_norm

    def forgets(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor,
                *others: Any) -> torch.Tensor:
        return right(x, mean, variance.clone(), *others)

    monkeypatch.setattr(torch.nn.functional, "batch_norm", forgets)
    assert judge(made, made.target, "cpu", expected).problem == "arg2 was not changed"
    with pytest.raises(AssertionError, match="changed arg2: 3 of 3 elements"):
        runpy.run_path(str(test))["test_forward"]()


def test_a_returned_argument_is_expected_once() -> None:
    expected = expect(case("Tensor.add_", noise(6), noise(6)))
    assert list(expected.values) == ["output.0"]
