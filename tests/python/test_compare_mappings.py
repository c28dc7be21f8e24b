"""Names, layers and ranks that a mapping or a rule pairs, one warning rule, and many rows.

docs/design/acceptance.md says which idea each case shows (P16 to P21, P26). What upstream and
its MindSpore half do otherwise is said at each test; rules are those of decisions that repair them.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from compare_cases import Dump, X, each
from recording import PLUMB

STEM = re.compile(r"compare_result_(.*)_\d{14}")


def plumb(folder: Path, *words: Any, timeout: int = 60) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(PLUMB), *map(str, words)], cwd=folder, text=True,
                          capture_output=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr
    return done


def compared(folder: Path, target: Dump, golden: Dump, *words: Any) -> list[dict[str, str]]:
    """The rows of the csv."""
    target.write(folder / "target")
    golden.write(folder / "golden")
    plumb(folder, "compare", "target", "golden", "-o", "out", "--format", "csv", *words)
    [path] = (folder / "out").glob("compare_result_*.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def pairs_of(rows: list[dict[str, str]]) -> dict[str, str]:
    return {row["NPU Name"]: row["Bench Name"] for row in rows if row["NPU Name"] != "N/A"}


def mindspore_and_torch(build: Callable[[Dump, bool], None]) -> tuple[Dump, Dump]:
    target, golden = Dump(framework="mindspore"), Dump()
    build(target, True)
    build(golden, False)
    return target, golden


def test_one_value_off_is_enough_for_a_warning_in_both_frameworks(tmp_path: Path) -> None:
    """Only Max differs by more than half. MindSpore 1.2.2 wants all four: repaired, any is enough
    (decisions, "columns and rules")."""
    def leaf(highest: float) -> dict[str, Any]:
        return {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2], "Max": highest,
                "Min": 1.0, "Mean": 2.0, "Norm": 5.0, "requires_grad": False}

    for kind in ("mindspore", "pytorch"):
        target, golden = each(lambda dump, is_target: dump.forward(
            "Mint.add.0.forward", [], [leaf(9.0 if is_target else 4.0)]), framework=kind)
        [row] = compared(tmp_path / kind, target, golden)
        assert row["Result"] == "Warning" and "[check]" in row["Err_message"]


def test_built_in_and_listed_apis_are_paired(tmp_path: Path) -> None:
    def build(dump: Dump, is_target: bool) -> None:
        names = ("Functional.dense", "Mint.add", "MintFunctional.relu", "Functional.conv2d")
        if not is_target:
            names = ("Functional.linear", "Torch.add", "Functional.relu", "Functional.conv2d")
        values = [torch.tensor([float(k), 1.0]) for k in range(11)]
        for name in names:
            arguments = values if name.endswith("conv2d") else values[:2]
            if name.endswith("conv2d") and not is_target:
                arguments = [values[0], values[2], values[1], *values[3:]]
            dump.forward(f"{name}.0.forward", arguments, [X])

    (tmp_path / "api.yaml").write_text(
        "- ms_api: Functional.conv2d\n  pt_api: Functional.conv2d\n"
        f"  ms_args: [0, 1, 2, {', '.join(map(str, range(3, 11)))}]\n"
        f"  pt_args: [0, 2, 1, {', '.join(map(str, range(3, 11)))}]\n"
        "  ms_output: [0]\n  pt_output: [0]\n")
    rows = compared(tmp_path, *mindspore_and_torch(build), "-am", tmp_path / "api.yaml")
    found = pairs_of(rows)
    assert len(found) == 3 * 3 + 12
    for ours, theirs in (("Functional.dense", "Functional.linear"), ("Mint.add", "Torch.add"),
                         ("MintFunctional.relu", "Functional.relu")):
        assert found[f"{ours}.0.forward.input.0"] == f"{theirs}.0.forward.input.0"
    conv = "Functional.conv2d.0.forward.input"
    assert [found[f"{conv}.{k}"] for k in (1, 2, 10)] == [f"{conv}.{k}" for k in (2, 1, 10)]
    # Values are those of their counterparts, so a wrong pair would show.
    assert {float(row["Max diff"]) for row in rows} == {0.0}


def test_modules_are_paired_exactly_and_by_part(tmp_path: Path) -> None:
    def build(dump: Dump, is_target: bool) -> None:
        kind = "Cell" if is_target else "Module"
        second = "Dense" if is_target else "Linear"
        third = "RowParallelLinear" if is_target else "TERowParallelLinear"
        dump.forward(f"{kind}.fc2.{second}.forward.0", [X], [X])
        dump.forward(f"{kind}.net.fc3.{third}.forward.0", [X], [X])
        dump.backward(f"{kind}.fc2.{second}.backward.0", [X], [X])

    (tmp_path / "cell.yaml").write_text(
        "fc2.Dense: fc2.Linear\nRowParallelLinear: TERowParallelLinear\n")
    found = pairs_of(compared(tmp_path, *mindspore_and_torch(build), "-cm", "cell.yaml"))
    assert found["Cell.fc2.Dense.forward.0.input.0"] == "Module.fc2.Linear.forward.0.input.0"
    assert found["Cell.fc2.Dense.backward.0.output.0"] == "Module.fc2.Linear.backward.0.output.0"
    assert found["Cell.net.fc3.RowParallelLinear.forward.0.output.0"] == (
        "Module.net.fc3.TERowParallelLinear.forward.0.output.0")


def test_layers_of_a_pipeline_stage_are_paired(tmp_path: Path) -> None:
    """Layers 4 to 7 against 0 to 3, and the data mapping that is written. The mapping of a
    whole model is compared with upstream's own function in tests/compat/test_layer_mapping.py."""
    def build(dump: Dump, is_target: bool) -> None:
        kind, first = ("Cell", 4) if is_target else ("Module", 0)
        root = f"{kind}.net.ParallelTransformer.forward.0"
        for layer in range(4):
            dump.forward(f"{kind}.net.layers.{first + layer}.Layer.forward.0", [X * layer],
                         [X * layer])
        dump.forward(root, [X], [X])

    found = pairs_of(compared(tmp_path, *mindspore_and_torch(build), "-lm"))
    for layer in range(4):
        for part in ("input", "output"):
            assert found[f"Cell.net.layers.{4 + layer}.Layer.forward.0.{part}.0"] == (
                f"Module.net.layers.{layer}.Layer.forward.0.{part}.0")
    [mapping] = (tmp_path / "out").glob("data_mapping_*.yaml")
    assert len(mapping.read_text().splitlines()) == len(found) == 10


def test_twelve_ranks_are_paired_by_number(tmp_path: Path) -> None:
    """Upstream sorts rank10 before rank2 and pairs by position: repaired, by number."""
    for rank in range(12):
        for side in ("target", "golden"):
            dump = Dump()
            dump.forward("Torch.f.0.forward", [X], [X * (rank + 1 + (side == "target"))])
            dump.write(tmp_path / side / f"rank{rank}")
    (tmp_path / "compare.json").write_text(json.dumps({"npu_path": "target",
                                                       "bench_path": "golden"}))
    plumb(tmp_path, "-f", "pytorch", "compare", "-i", "compare.json", "-o", "out")
    books = [STEM.match(path.name) for path in (tmp_path / "out").glob("*.xlsx")]
    assert sorted(book[1] for book in books if book) == sorted(
        f"rank{rank}-rank{rank}" for rank in range(12))
    [summary] = (tmp_path / "out").glob("compare_ranks_*.json")
    ranks = [one["rank"] for one in json.loads(summary.read_text())["ranks"]]
    assert ranks == list(range(12))
    for rank in (0, 2, 10, 11):  # each workbook is that of its own pair
        [path] = (tmp_path / "out").glob(f"compare_result_rank{rank}-rank{rank}_*.csv")
        assert f",{4 * (rank + 2)}.0," in path.read_text() or f",{4 * (rank + 2)}," in (
            path.read_text())


def test_every_value_of_a_large_dump_is_a_row(tmp_path: Path) -> None:
    """40,000 values of statistics: every one a row, in bounded memory and time. Two million were
    measured by hand (docs/design/acceptance.md); that sheets split is `Xlsx.FullSheetContinues`."""
    leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": 1.5, "Min": -1.5,
            "Mean": 0.25, "Norm": 2.5, "requires_grad": False}
    target, golden = each(lambda dump, _: dump.data.update(
        {f"Torch.add.{k}.forward": {"input_args": [leaf, leaf], "input_kwargs": {},
                                    "output": [leaf, leaf]} for k in range(10_000)}))
    target.write(tmp_path / "target")
    golden.write(tmp_path / "golden")
    began = time.monotonic()
    plumb(tmp_path, "compare", "target", "golden", "-o", "out", "--format", "csv,sqlite")
    assert time.monotonic() - began < 30  # upstream: minutes; here tenths of a second
    [path] = (tmp_path / "out").glob("*.csv")
    with path.open(newline="") as file:
        names = [row[0] for row in csv.reader(file)]
    assert len(names) == 40_001 and len(set(names)) == 40_001
