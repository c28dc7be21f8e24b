"""`plumb compare` on two debug.json: what the real releases wrote, what plumbline writes, and what
the answer is when one of them is wrong.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from recording import PLUMB, config, run

import plumbline

DATA = Path(__file__).resolve().parents[1] / "data"
OLDER = DATA / "upstream_1.2.2" / "debug_level"
NEWER = DATA / "upstream_26.2.0" / "debug_level"

RECORD = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
x = torch.randn(5, 8)
debugger.save(x, "x")
hidden = model[1](model[0](x))
hidden = hidden * FACTOR
debugger.save({"hidden": hidden, "parts": [hidden[:2], 3]}, "hidden")
loss = (model[2](hidden) ** 2).mean()
debugger.save(loss, "loss")
if EXTRA:
    debugger.save(loss.detach(), "extra")
loss.backward()
"""


def record(directory: Path, task: str, factor: float = 1.0, extra: bool = False) -> Path:
    """A recording of plumbline at level debug."""
    directory.mkdir()
    code = RECORD.replace("FACTOR", str(factor)).replace("EXTRA", str(extra))
    run(code, config(directory, task=task, level="debug"))
    return directory / "out"


def compare(target: Path, golden: Path, output: Path, *words: str) -> dict[str, Any]:
    """The machine form of the answer, with its rows."""
    done = subprocess.run([PLUMB, "compare", target, golden, "-o", output, "--json", *words],
                          text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    names = [Path(name).name for name in facts["files"]]
    assert names and all(name.startswith("debug_compare_result_") for name in names)
    by_suffix = {Path(name).suffix: Path(name) for name in facts["files"]}
    facts["rows"] = json.loads(by_suffix[".json"].read_text())["rows"]
    with by_suffix[".csv"].open(newline="") as file:
        facts["table"] = list(csv.DictReader(file))
    return facts


def leaves(value: Any, name: str) -> list[str]:
    """Names of the places below a value of debug.json, in its order; read without plumbline."""
    if isinstance(value, list):
        return [leaf for i, part in enumerate(value) for leaf in leaves(part, f"{name}.{i}")]
    if isinstance(value, dict) and not isinstance(value.get("type"), str):
        return [leaf for key, part in value.items() for leaf in leaves(part, f"{name}.{key}")]
    return [name]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_the_same_run_of_two_releases_agrees(tmp_path: Path, task: str) -> None:
    """1.2.2 says x.0 and 26.2.0 says x.0.debug, in other directories and files of other names."""
    data = json.loads((OLDER / task / "rank" / "debug.json").read_text())["data"]
    facts = compare(OLDER / task, NEWER / task, tmp_path)
    assert facts["first_wrong_call"] is None and facts["complete"]
    names = [leaf for name, value in data.items() for leaf in leaves(value, name)]
    assert [row["NPU Name"] for row in facts["table"]] == names
    assert [row["Bench Name"] for row in facts["table"]] == names
    verdicts = {row["NPU Name"]: row["Verdict"] for row in facts["table"]}
    assert {verdicts[name] for name in names} == {"same", "not comparable"}
    assert all(verdicts[name] == "same" for name in names if "_grad" not in name)


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_wrong_value_is_named(tmp_path: Path, task: str) -> None:
    """Two recordings of plumbline; the gradient of the value before the wrong one differs too."""
    good = record(tmp_path / "good", task)
    wrong = record(tmp_path / "wrong", task, factor=1.01, extra=True)
    facts = compare(wrong, good, tmp_path / "result")
    assert facts["first_wrong_call"]["name"] == "hidden.0"
    assert facts["first_wrong_call"]["item"] == "hidden.0.hidden"
    verdicts = {row["NPU Name"]: row["Verdict"] for row in facts["table"]}
    assert verdicts["x.0"] == "same" and verdicts["hidden.0.hidden"] == "broken"
    alone = [row for row in facts["rows"] if row["golden"] is None]
    assert {row["call"] for row in alone} == {"extra.0", "extra_grad.0"}
    assert {row["reason"] for row in alone} == {"no-golden"}
    assert not facts["complete"]
    if task == "tensor":
        assert check_differences(facts["table"], wrong, good) >= 5


def check_differences(table: list[dict[str, str]], target: Path, golden: Path) -> int:
    """The largest difference of each pair of tensors, against torch on the files."""
    checked = 0
    for row in table:
        if row["Data_name"] == "-1" or row["Bench Name"] == "N/A":
            continue
        a, b = (torch.load(side / "rank" / "dump_tensor_data" / row["Data_name"],
                           weights_only=True).double() for side in (target, golden))
        assert float(row["MaxAbsErr"]) == pytest.approx((a - b).abs().max().item(), rel=1e-12)
        checked += 1
    return checked


def test_two_recordings_of_the_same_agree(tmp_path: Path) -> None:
    """Gradients that no value has are no loss."""
    good, again = (record(tmp_path / name, "statistics") for name in ("good", "again"))
    facts = compare(again, good, tmp_path / "same")
    assert facts["first_wrong_call"] is None and facts["complete"]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_header_behind_the_entries(tmp_path: Path, task: str) -> None:
    """Keys sorted by another tool, which puts "level" behind "data": the same answer."""
    source = OLDER / task / "rank"
    shutil.copytree(source, tmp_path / "sorted")
    text = json.dumps(json.loads((source / "debug.json").read_text()), sort_keys=True)
    assert text.index('"data"') < text.index('"level"')
    (tmp_path / "sorted" / "debug.json").write_text(text)
    facts = compare(tmp_path / "sorted", source, tmp_path / "result")
    plain = compare(source, source, tmp_path / "plain")
    assert facts["first_wrong_call"] is None and facts["complete"] == plain["complete"]
    for one in (facts, plain):
        one["table"].sort(key=lambda row: row["NPU Name"])
    assert facts["table"] == plain["table"]


def test_from_python(tmp_path: Path) -> None:
    """plumbline.compare() takes the files by name."""
    text = (OLDER / "statistics" / "rank" / "debug.json").read_text()
    changed = json.loads(text)
    changed["data"]["tree"] = changed["data"].pop("tree.0")  # renamed: without counterpart
    changed["data"]["x.1"]["Max"] = 89.0
    path = tmp_path / "debug.json"
    path.write_text(json.dumps(changed))
    result = plumbline.compare(path, OLDER / "statistics" / "rank" / "debug.json")
    assert result.first_wrong_call == "x.1"
    assert not result.complete and result.exit_code == 1
    with pytest.raises(ValueError, match="saved values"):
        plumbline.compare(path, DATA / "upstream_1.2.2" / "mix_statistics")
