"""`plumb check`: rules, waivers, baselines, exit statuses and bad rule files."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from recording import PLUMB


def dump(folder: Path, values: dict[str, float]) -> Path:
    """A recording of one call per name, whose output has one value as all its statistics."""
    folder.mkdir(parents=True)
    data = {}
    for name, value in values.items():
        output = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4],
                  "Max": value, "Min": value, "Mean": value, "Norm": 2 * value,
                  "requires_grad": False}
        data[f"Torch.{name}.0.forward"] = {"input_args": [], "input_kwargs": {}, "output": [output]}
    (folder / "dump.json").write_text(json.dumps(
        {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
         "data": data}))
    return folder


def check(tmp_path: Path, rules: str, *more: str, target: str = "new",
          baseline: str = "good") -> subprocess.CompletedProcess[str]:
    """Runs `plumb check` on two recordings in `tmp_path`."""
    file = tmp_path / "rules.yaml"
    file.write_text(rules)
    return subprocess.run(
        [PLUMB, "check", str(file), str(tmp_path / target), str(tmp_path / baseline), *more],
        text=True, capture_output=True, check=False, timeout=60)


def rule(name: str = "*", metric: str = "max_diff", limit: str = "0.1") -> str:
    """One rule of a list."""
    return f"  - {{name: '{name}', metric: {metric}, limit: {limit}}}\n"


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """b differs by 0.5 in its maximum; c is NaN on both sides; a is equal."""
    dump(tmp_path / "good", {"a": 1.0, "b": 2.0, "c": float("nan")})
    dump(tmp_path / "new", {"a": 1.0, "b": 2.5, "c": float("nan")})
    return tmp_path


# Rules, exit status, numbers of the first line: checked, failed, waived, rows without rule.
CASES = [
    (rule("Torch.a.*"), 0, (1, 0, 0, 2)),
    (rule("Torch.b.*"), 1, (1, 1, 0, 2)),
    (rule("Torch.b.*", limit="0.5"), 0, (1, 0, 0, 2)),  # the limit itself holds
    (rule("Torch.b.*", limit="0.4999"), 1, (1, 1, 0, 2)),
    (rule("Torch.c.*"), 1, (1, 1, 0, 2)),  # NaN is never within a limit
    (rule("Torch.?.0.forward.output.0"), 1, (3, 2, 0, 0)),
    (rule("*") + rule("Torch.b*", limit="1") + rule("Torch.c*", limit="1"), 1, (3, 1, 0, 0)),
    (rule("*") + rule("Torch.nothing.*"), 1, (3, 3, 0, 0)),  # a rule that names nothing fails
    (rule("Torch.b.*", "verdict", "within noise"), 1, (1, 1, 0, 2)),
    (rule("Torch.a.*", "verdict", "same"), 0, (1, 0, 0, 2)),
    (rule("Torch.a.*", "cosine", "0.99"), 1, (1, 1, 0, 2)),  # statistics have none, equal or not
    (rule("Torch.b.*", "cosine", "0.99"), 1, (1, 1, 0, 2)),
    (rule("Torch.b.*", "norm_percent", "30"), 0, (1, 0, 0, 2)),
]


@pytest.mark.parametrize(("rules", "status", "counts"), CASES)
def test_rules_decide(rules: str, status: int, counts: tuple[int, ...], pair: Path) -> None:
    done = check(pair, "rules:\n" + rules)
    assert done.returncode == status, done.stdout + done.stderr
    first = done.stdout.splitlines()[0]
    word = "failed" if status else "passed"
    assert first == (f"check {word}: {counts[0]} values checked, {counts[1]} failed, "
                     f"{counts[2]} waived, {counts[3]} rows without rule")


@pytest.mark.parametrize(("waiver", "status"), [
    ("name: 'Torch.b.*', reason: known", 0),
    ("name: 'Torch.b.*', metric: max_diff, reason: known", 0),
    ("name: 'Torch.b.*', metric: min_diff, reason: known", 1),
    ("name: 'Torch.a.*', reason: known", 1),
    ("name: 'Torch.b.*', reason: known, expires: 2020-01-31", 1),
    ("name: 'Torch.b.*', reason: known, expires: 9999-12-31", 0),
])
def test_waivers(waiver: str, status: int, pair: Path) -> None:
    done = check(pair, f"rules:\n{rule('Torch.b.*')}waivers:\n  - {{{waiver}}}\n",
                 "--junit", str(pair / "check.xml"))
    assert done.returncode == status, done.stdout
    [suite] = ET.parse(pair / "check.xml").getroot()
    assert int(suite.get("skipped", "-1")) == 1 - status
    assert int(suite.get("failures", "-1")) == status
    if status == 0:
        assert "waived: known" in done.stdout


def test_sarif_has_waived_values_as_suppressed(pair: Path) -> None:
    waivers = "waivers:\n  - {name: 'Torch.b.*', reason: known}\n"
    check(pair, f"rules:\n{rule('*')}{waivers}", "--sarif", str(pair / "check.sarif"))
    [run] = json.loads((pair / "check.sarif").read_text())["runs"]
    waived, failed = run["results"]
    assert waived["message"]["text"].startswith("Torch.b.0.forward.output.0")
    assert waived["suppressions"] == [{"kind": "external", "justification": "known"}]
    assert "suppressions" not in failed
    assert {r["id"] for r in run["tool"]["driver"]["rules"]} == {"max_diff", "no-value"}


def test_sarif_names_the_failing_value(pair: Path) -> None:
    check(pair, "rules:\n" + rule("*"), "--sarif", str(pair / "check.sarif"))
    [run] = json.loads((pair / "check.sarif").read_text())["runs"]
    assert [(r["ruleId"], r["message"]["text"].split()[0]) for r in run["results"]] == [
        ("max_diff", "Torch.b.0.forward.output.0"), ("no-value", "Torch.c.0.forward.output.0")]


@pytest.mark.parametrize(("rules", "problem"), [
    ("", "mapping"),
    ("- 1", "mapping"),
    ("rules: []", "holds no rule"),
    ("rules: 3", "no list"),
    ("rules: [", "not YAML"),
    ("rule: []", "unknown key"),
    ("rules: [{name: a, metric: max_diff}]", "limit is missing"),
    ("rules: [{name: a, metric: speed, limit: 1}]", "unknown metric"),
    ("rules: [{name: a, metric: max_diff, limit: much}]", "no limit"),
    ("rules: [{name: a, metric: max_diff, limit: .nan}]", "no limit"),
    ("rules: [{name: a, metric: max_diff, limit: nan}]", "no limit"),
    ("rules: [{name: a, metric: max_diff, limit: inf}]", "no limit"),
    ("rules: [{name: a, metric: verdict, limit: 1}]", "no limit"),
    ("rules: [{name: [a], metric: max_diff, limit: 1}]", "no text"),
    ("rules: [{name: a, metric: max_diff, limit: 1, limits: 2}]", "unknown key"),
    ("rules: [x]", "mapping"),
    ("rules: [{name: a, metric: max_diff, limit: 1}]\nwaivers: [{name: a}]", "reason is missing"),
    ("rules: [{name: a, metric: max_diff, limit: 1}]\n"
     "waivers: [{name: a, reason: b, expires: soon}]", "no date"),
    ("rules: [{name: a, metric: max_diff, limit: 1}]\n"
     "waivers: [{name: a, reason: b, expires: 2027-02-29}]", "no date"),
    ("[" * 5000, "not YAML"),
])
def test_bad_rule_file_is_one_clear_line(rules: str, problem: str, pair: Path) -> None:
    done = check(pair, rules, "--junit", str(pair / "check.xml"))
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert "rules.yaml: " in line
    assert problem in line
    assert not (pair / "check.xml").exists()


def test_missing_files(pair: Path) -> None:
    assert check(pair, "rules:\n" + rule(), target="none").returncode == 3
    done = subprocess.run([PLUMB, "check", str(pair / "no.yaml"), str(pair / "new"),
                           str(pair / "good")], capture_output=True, check=False, timeout=60)
    assert done.returncode == 3


@pytest.mark.parametrize(("words", "status"), [
    (("--hardware", "A100", "--framework", "torch 2.6.1"), 0),
    (("--hardware", "A100", "--framework", "torch 2.4.0"), 3),
    (("--hardware", "H100"), 1),
    ((), 3),
])
def test_baselines_are_chosen_by_fingerprint(words: tuple[str, ...], status: int,
                                             pair: Path) -> None:
    dump(pair / "all" / "other", {"a": 9.0, "b": 9.0})
    dump(pair / "all" / "same", {"a": 1.0, "b": 2.5})
    (pair / "all" / "baselines.yaml").write_text(
        "baselines:\n"
        "  - {hardware: A100, framework: 'torch 2.6*', path: same}\n"
        "  - {hardware: H*, path: other}\n")
    done = check(pair, "rules:\n" + rule("Torch.b.*"), *words, baseline="all")
    assert done.returncode == status, done.stdout + done.stderr
    if status == 3:
        assert "baselines.yaml: no baseline for hardware" in done.stderr


@pytest.mark.parametrize("metric, limit", [("verdict", "within noise"), ("error", "0.01")])
def test_equal_zeros_and_masks_pass_and_nan_does_not(metric: str, limit: str,
                                                     tmp_path: Path) -> None:
    for name in ("good", "new"):
        dump(tmp_path / name, {"a": 1.0, "zero": 0.0, "mask": float("-inf")})
    done = check(tmp_path, "rules:\n" + rule("*", metric, limit))
    assert done.returncode == 0, done.stdout
    for name in ("good_nan", "new_nan"):
        dump(tmp_path / name, {"a": 1.0, "nan": float("nan")})
    done = check(tmp_path, "rules:\n" + rule("*", metric, limit), target="new_nan",
                 baseline="good_nan")
    assert done.returncode == 1, done.stdout


def test_a_value_without_counterpart_fails(pair: Path) -> None:
    dump(pair / "more", {"a": 1.0, "b": 2.5, "d": 1.0})
    done = check(pair, "rules:\n" + rule("Torch.d.*"), target="more")
    assert done.returncode == 1
    assert "no number (no-golden)" in done.stdout
