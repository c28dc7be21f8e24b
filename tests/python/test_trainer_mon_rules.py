"""Rules ("watch") of TrainerMon: what they find while training, `plumb watch` finds later."""

from __future__ import annotations

import csv
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor_training import (
    EVERYTHING,
    TwoLayers,
    directory_of,
    out_of,
    train,
    watched,
    write_config,
)
from recording import PLUMB

from plumbline.pytorch import TrainerMon

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")

# In the words of the command line.
RULES = ["gradient_vanishing(abs_mean_lt=1e-9)", "tensor_overflow", "tensor_all_zero",
         "weight_initialization(max_gt=0.1)", "prev(max) > 0 and min < -0.4"]
NAMED = {"name": "long", "when": "l2norm > 0.5", "for": 2, "severity": "warning",
         "on": {"nodes": ["fc1.*"], "io": "both"}}
COLUMNS = ("rule", "severity", "step", "prev_step", "rank", "name", "io", "slot", "verdict")


def of_table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def shown(rows: list[dict[str, str]]) -> list[tuple[str, ...]]:
    return [tuple(row[column] for column in COLUMNS) for row in rows if row["verdict"] == "hit"]


def break_things(model: TwoLayers, step: int) -> None:
    """A dead ReLU behind step 1: no gradient reaches the first layer; NaN at the last step."""
    with torch.no_grad():
        if step == 1:
            model.fc1.bias.fill_(-100.0)
        if step == 4:
            model.fc2.bias[0] = math.nan


@pytest.mark.parametrize("per_file", [1, 4])
def test_hits_are_those_of_the_files(tmp_path: Path, per_file: int) -> None:
    torch.manual_seed(0)
    model = TwoLayers()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    rules_file = tmp_path / "rules.json"
    rules_file.write_text(json.dumps({
        "version": 1, "rules": [*({"when": rule} for rule in RULES), NAMED]}))
    with watched(tmp_path, **EVERYTHING, ndigits="auto", step_count_per_record=per_file,
                 watch=[*RULES, NAMED]) as monitor:
        monitor.set_monitor(model, optimizer=optimizer, grad_acc_steps=2)
        train(model, optimizer, 6, 2, at_step=lambda step: break_things(model, step))
    table = tmp_path / "offline.csv"
    done = subprocess.run([PLUMB, "watch", out_of(tmp_path), "--rules", rules_file, "-o", table],
                          text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    live = shown(of_table(directory_of(tmp_path) / "watch.csv"))
    assert live == shown(of_table(table))
    hits = {(rule, int(step), name) for rule, _, step, _, _, name, io, *_ in live
            if io in ("grad_reduced", "param", "actv")}
    assert ("gradient_vanishing", 2, "fc1.weight") in hits
    assert ("gradient_vanishing", 1, "fc1.weight") not in hits
    assert ("tensor_overflow", 5, "fc2.output") in hits
    assert ("weight_initialization", 0, "fc1.weight") in hits
    assert not any(rule == "weight_initialization" and step > 0 for rule, step, _ in hits)
    assert min(step for rule, step, _ in hits if rule == "long") == 1


def test_what_is_told(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    """Hits, limits of rules and what they came to, without files too."""
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watched(tmp_path, param_distribution=True, ops=["max", "mean"], format="api",
                 watch=["max > 1", "weight_not_changed", "nan_count > 0", "abs_mean < 1",
                        "gradient_vanishing(abs_mean_lt=1e-9)"]) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        for value in (0.5, 1.5, 0.25):
            model.weight.data.fill_(value)
            optimizer.step()
    text = "".join(capfd.readouterr())
    assert not out_of(tmp_path).exists()
    assert "> watch: max > 1 at step 1 rank 0 weight param 0 (max 1.5 > 1)" in text
    assert text.count("> watch: max > 1 at step") == 1
    assert "watch: weight_not_changed: unchanged is not known from statistics" in text
    assert "watch: gradient_vanishing: looks at gradients: set wg_distribution" in text
    assert 'watch: abs_mean < 1: abs_mean is not known without min in "ops"' in text
    assert 'watch: nan_count > 0: nan_count is not known without nans in "ops"' in text
    assert "watch: max > 1: 3 steps, 1 hit, 2 no hit, 0 not evaluated" in text
    assert "watch: gradient_vanishing: 3 steps, selected nothing" in text
    assert "watch: abs_mean < 1: 3 steps, 0 hits, 1 no hit, 2 not evaluated" in text


BAD: list[tuple[Any, str]] = [
    (["gradient_vanish"], "did you mean gradient_vanishing?"),
    (["tensor_too_large(max_g=1)"], "did you mean max_gt?"),
    ([{"when": "TO", "severty": "note"}], "did you mean severity?"),
    (["max > 1", 7], "watch[1]: expected an expression"), (True, "watch: expected a list"),
    ("rules.yaml", "rules.yaml")]


def test_faults_are_in_the_one_report(tmp_path: Path) -> None:
    for watch, part in BAD:
        path = write_config(tmp_path, eps=1, watch=watch)
        with pytest.raises(ValueError, match="2 faults") as raised:
            TrainerMon(str(path))
        assert part in str(raised.value) and "eps: is 1" in str(raised.value)


def test_resumed_and_changed_trainings_have_no_first_step(tmp_path: Path) -> None:
    """Conditions of the first recorded step look at that of the directory alone; hits of steps that
    are made again are taken away."""
    options: dict[str, Any] = {"param_distribution": True, "ops": ["max", "norm"],
                               "watch": ["weight_initialization(max_gt=0)", "max > 0"]}
    for begin in (0, 2):
        model = torch.nn.Linear(1, 1, bias=False)
        model.weight.data.fill_(1.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        with watched(tmp_path, **options) as monitor:
            monitor.set_monitor(model, optimizer=optimizer, start_iteration=begin)
            for _ in range(3):
                optimizer.step()
        time = directory_of(tmp_path).name.split("-rank")[0]
        options["append_output"] = [time, time]
    rows = [(row["rule"], row["step"])
            for row in of_table(directory_of(tmp_path) / "watch.csv")]
    assert rows == [("weight_initialization", "0"),
                    *(("max > 0", str(step)) for step in range(5))]
