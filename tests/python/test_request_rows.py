"""`slice`, `request_id` and `scheduled_tokens`: what is left is what Python's slices leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from recording import config, dump, run

PROGRAM = """
import ast, sys
import torch
from plumbline.pytorch import PrecisionDebugger

torch.manual_seed(0)
debugger = PrecisionDebugger(sys.argv[1])
model = torch.nn.Linear(6, 7)  # as many outputs as tokens
debugger.start(model=model, scheduled_tokens=ast.literal_eval(sys.argv[2]))
tokens = torch.randn(7, 6)
model(tokens)
tokens.add_(1)
torch.abs(tokens.t())
torch.abs(tokens[None])
torch.abs(tokens.bfloat16())
torch.abs(tokens.relu().to_sparse())
torch.abs(torch.empty(7, 3, device="meta"))
torch.add(tokens, tokens[:, :1])
debugger.stop()
"""
SCHEDULE = "{'a': 2, 'b': 4, 'c': 1}"


def files(directory: Path) -> dict[str, torch.Tensor]:
    folder = directory / "out/step0/rank/dump_tensor_data"
    return {path.name: torch.load(path) for path in folder.iterdir()}


def recorded(directory: Path, schedule: str, **options: Any) -> str:
    directory.mkdir()
    return run(PROGRAM, config(directory, task="tensor", level="mix", **options), schedule).stdout


def test_the_rows_of_the_request_are_those_of_the_whole(tmp_path: Path) -> None:
    recorded(tmp_path / "whole", "None")
    recorded(tmp_path / "rows", SCHEDULE, request_id="b", slice=[{"dim": 1, "size": 7, "end": -2}])
    whole, rows = files(tmp_path / "whole"), files(tmp_path / "rows")
    assert rows.keys() == whole.keys() and len(rows) > 20
    cut = 0
    for name, tensor in whole.items():
        expected = tensor
        if tensor.dim() > 1 and tensor.shape[1] == 7:
            expected = expected[:, :-2]
        # Weight and bias have as many rows as the batch has tokens, and are none of them.
        is_parameter = name.endswith((".weight.pt", ".bias.pt")) or name in (
            "Functional.linear.0.forward.input.1.pt", "Functional.linear.0.forward.input.2.pt")
        if tensor.shape[0] == 7 and not is_parameter:
            expected = expected[2:6]
        elif tensor.shape[:2] == (1, 7):
            expected = tensor[:, 2:6]
        assert torch.equal(rows[name].to_dense(), expected.to_dense()), name
        cut += expected.shape != tensor.shape
    assert cut > 12
    meta = dump(tmp_path / "rows")["Torch.abs.4.forward"]["output"][0]
    assert (meta["shape"], meta["Max"]) == ([4, 3], None)


@pytest.mark.parametrize(("schedule", "warning"), [
    ("[('b', 7)]", "no effect as list (expected a dict of request -> number of its tokens)"),
    ("{'b': 0, 'a': 7}", "no effect with 0 for request b (expected its number of tokens"),
    ("{'b': True, 'a': 6}", "no effect with bool for request b"),
    ("{'b': 10**30}", "for request b (expected its number of tokens, an int of at least 1)"),
    ("{1: 7}", "no effect with a key of type int (expected str)"),
])
def test_a_schedule_that_is_none_is_told_and_ignored(
    tmp_path: Path, schedule: str, warning: str
) -> None:
    said = recorded(tmp_path / "rows", schedule.replace("10**30", str(10**30)), request_id="b")
    assert warning in said and "All requests of the batch are recorded" in said
    assert dump(tmp_path / "rows")["Torch.abs.1.forward"]["output"][0]["shape"] == [1, 7, 6]


def test_a_schedule_needs_a_request(tmp_path: Path) -> None:
    said = recorded(tmp_path / "rows", SCHEDULE)
    assert "scheduled_tokens has no effect without request_id in config.json" in said
    assert dump(tmp_path / "rows")["Torch.abs.1.forward"]["output"][0]["shape"] == [1, 7, 6]


def test_a_step_without_the_request_leaves_nothing(tmp_path: Path) -> None:
    said = recorded(tmp_path / "rows", "{'a': 7}", request_id="b")
    assert "request b has no tokens in scheduled_tokens; step 0 is not recorded" in said
    assert not (tmp_path / "rows/out").exists() or not list((tmp_path / "rows/out").iterdir())
