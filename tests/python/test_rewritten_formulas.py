"""A formula written otherwise is no alarm, and a fault in it is named (docs/design/verdict.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from recording import run_script
from rewritten_models import FORMULAS

import plumbline

HERE = Path(__file__).resolve().parent
ORDER = list(FORMULAS)
FAULTS = [name for name in ORDER if "," in name]


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The recording of a formula."""
    root = tmp_path_factory.mktemp("formulas")
    run_script(HERE / "rewritten_models.py", root)
    return lambda name: root / "dump" / f"step{ORDER.index(name)}" / "rank"


@pytest.mark.parametrize("formula", ["union", "loop", "gain", "folded"])
def test_formula_written_otherwise_is_no_alarm(formula: str, step: Callable[[str], Path]) -> None:
    result = plumbline.compare(step(f"{formula} otherwise"), step(formula))
    assert result.details is None, result.summary
    assert result.answer.startswith("not judged completely"), result.summary


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_it_is_named(fault: str, step: Callable[[str], Path]) -> None:
    result = plumbline.compare(step(fault), step(fault.split(",")[0]))
    assert result.details is not None, result.summary
    assert result.exit_code == 1


def test_other_gradients_by_the_same_calls_are_named(step: Callable[[str], Path]) -> None:
    """Without calls that one side lacks, an antisymmetric part is a difference like any other."""
    result = plumbline.compare(step("gain, wrong derivative"), step("gain otherwise"))
    assert result.details is not None, result.summary
