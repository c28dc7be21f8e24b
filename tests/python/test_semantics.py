"""What a program can see is the same with and without the recorder (semantics_scenarios.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recording import config, run_script
from semantics_scenarios import SCENARIOS

SCRIPT = Path(__file__).parent / "run_semantics.py"
NAMES = list(SCENARIOS)
RUNS = [("L0", "statistics"), ("L1", "statistics"), ("mix", "statistics"), ("mix", "tensor")]


def run_all(directory: Path, argument: str) -> dict[str, Any]:
    result = directory / "result.json"
    run_script(SCRIPT, argument, result)
    values: dict[str, Any] = json.loads(result.read_text())
    return values


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_all(tmp_path_factory.mktemp("plain"), "none")


@pytest.fixture(scope="module", params=RUNS, ids="-".join)
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, dict[str, Any]]:
    level, task = request.param
    directory = tmp_path_factory.mktemp(f"{level}_{task}")
    path = config(directory, level=level, task=task)
    return level, directory / "out", run_all(directory, str(path))


def entries(out: Path, name: str) -> dict[str, Any]:
    text = (out / f"step{NAMES.index(name)}" / "rank" / "dump.json").read_text()
    data: dict[str, Any] = json.loads(text)["data"]
    return data


@pytest.mark.parametrize("name", NAMES)
def test_nothing_changes(plain: Any, recorded: Any, name: str) -> None:
    assert "Error: " not in str(plain[name])[:40], "the scenario itself failed"
    assert recorded[2][name] == plain[name]


def test_the_scenarios_reach_what_they_are_about(plain: Any) -> None:
    # early stop saves the last recomputed calls; tensors die at once; overrides see originals
    assert plain["checkpoint_non_reentrant_True"][2] < plain["checkpoint_non_reentrant_False"][2]
    assert all(item in (True, [True, True]) for item in plain["lifetimes"])
    assert [scale for _, scale in plain["grad_scaler"][0]] == [2048.0, 1024.0, 2048.0]
    assert [flags[1] for flags in plain["no_grad_and_inference"][4]] == [
        False, True, False, False, True,
    ]
    assert "F.relu" in plain["function_overrides"][0]


def test_every_step_is_complete_and_nothing_was_lost(recorded: Any) -> None:
    _, out, _ = recorded
    for number, name in enumerate(NAMES):
        directory = out / f"step{number}" / "rank"
        dump = json.loads((directory / "dump.json").read_text())
        assert dump["data"], name
        for file in ("stack.json", "construct.json"):
            json.loads((directory / file).read_text())
        log = directory / "dump_error_info.log"
        assert not log.exists(), log.read_text()


def first_max(entry: dict[str, Any], part: str) -> Any:
    return next(value["Max"] for value in entry[part] if isinstance(value, dict))


def test_inputs_are_those_before_the_call_works_in_place(recorded: Any) -> None:
    level, out, _ = recorded
    data = entries(out, "in_place")
    if level != "L0":
        before, after = data["Tensor.add_.0.forward"], data["Tensor.__iadd__.0.forward"]
        assert first_max(before, "output") == first_max(before, "input_args") + 1
        assert first_max(after, "input_args") == first_max(before, "output")
        assert first_max(after, "output") == 2 * first_max(after, "input_args")
        # the call returns nothing
        assert data["Tensor.__setitem__.0.forward"]["output"] in ([None], [])
        assert data["Functional.relu.1.forward"]["input_kwargs"]["inplace"]["value"] is True
    if level != "L1":
        relu = data["Module.1.ReLU.forward.0"]
        assert relu["input_args"][0]["Min"] < 0 and relu["output"][0]["Min"] == 0
        assert "Module.0.Linear.backward.0" in data


def test_recomputed_calls_say_so(recorded: Any) -> None:
    level, out, _ = recorded
    for name in NAMES:
        if not name.startswith("checkpoint"):
            continue
        data = entries(out, name)
        prefix = "Module.b.Linear.forward" if level == "L0" else "Functional.dropout"
        forwards = [n for n in data if n.startswith(prefix) and ".forward" in n]
        marks = [data[n]["is_recompute"] for n in forwards]
        assert marks[0] is False and marks[-1] is True, (name, marks)


def test_calls_under_every_gradient_mode_are_recorded(recorded: Any) -> None:
    level, out, _ = recorded
    data = entries(out, "no_grad_and_inference")
    if level == "L0":
        assert {f"Module.0.Linear.forward.{k}" for k in range(3)} < set(data)
    else:
        assert sum(name.startswith("Functional.linear.") for name in data) >= 6
        inference = data["Functional.linear.2.forward"]["output"][0]
        assert inference["Norm"] > 0 and inference["requires_grad"] is False


def test_recording_goes_on_after_calls_that_raise(recorded: Any) -> None:
    level, out, _ = recorded
    data = entries(out, "errors")
    if level == "L0":
        assert "output" in data["Module.a.Linear.forward.2"]
    else:
        assert "output" not in data["Torch.matmul.0.forward"]
        assert "output" in max(
            ((n, e) for n, e in data.items() if n.startswith("Torch.add.")), key=lambda x: x[0]
        )[1]


def test_all_threads_are_recorded(recorded: Any) -> None:
    level, out, _ = recorded
    data = entries(out, "threads")
    prefix = "Module.0.Linear" if level == "L0" else "Tensor.tanh"
    assert sum(n.startswith(prefix) and ".forward" in n for n in data) == 40
