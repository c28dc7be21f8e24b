"""Statistics of tensors and their summary in plumbline.watch, against NumPy."""

from __future__ import annotations

import csv
import pathlib
from typing import Any

import numpy as np
import pytest
from watch_dumps import GraphTree, statistics_table

from plumbline import watch

COUNTS = ["Count", "Negative Zero Count", "Positive Zero Count", "NaN Count", "Negative Inf Count",
          "Positive Inf Count", "Zero Count"]


def table(directory: pathlib.Path, columns: list[str], *rows: list[Any]) -> None:
    """A statistic.csv; lines end with a comma, as those of today do."""
    directory.mkdir(parents=True, exist_ok=True)
    header = ["Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size",
              "Data Type", "Shape", *columns]
    lines = [",".join(header), *(",".join(map(str, row)) + "," for row in rows)]
    (directory / "statistic.csv").write_text("\n".join(lines) + "\n")


def summary(analyzer: watch.DumpAnalyzer, directory: pathlib.Path,
            **options: Any) -> dict[str, dict[str, str]]:
    path = analyzer.summary_statistics(analyzer.select_tensor_statistics(), out_path=str(directory),
                                       **options)
    assert path == str(directory / "statistics_summary.csv")
    with open(path, newline="") as file:
        return {row["tensor_name"]: row for row in csv.DictReader(file)}


def test_rows_are_those_of_the_files(tmp_path: pathlib.Path) -> None:
    for step in (0, 2):
        statistics_table(tmp_path, {"a": {"shape": "(2,3)", "Max Value": 1 + step},
                                    "b": {"shape": "()", "Max Value": "inf"}}, step)
    analyzer = watch.DumpAnalyzer(str(tmp_path))
    found = analyzer.select_tensor_statistics()
    assert {rank: list(steps) for rank, steps in found.items()} == {0: [0, 2]}
    [row] = found[0][2]["a:output:0"]
    assert row["Max Value"] == "3" and row["Min Value"] == "null" and row["Shape"] == "(2,3)"
    assert list(row)[:10] == ["Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO",
                              "Slot", "Data Size", "Data Type", "Shape"]
    one = analyzer.select_tensor_statistics(iterations=2, ranks=0)
    assert one == {0: {2: found[0][2]}} == analyzer.select_tensor_statistics([2], [0])
    with pytest.raises(ValueError, match=r"iterations: 1 was not recorded .*\[0, 2\]"):
        analyzer.select_tensor_statistics(iterations=[0, 1])
    with pytest.raises(ValueError, match=r"ranks: 3 was not recorded .*\[0\]"):
        analyzer.select_tensor_statistics(ranks=3)
    with pytest.raises(ValueError, match="ranks: 3 was not recorded"):
        analyzer.select_tensors("a", ranks=3)
    assert len(analyzer.select_tensors("a", iterations=2, ranks=0, slots=0)) == 1


def test_rows_of_recorded_elements(tmp_path: pathlib.Path) -> None:
    tree, random = GraphTree(tmp_path / "dump"), np.random.default_rng(1)
    odd = np.array([1, -2, 0, -0.0, np.nan, np.inf, -np.inf], np.float32)
    values = {"odd": odd, "wide": random.normal(size=(3, 4)), "empty": np.zeros((0, 2)),
              "whole": np.array([2**53 + 1, -7]), "half": np.array(1.5, np.float16),
              "complex": np.array([3 + 4j])}
    for rank in (0, 1):
        for name, value in values.items():
            tree.add(name, value, iteration=4, rank=rank)
    cut = tree.add("cut", np.ones(999), iteration=4)
    cut.write_bytes(cut.read_bytes()[:500])
    with pytest.warns(UserWarning, match="node_name: cut, .*is left out"):
        found = watch.DumpAnalyzer(str(tree.root)).select_tensor_statistics()
    assert set(found) == {0, 1} and set(found[1][4]) == {f"{name}:output:0" for name in values}
    for name, value in values.items():
        [row] = found[0][4][f"{name}:output:0"]
        wide = np.abs(value) if name == "complex" else value
        counts = [wide.size, (wide < 0).sum(), (wide > 0).sum(), np.isnan(wide).sum(),
                  np.isneginf(wide).sum(), np.isposinf(wide).sum(), (wide == 0).sum()]
        assert [int(row[key]) for key in COUNTS] == counts, name
        extremes = [wide.max(), wide.min()] if wide.size else [np.nan] * 2
        read = int if name == "whole" else float
        assert np.array_equal([read(row["Max Value"]), read(row["Min Value"])], extremes,
                              equal_nan=True), name
        mean = wide.astype(np.float64).mean() if wide.size else np.nan
        assert float(row["Avg Value"]) == pytest.approx(mean, nan_ok=True), name
        assert row["Data Type"] == str(value.dtype) and int(row["Data Size"]) == value.nbytes
        assert row["Shape"].strip("(),") == ",".join(map(str, value.shape))


def test_a_summary_over_ranks_and_iterations(tmp_path: pathlib.Path) -> None:
    steps = [[1.0, -2], [np.inf, 0], [np.nan, 1], [70000, 0], [0, -65500.5], [65500, 0]]
    tree = GraphTree(tmp_path / "dump")
    for rank in (0, 1):
        for step, values in enumerate(steps):
            tree.add("a", np.array(values), step, rank, kind="MatMul")
    tree.add("b", np.ones(2), 1)
    analyzer = watch.DumpAnalyzer(str(tree.root))
    found = summary(analyzer, tmp_path / "new" / "place")
    assert list(found["a:output:0"].values()) == [
        "MatMul", "a", "a:output:0", "2", "2", "6", "12", "4", "12"]
    assert list(found["b:output:0"].values())[3:] == ["0", "0", "0", "1", "1", "1"]
    assert summary(analyzer, tmp_path, overflow_value=1e6)["a:output:0"]["out_of_range_number"] == \
        "2"  # the infinities


def test_what_tables_do_not_say_is_not_well(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "dump" / "rank_0" / "net" / "0"
    row = ["ReLU", "a", 0, 0, 16000000, "output", 0, 8, "float32", '"(2)"']
    # Extremes alone; the counts of releases that leave NaN and Inf out of the extremes; neither.
    table(place / "0", ["Max Value", "Min Value"], [*row, "nan", "nan"])
    table(place / "1", ["Max Value", "Min Value"], [*row, "1", "-inf"])
    table(place / "2", ["Max Value", "Min Value", *COUNTS],
          [*row, "null", "null", 2, 0, 0, 1, 1, 0, 0])
    table(place / "3", ["L2Norm Value"], [*row, "inf"])
    table(place / "4", ["Max Value", "Min Value"], [*row, "2", "-3"])
    (tmp_path / "dump" / "rank_0" / ".dump_metadata").mkdir()
    with pytest.warns(UserWarning, match="of 1 of 1 tensors, as a:output:0, no largest"):
        found = summary(watch.DumpAnalyzer(str(tmp_path / "dump")), tmp_path)
    assert list(found["a:output:0"].values())[3:] == ["2", "2", "1", "5", "1", "5"]
    broken = place / "4" / "statistic.csv"
    analyzer = watch.DumpAnalyzer(str(tmp_path / "dump"))
    broken.write_text(broken.read_text().replace("2,-3,", ""))
    with pytest.warns(UserWarning, match=r"line 2 is left out: it has 11 fields \(expected 12"):
        assert analyzer.select_tensor_statistics([3, 4])[0][4] == {}


def test_refused(tmp_path: pathlib.Path) -> None:
    tree = GraphTree(tmp_path / "dump")
    tree.add("a", np.ones(2))
    analyzer = watch.DumpAnalyzer(str(tree.root))
    for value in (-1, True, "65500", float("nan")):
        with pytest.raises(ValueError, match="overflow_value is"):
            analyzer.summary_statistics({}, value)
    with pytest.raises(TypeError, match=r"expected what select_tensor_statistics\(\) returned"):
        analyzer.summary_statistics([1])  # type: ignore[arg-type]
    place = tmp_path / "monitor" / "Dec03_21-34-40-rank0-3f9c1a2b"
    place.mkdir(parents=True)
    (place / "param_0-0.csv").write_text("vpp_stage,name,step,norm\n0,w,0,1.0\n")
    with pytest.raises(ValueError, match=r"holds no statistic\.csv and no elements"):
        watch.DumpAnalyzer(str(tmp_path / "monitor")).select_tensor_statistics()


def test_conditions_and_hits_have_the_names_of_scripts(tmp_path: pathlib.Path) -> None:
    condition = watch.TensorTooLargeCondition(abs_mean_gt=0, max_gt=True)
    assert (condition.name, condition.condition_id) == ("TensorTooLarge", 15)
    assert condition.param_dict == {"abs_mean_gt": 0.0, "max_gt": 1.0}
    assert condition.param_names == ["abs_mean_gt", "max_gt", "min_gt", "mean_gt"]
    assert watch.TensorUnchangedCondition().name == "TensorUnchanged"
    assert watch.TensorUnchangedCondition().param_dict["equal_nan"] is False
    tree = GraphTree(tmp_path / "dump")
    tree.add("a", np.array([1.0, 3]))
    analyzer = watch.DumpAnalyzer(str(tree.root))
    [hit] = analyzer.check_watchpoints([watch.Watchpoint(analyzer.select_tensors("a"), condition)])
    assert hit.get_threshold() is condition and str(condition) == str(condition.param_dict)
    detail = hit.get_hit_detail()
    assert (detail.name, detail.condition_id) == ("TensorTooLarge", 15)
    assert detail.param_dict == {"abs_mean_gt": 2.0, "max_gt": 3.0}
    assert str(detail) == "abs_mean_gt=0.0: 2.0, max_gt=1.0: 3.0"
