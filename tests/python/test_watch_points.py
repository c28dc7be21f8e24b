"""plumb watch and plumbline.watch against what NumPy computes in float64."""

from __future__ import annotations

import json
import pathlib
import subprocess
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from recording import PLUMB, config, run
from watch_dumps import GraphTree, statistics_table

from plumbline import watch


def plumb_watch(path: Any, *words: Any) -> subprocess.CompletedProcess[str]:
    """A run of the command."""
    return subprocess.run([str(word) for word in (PLUMB, "watch", path, *words)], text=True,
                          capture_output=True, check=False)


def rows_of(path: Any, *rules: str, options: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
    """Every row, those without a hit too."""
    words = [word for rule in rules for word in ("--when", rule)]
    done = plumb_watch(path, *words, "--json", "--all-rows", *options)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


def answers(path: Any, *rules: str) -> dict[tuple[str, int], tuple[str, str]]:
    """(rule, step) -> verdict and reason of the only tensor."""
    return {(row["rule"], row["step"]): (row["verdict"], row["reason"])
            for row in rows_of(path, *rules)}


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> GraphTree:
    """An empty dump."""
    return GraphTree(tmp_path / "dump")


def hits(row: dict[str, Any]) -> list[bool | None]:
    """Which parameters hit."""
    return [check["hit"] for check in row["checks"]]


def test_conditions_on_one_tensor(tree: GraphTree) -> None:
    tree.add("c", np.array([-3, -1, 0, 2], np.float32))
    rules = ["TL(abs_mean_gt=1.4, max_gt=1.9, min_gt=-4, mean_gt=-1)",
             "TL(abs_mean_gt=0, max_gt=5)", "TL(max_gt=2)", "TZ(zero_percentage_ge=25)",
             "TZ(zero_percentage_ge=25.1)",
             "TR(range_start_inclusive=-1, range_end_inclusive=2, range_percentage_lt=80, "
             "range_percentage_gt=70)", "TR(max_min_lt=5.1, max_min_gt=4.9)",
             "sd == 1.8027756377319946"]
    rows = rows_of(tree.root, *rules)
    assert [hits(row) for row in rows] == [[True] * 4, [True, False], [False], [True], [False],
                                           [True, True], [True, True], [True]]
    assert [check["actual"] for check in rows[0]["checks"]] == [1.5, 2, -3, -.5]


def test_values_that_are_not_finite_are_never_no_hit(tree: GraphTree) -> None:
    tree.add("n", np.array([1, np.nan, 3], np.float32))
    tree.add("i", np.array([1, np.inf, 3], np.float32), kind="ReLU")
    rows = rows_of(tree.root, "TO", "TL(max_gt=9)", "prev(max) > 1 and max > 1", "nan_count == 1")
    found = {(row["name"], row["rule"]): (row["verdict"], row["upstream_code"]) for row in rows}
    assert found["n", "tensor_overflow"] == found["i", "tensor_overflow"] == ("hit", 0)
    assert found["n", "tensor_too_large"] == ("not_evaluated", 1)
    assert found["i", "tensor_too_large"] == ("not_evaluated", 2)
    assert found["n", "prev(max) > 1 and max > 1"] == ("not_evaluated", 5)
    assert found["i", "nan_count == 1"] == ("no_hit", 0)
    gates = [plumb_watch(tree.root, "--when", "TL(max_gt=9)", "--fail-on", gate).returncode
             for gate in ("hit", "unchecked", "any")]
    assert gates == [0, 1, 1]


def test_changes_from_step_to_step(tmp_path: pathlib.Path) -> None:
    def of(*steps: Any) -> pathlib.Path:
        tree = GraphTree(tmp_path / str(len(list(tmp_path.iterdir()))))
        for i, values in enumerate(steps):
            tree.add("fc.weight", np.array(values, np.float32), i, kind="Parameter")
        return tree.root

    [row] = [row for row in rows_of(of([1, 1, 1, 1], [1, 1, 1, 1.001]),
                                    "WCS(abs_mean_update_ratio_lt=1e-3)") if row["step"] == 1]
    ratio = np.float64(np.float32(1.001)) / 4 - .25
    assert row["verdict"] == "hit"
    assert row["checks"][0]["actual"] == pytest.approx(ratio, rel=1e-8)
    grown = of([0, 0], [1, 2])
    actual = [row["checks"][0]["actual"] for row in rows_of(grown, "WCL", "WCL(epsilon=0.5)")
              if row["step"] == 1]
    assert actual == pytest.approx([1.5e9, 3])
    near = answers(of([100, 100], [100.5, 100]), "WNC(rtol=0.01, atol=0)", "WNC(rtol=0, atol=0.01)")
    assert near["weight_not_changed", 1] == ("hit", "")
    assert near["weight_not_changed-2", 1] == ("no_hit", "")
    for before, reason in (([1, np.inf], "prev_inf"), ([1, np.nan], "prev_nan"),
                           ([1, 2, 3], "prev_shape")):
        assert answers(of(before, [1, 2]), "WNC")["weight_not_changed", 1] == (
            "not_evaluated", reason)
    both = answers(of([1, np.nan], [1, np.nan]), "WNC", "WNC(equal_nan=true)")
    assert both["weight_not_changed", 1] == ("not_evaluated", "nan")
    assert both["weight_not_changed-2", 1] == ("hit", "")


def test_earlier_values_over_gaps(tree: GraphTree) -> None:
    for step in (0, 3):
        tree.add("fc.weight", np.ones(3, np.float32), step, kind="Parameter")
    tree.order(["Default/fc.weight"], [0, 1, 2, 3])
    [row] = [row for row in rows_of(tree.root, "WNC") if row["step"] == 3]
    assert (row["verdict"], row["prev_step"], row["gap"]) == ("hit", 0, 3)
    rules = tree.root.parent / "w.yaml"
    rules.write_text("version: 1\nrules:\n  - {name: w, when: WNC, max_gap: 1}\n")
    [row] = [row for row in rows_of(tree.root, options=("--rules", rules)) if row["step"] == 3]
    assert (row["verdict"], row["reason"]) == ("not_evaluated", "no_prev")
    tree.order(["Default/fc.weight"], [0, 3])
    [row] = [row for row in rows_of(tree.root, options=("--rules", rules)) if row["step"] == 3]
    assert row["verdict"] == "hit"
    for path in (tree.root / "rank_0" / "execution_order").iterdir():
        path.unlink()
    done = plumb_watch(tree.root, "--when", "WNC", "--when", "TL(max_gt=0.5)")
    assert "by the order of recorded steps" in done.stdout
    assert "all rules: 3 hits, 0 no hit, 1 not evaluated (no_prev 1)" in done.stdout


def test_ends_of_ranges_are_exact(tree: GraphTree) -> None:
    zeros = np.zeros(1000, np.float32)
    one = zeros.copy()
    one[3] = 1
    tree.add("a", zeros, kind="ReLU")
    tree.add("b", one, kind="ReLU")
    tree.add("t", np.ones(1000, np.float32), kind="Tanh")
    half = np.ones(1000, np.float32)
    half[7] = .5
    tree.add("u", half, kind="Tanh")
    tree.add("v", np.full(10, np.float32(0.99999994)), kind="Tanh")
    tree.add("w", np.full(10, np.float32(0.99999994)), kind="Sigmoid")
    done = plumb_watch(tree.root, "--recommended", "--json", "--all-rows")
    rows = {(row["rule"], row["name"]): row for row in json.loads(done.stdout)["rows"]}
    assert rows["relu_dead", "a"]["verdict"] == "hit"
    assert rows["relu_dead", "b"]["verdict"] == "no_hit"
    assert rows["relu_dead", "b"]["checks"][0]["actual"] == 99.9
    assert rows["tanh_saturated", "t"]["verdict"] == "hit"
    assert rows["tanh_saturated", "u"]["checks"][0]["actual"] == pytest.approx(.1)
    assert rows["tanh_saturated", "u"]["verdict"] == "no_hit"
    assert rows["tanh_saturated", "v"]["checks"][0]["actual"] == 100
    assert rows["sigmoid_saturated", "w"]["checks"][0]["actual"] == 0


def test_types_and_shapes(tree: GraphTree) -> None:
    tree.add("b", np.array([False, True, True, True]))
    tree.add("s", np.float32(-2))
    tree.add("w", np.array([2**53 + 1, 0], np.int64))
    tree.add("e", np.zeros((0, 3), np.float32))
    tree.add("z", np.array([3 + 4j, 0], np.complex64))
    rows = {(row["rule"], row["name"]): row for row in rows_of(
        tree.root, "TL(abs_mean_gt=0.7)", "max > 9007199254740992", "count == 0", "TO")}
    assert rows["tensor_too_large", "b"]["checks"][0]["actual"] == .75
    assert rows["tensor_too_large", "s"]["checks"][0]["actual"] == 2
    assert rows["max > 9007199254740992", "w"]["verdict"] == "hit"
    assert rows["tensor_too_large", "e"]["reason"] == "empty"
    assert rows["tensor_overflow", "e"]["reason"] == "empty"
    assert rows["count == 0", "e"]["verdict"] == "hit"
    assert rows["tensor_too_large", "z"]["checks"][0]["actual"] == 2.5


def test_names_and_their_order(tree: GraphTree) -> None:
    tree.add("late", [1.0], time=100)
    tree.add("early", [1.0], time=99)
    tree.add("twice", [1.0], time=101)
    tree.add("twice", [5.0], time=102)
    tree.add("A-op1", [7.0], time=103)
    tree.add("A-op1", [8.0], time=104)
    rows = rows_of(tree.root, "max > 0")
    assert [row["name"] for row in rows] == ["early", "late", "twice", "A-op1"]
    assert [row["checks"][0]["actual"] for row in rows] == [1, 1, 5, 8]
    tree.order(["Default/net1/A-op1", "Default/net2/A-op1"])
    two = [(row["name"], row["checks"][0]["actual"]) for row in rows_of(tree.root, "max > 6")
           if row["name"].endswith("A-op1")]
    assert sorted(two) == [("Default/net1/A-op1", 7), ("Default/net2/A-op1", 8)]


def test_statistics_decide_only_what_they_can(tmp_path: pathlib.Path) -> None:
    known = {"Max Value": 2, "Min Value": -3, "Avg Value": -.5, "L2Norm Value": 3.74166}
    statistics_table(tmp_path, {"a": {"shape": "(4)", **known},
                                "b": {"shape": "(4)", **known, "Max Value": "1.23457e+06"}})
    rows = {(row["rule"], row["name"]): (row["verdict"], row["reason"]) for row in rows_of(
        tmp_path, "abs_mean > 1.1", "abs_mean > 1.9", "abs_mean > 1.5", "max > 1234567")}
    assert rows["abs_mean > 1.1", "a"] == ("hit", "")
    assert rows["abs_mean > 1.9", "a"] == ("no_hit", "")
    assert rows["abs_mean > 1.5", "a"] == ("not_evaluated", "statistics_only")
    assert rows["max > 1234567", "b"] == ("not_evaluated", "statistics_only")


RULES = ["abs_mean > 0.7", "mean < 0.05", "sd > 1", "l2norm < 4", "max_min > 3",
         "TZ(zero_percentage_ge=20)", "range_percentage[-1, 1] > 60", "min < -2",
         "WNC(rtol=0.01, atol=0)", "WCS(abs_mean_update_ratio_lt=0.02)", "prev(max) > 1"]


def truth_of(rule: int, x: Any, p: Any) -> bool:
    """What float64 says."""
    size = np.abs(x)
    answer = [size.mean() > .7, x.mean() < .05, x.std() > 1, np.sqrt((x * x).sum()) < 4,
              x.max() - x.min() > 3, (x == 0).mean() >= .2,
              ((x >= -1) & (x <= 1)).mean() > .6, x.min() < -2,
              (np.abs(x - p) <= .01 * np.abs(p)).all(),
              np.abs(x - p).mean() / (np.abs(p).mean() + 1e-9) < .02, p.max() > 1][rule]
    return bool(answer)


def test_statistics_never_contradict_the_elements(tmp_path: pathlib.Path) -> None:
    random = np.random.default_rng(5)
    tables: list[dict[str, Any]] = [{}, {}]
    tree = GraphTree(tmp_path / "tensors")
    pairs: dict[str, list[Any]] = {}
    for i in range(300):
        size = int(random.integers(1, 9))
        before = random.normal(size=size) * random.choice([.1, 1, 3])
        before *= random.random(size) > random.choice([0, .3])
        factor = 1 + random.choice([0, .004, .05]) * random.normal(size=size)
        name = f"Default_net_fc{i}_weight"
        pairs[name] = [before.astype(np.float32), (before * factor).astype(np.float32)]
        for step, values in enumerate(pairs[name]):
            tree.add(name, values, step, kind="Parameter")
            wide = values.astype(np.float64)
            tables[step][name] = {"shape": f"({size})", "Max Value": f"{wide.max():g}",
                                  "Min Value": f"{wide.min():g}", "Avg Value": f"{wide.mean():g}",
                                  "L2Norm Value": f"{np.sqrt((wide * wide).sum()):g}"}
    for step, table in enumerate(tables):
        statistics_table(tmp_path / "statistics", table, step)
        path = next((tmp_path / "statistics").glob(f"rank_0/net/0/{step}/statistic.csv"))
        path.write_text(path.read_text().replace("Conv2D,", "Parameter,"))
    decided = 0
    for root in ("tensors", "statistics"):
        for row in rows_of(tmp_path / root, *RULES, options=("--steps", "1")):
            before, now = (value.astype(np.float64) for value in pairs[row["name"]])
            names = ["weight_not_changed", "weight_change_too_small"]
            rule = RULES.index(row["rule"]) if row["rule"] in RULES else (
                5 if row["rule"] == "tensor_all_zero" else 8 + names.index(row["rule"]))
            if row["verdict"] != "not_evaluated":
                decided += 1
                assert (row["verdict"] == "hit") == truth_of(rule, now, before), (root, row)
            else:
                assert root == "statistics" and row["reason"] == "statistics_only", row
    assert decided > 300 * len(RULES) * 1.5


def test_operators_that_a_device_told_of(tree: GraphTree) -> None:
    tree.add("fine", [1.0])
    path = tree.add("bad", [1.0])
    path.rename(path.with_name(path.name.replace(".0.0.", ".3.5.")))
    assert {row["reason"] for row in rows_of(tree.root, "OO")} == {"missing"}
    (path.parent / "Opdebug.Node_OpDebug.3.5.1600000000000009.output.0.json").write_text("{}")
    assert {row["name"]: row["verdict"] for row in rows_of(tree.root, "OO")} == {
        "fine": "no_hit", "bad": "hit"}


def test_only_weights_that_are_trained_should_change(tree: GraphTree) -> None:
    for step in range(2):
        for name in ("fc1.weight", "fc2.weight", "moments.fc1.weight"):
            tree.add(name, np.ones(3, np.float32), step, kind="Parameter")
    done = plumb_watch(tree.root, "--recommended", "--json", "--all-rows", "--steps", "1")
    rows = json.loads(done.stdout)["rows"]
    assert [(row["name"], row["verdict"], row["severity"]) for row in rows
            if row["rule"] == "weight_not_changed"] == [("fc1.weight", "hit", "warning")]


def test_large_and_damaged_files(tree: GraphTree) -> None:
    random = np.random.default_rng(1)
    values = random.normal(size=(2, 1024, 1024)).astype(np.float32)
    tree.add("fc.weight", values[0], 0, kind="Parameter")
    tree.add("fc.weight", np.asfortranarray(values[1]), 1, kind="Parameter")
    cut = tree.add("cut", values[0], 1)
    cut.write_bytes(cut.read_bytes()[:5000])
    rules = ["abs_mean > 0.5", "WCL", "range_percentage[-1, 1] > 1"]
    one = rows_of(tree.root, *rules, options=("--memory", "2M", "-j", "1"))
    assert one == rows_of(tree.root, *rules, options=("-j", "8"))
    wide = values.astype(np.float64)
    found = {(row["rule"], row["name"], row["step"]): row for row in one}
    actual = {rule: found[rule, "fc.weight", 1]["checks"][0]["actual"]
              for rule in ("abs_mean > 0.5", "weight_change_too_large",
                           "range_percentage[-1, 1] > 1")}
    assert list(actual.values()) == pytest.approx(
        [np.abs(wide[1]).mean(), np.abs(wide[1] - wide[0]).mean() / (
            np.abs(wide[0]).mean() + 1e-9),
         100 * (np.abs(wide[1]) <= 1).mean()], rel=1e-9)
    assert found["abs_mean > 0.5", "cut", 1]["reason"] == "unreadable"


def test_gates_and_result_files(tree: GraphTree, tmp_path: pathlib.Path) -> None:
    tree.add("a", [5.0], kind="ReLU")
    tree.add("n", [np.nan])
    out = [tmp_path / f"w.{end}" for end in
           ("csv", "xlsx", "json", "jsonl", "sarif", "xml", "html")]
    words = [word for path in out for word in ("-o", path)]
    done = plumb_watch(tree.root, "--when", "TL(max_gt=4)", "--when", "WNC", *words, "--fail-on",
                       "hit")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(
        "first hit: tensor_too_large at step 0 rank 0 a output 0 (max 5 > 4)\n")
    assert "weight_not_changed: selected nothing" in done.stdout
    suites = ET.parse(out[5]).getroot().findall("testsuite")
    assert [(s.get("name"), s.get("tests"), s.get("failures"), s.get("skipped")) for s in suites
            ] == [("tensor_too_large", "1", "1", "0"), ("weight_not_changed", "1", "0", "1")]
    [result] = json.loads(out[4].read_text())["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("tensor_too_large", "error")
    assert "max_gt,4,5,hit" in out[0].read_text()
    assert len(json.loads(out[2].read_text())["rows"]) == len(
        out[3].read_text().splitlines()) - 1 == 2
    assert all(path.stat().st_size > 0 for path in out)
    bad = plumb_watch(tree.root, "--when", "gradient_vanish(abs_mean_lt=1)")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "did you mean gradient_vanishing?" in bad.stderr
    assert plumb_watch(tree.root, "--when", "TO", "-o", "w.txt").returncode == 2
    assert plumb_watch(tree.root / "none", "--when", "TO").returncode == 3



def test_scripts_of_the_debugger_run(tree: GraphTree) -> None:
    for rank in (0, 1):
        for it in range(3):
            tree.add("conv", np.array([1, -2, 3, it], np.float32), it, rank)
            tree.add("relu", np.array([1, 0, 3, it], np.float32), it, rank, kind="ReLU")
            gradient = np.full(4, np.nan if it == 2 else 1e-10, np.float32)
            tree.add("Default_gradients_conv", gradient, it, rank, kind="Conv2DBackprop")
            tree.add("fc.weight", np.array([1, 1, 1, 1 + it / 1000], np.float32), it, rank,
                     kind="Parameter")
    analyzer = watch.DumpAnalyzer(str(tree.root))
    assert (analyzer.get_ranks(), analyzer.get_iterations()) == ([0, 1], [0, 1, 2])
    three = analyzer.select_tensors("conv|relu", use_regex=True)
    weight = analyzer.select_tensors("weight", case_sensitive=False)
    assert (len(three), len(weight)) == (18, 6)
    found = analyzer.check_watchpoints([
        watch.Watchpoint(three, watch.TensorTooLargeCondition(abs_mean_gt=.1, max_gt=2.5)),
        watch.Watchpoint(three, watch.TensorOverflowCondition()),
        watch.Watchpoint(weight, watch.TensorChangeBelowThresholdCondition(1e-3))])
    kinds = [(hit.condition.condition_id, hit.error_code) for hit in found]
    assert len(found) == 22
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    assert counts == {(15, 0): 12, (15, 1): 2, (13, 0): 2, (19, 0): 4, (19, 4): 2}
    ratios = {hit.tensor.iteration: hit.get_hit_detail()["abs_mean_update_ratio_lt"]["actual_value"]
              for hit in found if hit.condition.condition_id == 19 and hit.error_code == 0}
    assert ratios == pytest.approx({1: 0.00025001168, 2: 0.00024991940}, rel=1e-6)
    assert [hit.error_msg for hit in found if hit.error_code == 4] == [["no_prev_tensor"]] * 2
    vanishing = analyzer.check_watchpoints([watch.Watchpoint(
        analyzer.select_tensors("gradients"), watch.TensorTooSmallCondition(abs_mean_lt=1e-9))])
    assert sorted(hit.error_code for hit in vanishing) == [0, 0, 0, 0, 1, 1]
    assert three[0].value().dtype == np.float32
    with pytest.raises(ValueError, match="was not recorded"):
        analyzer.select_tensors("conv", iterations=[7])


TRAINING = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(0)
debugger = PrecisionDebugger(config_path=sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
model[2].weight.requires_grad_(False)
for step in range(3):
    debugger.start(model)
    x = torch.randn(4, 8) * (float("inf") if step == 2 else 1)
    model(x).square().mean().backward()
    with torch.no_grad():
        for p in model.parameters():
            if p.grad is not None:
                p -= .1 * p.grad
    debugger.stop()
    debugger.step()
"""


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_recorded_calls(tmp_path: pathlib.Path, task: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    run("import runpy, sys, torch\nrunpy.run_path(sys.argv[2])",
        config(tmp_path, task=task, level="mix"), script)
    done = plumb_watch(tmp_path / "out", "--when", "TO", "--when", "WNC", "--when",
                       "gradient_vanishing(abs_mean_lt=1e-30)", "--first", "--io", "both",
                       "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    rules = {rule["name"]: rule for rule in result["rules"]}
    # The frozen weight stays; what it is compared with is the step before.
    frozen = [row for row in result["rows"] if row["rule"] == "weight_not_changed"
              and row["verdict"] == "hit"]
    assert rules["gradient_vanishing"]["hit"] == 0 < rules["gradient_vanishing"]["no_hit"]
    if task == "tensor":
        assert {(row["slot"], row["prev_step"]) for row in frozen} == {("weight", 0)}
        assert "Linear" in frozen[0]["name"]
        assert result["stopped_at_first_hit"] is True
    overflow = json.loads(plumb_watch(tmp_path / "out", "--when", "TO", "--json").stdout)
    assert overflow["first_hit"]["step"] == 2
    assert "train.py, line 10" in overflow["first_hit"]["source_line"]
    code = json.loads(plumb_watch(tmp_path / "out", "--when", "TO", "--code", "nowhere.py",
                                  "--json").stdout)
    assert code["answer"] == "nothing watched: the rules selected nothing"


def test_monitor_files_and_checkpoints(tmp_path: pathlib.Path) -> None:
    rank = tmp_path / "out" / "Dec03_21-34-40-rank0-3f9c1a2b"
    rank.mkdir(parents=True)
    (rank / "grad_reduced_0-9.csv").write_text(
        "vpp_stage,name,step,norm,min,max,mean,nans\n"
        "0,fc.weight,0,1.234567,-1.1,1.0,0.01,0\n0,fc.weight,1,0.0,0.0,0.0,0.0,0\n"
        "0,fc.weight,2,nan,nan,nan,nan,3\n0,fc.we")
    found = answers(tmp_path / "out", "gradient_vanishing(abs_mean_lt=1e-9)",
                    "gradient_vanishing(abs_mean_lt=1e-3)", "TO")
    # Six decimals do not tell 0 from 1e-8.
    assert found["gradient_vanishing", 1] == ("not_evaluated", "statistics_only")
    assert found["gradient_vanishing-2", 1] == ("hit", "")
    assert found["tensor_overflow", 2] == ("hit", "")
    assert "ends within a row" in plumb_watch(tmp_path / "out", "--when", "TO").stderr
    for step, values in ((100, [1, 2]), (200, [1, 2.5]), (300, [1, 2.5])):
        (tmp_path / "ckpt" / f"step{step}").mkdir(parents=True)
        np.save(tmp_path / "ckpt" / f"step{step}" / "w.npy", np.array(values, np.float32))
    rows = rows_of(tmp_path / "ckpt", "WNC", "WCL(abs_mean_update_ratio_gt=0.1)")
    verdicts = {(row["rule"], row["step"]): row["verdict"] for row in rows}
    assert verdicts == {("weight_not_changed", 100): "not_evaluated",
                        ("weight_not_changed", 200): "no_hit",
                        ("weight_not_changed", 300): "hit",
                        ("weight_change_too_large", 100): "not_evaluated",
                        ("weight_change_too_large", 200): "hit",
                        ("weight_change_too_large", 300): "no_hit"}
    against = rows_of(tmp_path / "ckpt" / "step200", "WNC",
                      options=("--against", tmp_path / "ckpt" / "step300"))
    assert [row["verdict"] for row in against] == ["hit"]


def monitored(root: pathlib.Path, text: str, kind: str = "grad_reduced") -> pathlib.Path:
    """A directory of a monitor with one file."""
    rank = root / "Dec03_21-34-40-rank0-3f9c1a2b"
    rank.mkdir(parents=True, exist_ok=True)
    (rank / f"{kind}_0-9.csv").write_text("vpp_stage,name,step," + text)
    return root


@pytest.mark.parametrize("rows", [
    "norm\n0,w,0,1.5\n0,w,1,nan\n", "norm\n0,w,0,1.5\n0,w,1,inf\n",
    "norm,max\n0,w,0,1,1\n0,w,1,nan,nan\n", "min,mean\n0,w,0,1,1\n0,w,1,1,nan\n",
    "norm,zeros\n0,w,0,1,0\n0,w,1,nan,nan\n",
    "norm,id,shape\n0,w,0,1,nan,[2]\n0,w,1,nan,nan,[2]\n"])
def test_nan_in_a_monitors_statistic_is_a_hit(tmp_path: pathlib.Path, rows: str) -> None:
    found = answers(monitored(tmp_path, rows), "TO")
    assert found == {("tensor_overflow", 0): ("no_hit", ""), ("tensor_overflow", 1): ("hit", "")}


def test_nan_that_may_be_no_tensor_is_said(tmp_path: pathlib.Path) -> None:
    unclear = plumb_watch(monitored(tmp_path / "a", "norm\n0,w,0,nan\n0,v,0,1\n"), "--when", "TO")
    assert unclear.stdout.splitlines()[0] == (
        "no hit; 1 of 2 not evaluated (1 all NaN, or without a tensor)")
    assert "op nans tells" in unclear.stdout
    # Without elements the norm is 0 and the rest NaN.
    empty = plumb_watch(monitored(tmp_path / "b", "norm,min,zeros\n0,w,0,0,nan,nan\n"),
                        "--when", "TO")
    assert empty.stdout.splitlines()[0] == "no hit"


def test_a_bad_entry_is_in_the_first_line_and_the_status(tmp_path: pathlib.Path) -> None:
    root = monitored(tmp_path / "in", "norm\n0,w,0,1\n")
    commands = {"trend": (root, "-o", tmp_path / "t.html"),
                "data2db": ("--data", root, "-o", tmp_path / "db"),
                "csv2tensorboard": ("--data", root, "-o", tmp_path / "tb"),
                "anomaly_analyse": ("-d", root / "anomaly_detected"),
                "watch": (root, "--when", "TO", "--fail-on", "unchecked")}
    (root / "anomaly_detected" / "rank0").mkdir(parents=True)
    (root / "anomaly_detected" / "rank0" / "anomaly.json").write_text("{}")

    def run_all() -> dict[str, tuple[int, bool]]:
        found = {}
        for name, words in commands.items():
            done = subprocess.run([str(word) for word in (PLUMB, name, *words)], text=True,
                                  capture_output=True, check=False)
            says = "in what could be read" in done.stdout.split("\n", 1)[0]
            found[name] = (done.returncode, says)
        return found

    assert set(run_all().values()) == {(0, False)}
    (root / "Dec03_21-34-40-rank0-3f9c1a2b" / "actv_0-0.csv").symlink_to("nowhere")
    (root / "anomaly_detected" / "rank1").mkdir()
    (root / "anomaly_detected" / "rank1" / "anomaly.json").write_text("{")
    assert run_all() == {**dict.fromkeys(commands, (4, True)), "watch": (1, True)}


def test_what_was_never_recorded_is_refused(tmp_path: pathlib.Path) -> None:
    rows = "norm\n0,fc.weight,0,1\n0,fc.weight,1,1\n"
    root = monitored(tmp_path / "a", rows, "param")
    other = monitored(tmp_path / "b", rows.replace("fc", "conv"), "param")
    for words, text in (
            (("--steps", "99,7-"), "--steps: 99,7- was not recorded; recorded are steps 0 to 1"),
            (("--ranks", 3), "--ranks: 3 was not recorded; recorded are steps 0 to 1 of 1 rank"),
            (("--nodes", "nosuch"), "no tensor of such a name was recorded; there are fc.weight"),
            (("--against", other), "has no tensor of the same rank, step and name")):
        done = plumb_watch(root, "--recommended", *words)
        assert (done.returncode, done.stdout) == (3, "")
        assert text in done.stderr
    some = plumb_watch(root, "--when", "TO", "--steps", "1,5")
    assert (some.returncode, some.stdout.splitlines()[0]) == (0, "no hit")
    assert "--steps: 5 was not recorded" in some.stderr
    # Rules that do not look back are judged without the other run.
    unused = plumb_watch(root, "--when", "TO", "--against", other)
    assert unused.returncode == 0 and "no rule looks at earlier values" in unused.stderr
    monitored(tmp_path / "b", rows, "param")
    assert plumb_watch(root, "--recommended", "--against", other).returncode == 0


def test_why_a_rule_selected_nothing(tmp_path: pathlib.Path) -> None:
    root = monitored(tmp_path, "norm\n0,fc.weight,0,1\n0,fc.weight,1,1\n", "param")
    rules = tmp_path / "w.yaml"
    rules.write_text("version: 1\nrules:\n  - {name: w, when: WO, on: {nodes: nosuch}}\n")

    def line(*words: Any) -> str:
        out = plumb_watch(root, *words).stdout
        return next(one for one in out.splitlines() if "selected nothing;" in one)

    assert line("--rules", rules) == (
        '  w: selected nothing; nothing that was recorded is what its "on", --io and --code name')
    assert line("--when", "GE") == (
        "  gradient_exploding: selected nothing; no gradient was recorded")
    assert line("--when", "GE", "--steps", 1).endswith(
        "no gradient is among the tensors of --nodes, --steps and --ranks")
    assert line("--when", "WI", "--steps", 1).endswith("looks at the first recorded step alone")
