"""The cause of the first wrong call: faults recorded from a real model, and the next recording."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from recording import PLUMB, run, run_script

import plumbline

HERE = Path(__file__).resolve().parent
CLASSES = ["scale", "sign", "offset", "missing-addend", "extra-addend", "shifted", "permuted",
           "zeroed-block", "nonfinite", "saturated", "narrowed", "dropout", "random",
           "not-applied"]
# With four statistics: what they can show.
BY_STATISTICS = {"scale": "scale", "sign": "sign", "offset": "offset", "nonfinite": "nonfinite",
                 "narrowed": "narrowed", "not-applied": "not-applied", "dropout": "unexplained"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of every fault of one task, recorded once."""
    made: dict[str, Path] = {}

    def record(task: str) -> Path:
        if task not in made:
            made[task] = tmp_path_factory.mktemp(task)
            run_script(HERE / "cause_models.py", made[task], task)
        return made[task]

    return record


@pytest.mark.parametrize("fault", CLASSES)
def test_class_of_a_fault_with_tensors(fault: str, recorded: Callable[[str], Path]) -> None:
    runs = recorded("tensor")
    details = plumbline.compare(runs / fault, runs / "sound").details
    assert details is not None
    assert details["name"] == "Module.edited.Edited.forward.0"
    assert details["cause"] == {"dropout": "random"}.get(fault, fault), details["cause_text"]
    assert details["confidence"] == ("medium" if fault == "random" else "high")


@pytest.mark.parametrize("fault", BY_STATISTICS)
def test_class_of_a_fault_with_statistics(fault: str, recorded: Callable[[str], Path]) -> None:
    runs = recorded("statistics")
    details = plumbline.compare(runs / fault, runs / "sound").details
    assert details is not None
    assert details["cause"] == BY_STATISTICS[fault], details["cause_text"]
    assert fault == "nonfinite" or details["confidence"] != "high"


def test_gradient_counted_twice(recorded: Callable[[str], Path]) -> None:
    for task in ("tensor", "statistics"):
        runs = recorded(task)
        details = plumbline.compare(runs / "backward-twice", runs / "sound").details
        assert details is not None and details["cause"] == "scale"
        assert "times 2," in details["cause_text"] or "times 2;" in details["cause_text"]
        assert "only the gradient is wrong" in details["cause_text"]


def test_sound_pair_has_no_cause(recorded: Callable[[str], Path]) -> None:
    runs = recorded("tensor")
    assert plumbline.compare(runs / "sound", runs / "sound").details is None


def test_evidence_is_below_the_numbers(recorded: Callable[[str], Path]) -> None:
    runs = recorded("tensor")
    lines = plumbline.compare(runs / "nonfinite", runs / "sound").summary.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  cause: "))
    assert lines[at].startswith("  cause: nonfinite (high confidence): 12 NaN of 384 elements")
    assert "axis 1 (of 32) at 5" in " ".join(lines[at:])


def test_unreadable_tensors_leave_the_statistics(
    recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    """A cut file is no evidence; the answer stands on what is left, and nothing fails."""
    runs = recorded("tensor")
    target = tmp_path / "scale"
    shutil.copytree(runs / "scale", target)
    (file,) = target.glob("**/Module.edited.Edited.forward.0.output.0.pt")
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content[: len(content) // 2])
    result = plumbline.compare(target, runs / "sound")
    assert result.counts["unreadable files"] >= 1
    assert result.first_wrong_call is not None
    assert result.details is not None and result.details["cause"]


# --- the next recording ----------------------------------------------------------------------

READ_BACK = """
import sys
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
print("accepted")
"""


def next_config(target: Path, golden: Path, directory: Path) -> Path | None:
    path = directory / "next.json"
    done = subprocess.run(
        [PLUMB, "compare", str(target), str(golden), "-o", str(directory / "out"), "--next-config",
         str(path), "--json"], capture_output=True, text=True, timeout=100, check=True)
    facts = json.loads(done.stdout)
    assert (str(path) in facts["files"]) == path.exists()
    assert path.exists() or any(str(path) in warning for warning in facts["warnings"])
    return path if path.exists() else None


@pytest.mark.parametrize("fault", ["offset", "backward-twice"])
def test_next_config_is_one_that_the_recorder_reads(
    fault: str, recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    runs = recorded("statistics")
    path = next_config(runs / fault, runs / "sound", tmp_path)
    assert path is not None
    made = json.loads(path.read_text())
    assert made["task"] == "tensor" and made["level"] == "mix"
    names = made["tensor"]["scope"] + made["tensor"]["list"]
    culprit = plumbline.compare(runs / fault, runs / "sound").first_wrong_call
    assert culprit in names
    assert "accepted" in run(READ_BACK, path).stdout


def test_next_config_is_not_written_when_nothing_is_wrong(
    recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    runs = recorded("statistics")
    assert next_config(runs / "sound", runs / "sound", tmp_path) is None


RECORD_APIS = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
factor = float(sys.argv[2])
torch.manual_seed(0)
x, w = torch.randn(6, 8), torch.randn(8, 8)
debugger = PrecisionDebugger(sys.argv[1])
debugger.start()
y = torch.nn.functional.linear(x, w)
z = torch.tanh(y)
z.mul_(1.0) if factor == 1 else z.numpy().__imul__(factor)
torch.softmax(torch.add(z, y), -1).sum()
debugger.stop()
debugger.step()
"""


def test_next_config_settles_the_cause(tmp_path: Path) -> None:
    """Statistics first; the recording that the file asks for names the class with tensors."""
    made = {}
    for name, value in (("golden", 1.0), ("target", -3.0)):
        directory = tmp_path / name
        directory.mkdir()
        config = directory / "config.json"
        config.write_text(json.dumps({"task": "statistics", "level": "L1",
                                      "dump_path": str(directory / "out"), "statistics": {}}))
        run(RECORD_APIS, config, value)
        made[name] = directory
    path = next_config(made["target"] / "out", made["golden"] / "out", tmp_path)
    assert path is not None
    plan = json.loads(path.read_text())
    assert plan["level"] == "L1" and plan["step"] == [0]
    for name, value in (("golden", 1.0), ("target", -3.0)):
        plan["dump_path"] = str(made[name] / "next")
        path.write_text(json.dumps(plan))
        run(RECORD_APIS, path, value)
    details = plumbline.compare(made["target"] / "next", made["golden"] / "next").details
    assert details is not None and details["cause"] == "scale", details
    assert "times -3" in details["cause_text"]
    assert details["confidence"] == "high"


# --- measured noise --------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["tensor", "statistics"])
def test_an_accepted_run_explains_what_the_model_does_not(
    task: str, recorded: Callable[[str], Path]
) -> None:
    """Golden is float32; one bfloat16 rounding was accepted, the target truncates instead."""
    runs = recorded(task)
    alone = plumbline.compare(runs / "truncated", runs / "sound")
    assert alone.first_wrong_call == "Module.edited.Edited.forward.0"
    both = plumbline.compare(runs / "truncated", runs / "sound", noise=runs / "narrowed")
    if task == "tensor":
        assert both.first_wrong_call is None, both.summary
        assert both.answer == "no wrong call"
        return
    # Truncation shifts the mean, which rounding to nearest does not: more is explained, not all.
    assert _explained(both) > 10 * _explained(alone)
    assert both.counts["broken"] == 0 < alone.counts["broken"]


def _explained(result: plumbline.ComparisonResult) -> float:
    """What may differ at the first wrong call, as its sentence says."""
    assert result.details is not None
    return float(result.details["what"].split("explained ")[1].split(";")[0])


@pytest.mark.parametrize(
    "fault", ["scale", "nonfinite", "zeroed-block", "permuted", "backward-twice"])
@pytest.mark.parametrize("noise", ["narrowed", "sound", "sign", "nonfinite"])
def test_noise_hides_no_fault(
    fault: str, noise: str, recorded: Callable[[str], Path]
) -> None:
    """Neither an accepted run, nor one without noise, nor one that is itself wrong."""
    runs = recorded("tensor")
    result = plumbline.compare(runs / fault, runs / "sound", noise=runs / noise)
    assert result.details is not None
    assert result.first_wrong_call == plumbline.compare(
        runs / fault, runs / "sound").first_wrong_call
    assert result.details["cause"] == {"backward-twice": "scale"}.get(fault, fault)
    if noise == "sign":
        assert any("measures no noise" in warning for warning in result.warnings)


def test_noise_run_that_is_missing_is_an_error(recorded: Callable[[str], Path]) -> None:
    runs = recorded("tensor")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        plumbline.compare(runs / "scale", runs / "sound", noise=runs / "nowhere")
