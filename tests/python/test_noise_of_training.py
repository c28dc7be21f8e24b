"""Rounding that training magnifies is no alarm, and a fault beside it is named
(docs/design/verdict.md).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from noisy_models import RUNS
from recording import run_script

import plumbline

HERE = Path(__file__).resolve().parent
ORDER = list(RUNS)
TASKS = ("tensor", "statistics")
NOISE = [name for name in ORDER if name.endswith(" otherwise")]
FAULTS = [name for name in ORDER if "," in name]
# Known alarms where products are rounded as without AVX-512 (docs/design/verdict.md).
ALARMS_WITHOUT_AVX512 = {("unlike batch otherwise", "tensor")}


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The recording of a run."""
    root = tmp_path_factory.mktemp("noise")
    for task in TASKS:
        run_script(HERE / "noisy_models.py", root, task)
    return lambda name, task: root / task / f"step{ORDER.index(name)}" / "rank"


def golden_of(name: str) -> str:
    """The run as the framework computes it: of an optimizer, the one with recorded calls."""
    return next(each for each in ORDER if name.startswith(each) and each != name)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", NOISE)
def test_noise_is_no_alarm(name: str, task: str, step: Callable[[str, str], Path]) -> None:
    if (name, task) in ALARMS_WITHOUT_AVX512 and torch.backends.cpu.get_cpu_capability() == "AVX2":
        pytest.skip("a known alarm without AVX-512: one input of a ReLU crosses zero by rounding")
    result = plumbline.compare(step(name, task), step(golden_of(name), task))
    assert result.details is None, result.summary


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", FAULTS)
def test_fault_beside_it_is_named(name: str, task: str, step: Callable[[str, str], Path]) -> None:
    result = plumbline.compare(step(name, task), step(golden_of(name), task))
    assert result.details is not None, result.summary
    assert result.exit_code == 1
