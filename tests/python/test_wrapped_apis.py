"""Every API of the list that this PyTorch has is called once and recorded under its name."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from recording import run_script

import plumbline.pytorch

HERE = Path(__file__).resolve().parent
OWNERS = {"functional": "Functional", "tensor": "Tensor", "torch": "Torch", "_VF": "VF"}

# Listed APIs that torch 2.13 does not have.
ABSENT = {"Tensor.align_as", "Tensor.align_to", "Torch.align_tensors"}

# Listed APIs that torch 2.13 has and that cannot be called here; the test fails when one can be.
REMOVED = "raises always: removed from PyTorch, the attribute says what to use instead"
NEEDS_CUDA = "implemented for CUDA only"
NOT_CALLED = {
    **{f"Tensor.{name}": REMOVED for name in ("eig", "lstsq", "solve", "symeig")},
    **{f"Torch.{name}": REMOVED for name in ("eig", "lstsq", "matrix_rank", "solve", "symeig")},
    **{f"Torch.batch_norm_{name}": NEEDS_CUDA
       for name in ("backward_elemt", "backward_reduce", "elemt", "gather_stats",
                    "gather_stats_with_counts", "stats")},
}
MOST_NOT_CALLED = 0.02  # of all


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """calls.json of record_wrapped_apis.py, with the recording's entries as "entries"."""
    out = tmp_path_factory.mktemp("wrapped")
    run_script(HERE / "record_wrapped_apis.py", out)
    found: dict[str, Any] = json.loads((out / "calls.json").read_text())
    dump = json.loads((out / "dump" / "step0" / "rank" / "dump.json").read_text())
    found["entries"] = dump["data"]
    return found


def listed() -> set[str]:
    """All names of the list that are no other framework's or device's."""
    text = (Path(plumbline.pytorch.__file__).parent / "apis.json").read_text()
    table: dict[str, list[str]] = json.loads(text)
    return {f"{prefix}.{name}" for key, prefix in OWNERS.items() for name in table[key]}


def test_every_listed_api_is_called(outcome: dict[str, Any]) -> None:
    assert len(listed()) > 1000
    assert set(outcome["left"]) == set(NOT_CALLED)
    assert listed() - set(outcome["called"]) - set(NOT_CALLED) == ABSENT
    assert len(NOT_CALLED) <= MOST_NOT_CALLED * len(listed())


def test_recording_makes_no_call_fail(outcome: dict[str, Any]) -> None:
    assert outcome["failed"] == {}


def test_every_call_is_recorded_once_under_its_name(outcome: dict[str, Any]) -> None:
    assert list(outcome["entries"]) == [f"{name}.0.forward" for name in outcome["called"]]


def test_every_result_is_recorded(outcome: dict[str, Any]) -> None:
    """Type, shape and maximum of the recorded output are those of the tensor that was returned."""
    wrong, checked, maxima = [], 0, 0
    for name, expected in outcome["called"].items():
        if expected is None:
            continue
        checked += 1
        dtype, shape, maximum = expected
        output = outcome["entries"][f"{name}.0.forward"]["output"][0]
        if maximum is not None:
            maxima += 1
            if not math.isclose(float(output["Max"]), maximum, rel_tol=1e-6):
                wrong.append((name, output, expected))
        if [output["dtype"], output["shape"]] != [dtype, shape]:
            wrong.append((name, output, expected))
    assert wrong == []
    assert checked > 0.85 * len(outcome["called"])
    assert maxima > 0.5 * len(outcome["called"])


def test_every_call_has_its_arguments(outcome: dict[str, Any]) -> None:
    without = [name for name in outcome["called"]
               if not outcome["entries"][f"{name}.0.forward"]["input_args"]
               and not outcome["entries"][f"{name}.0.forward"]["input_kwargs"]]
    assert without == []


def test_reasons_are_about_what_torch_has() -> None:
    def has(name: str) -> bool:
        owner = torch.Tensor if name.startswith("Tensor.") else torch
        return hasattr(owner, name.split(".", 1)[1])

    assert [name for name in NOT_CALLED if not has(name)] == []
    assert [name for name in ABSENT if has(name)] == []
