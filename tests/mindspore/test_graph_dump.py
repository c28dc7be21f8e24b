"""Static graphs on CPU: one config.json gives complete trees in every mode."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore: run it in that environment", allow_module_level=True)

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLUMB = os.environ.get("PLUMB") or str(ROOT / ".venv/bin/plumb")
STEPS = 2


def train(root: pathlib.Path, task: str, factor: float = 1.0, *words: str,
          **section: object) -> subprocess.CompletedProcess[str]:
    """Runs graph_training.py with a config.json of its own; the dump goes to `root`."""
    root.parent.mkdir(parents=True, exist_ok=True)
    config = root.with_suffix(".json")
    config.write_text(json.dumps({"task": task, "level": "L2", "dump_path": str(root),
                                  task: section}))
    config.chmod(0o640)
    return subprocess.run(
        [sys.executable, HERE / "graph_training.py", config, str(factor), str(STEPS), *words],
        text=True, capture_output=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    root = tmp_path_factory.mktemp("graphs")
    runs = {"tensor": ("tensor", 1.0, {}), "full": ("tensor", 1.0, {"saved_data": "full"}),
            "statistics": ("statistics", 1.0, {}), "fault": ("statistics", 1.5, {}),
            "tensor_fault": ("tensor", 1.5, {})}
    for name, (task, factor, section) in runs.items():
        done = train(root / name, task, factor, **section)
        assert done.returncode == 0, done.stderr
    return {name: root / name for name in runs}


def tensors(root: pathlib.Path, step: int) -> list[pathlib.Path]:
    return sorted((root / f"rank_0/Net/0/{step}").glob("*.npy"))


def rows(root: pathlib.Path, step: int) -> list[dict[str, str]]:
    with (root / f"rank_0/Net/0/{step}/statistic.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    assert all(line[-1] == "" and len(line) == len(header) + 1 for line in lines)
    return [dict(zip(header, line, strict=False)) for line in lines]


def plumb(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *map(str, words)], text=True, capture_output=True, timeout=120,
                          check=False)


def test_every_mode_is_complete(dumps: dict[str, pathlib.Path]) -> None:
    for step in range(STEPS):
        count = len(tensors(dumps["tensor"], step))
        assert count > 50
        assert not (dumps["tensor"] / f"rank_0/Net/0/{step}/statistic.csv").exists()
        assert len(tensors(dumps["full"], step)) == len(rows(dumps["full"], step)) == count
        assert not tensors(dumps["statistics"], step)
        assert len(rows(dumps["statistics"], step)) == count
    for root in dumps.values():
        assert (root / "rank_0/.dump_metadata/data_dump.json").is_file()
        assert (root / "rank_0/execution_order/ms_execution_order_graph_0.csv").is_file()
        assert plumb("dump-config", "check", root / "kernel_kbyk_dump.json", "--device", "cpu",
                     "--tree", root).returncode == 0


def test_rows_hold_what_numpy_computes(dumps: dict[str, pathlib.Path]) -> None:
    table = {(row["Op Name"], row["Timestamp"], row["IO"], row["Slot"]): row
             for row in rows(dumps["full"], 0)}
    for path in tensors(dumps["full"], 0):
        op_type, name, task, stream, time, io, slot, _, dtype, _ = path.name.split(".")
        row = table[name, time, io, slot]
        values = np.load(path)
        wide = values.astype(np.float64)
        assert row["Op Type"] == op_type and row["Data Type"] == dtype.lower()
        assert (row["Task ID"], row["Stream ID"]) == (task, stream)
        assert row["Shape"] == "(" + ",".join(map(str, values.shape)) + ")"
        assert int(row["Data Size"]) == values.nbytes
        expected = (wide.max(), wide.min(), wide.mean(), np.sqrt((wide * wide).sum()))
        columns = ("Max Value", "Min Value", "Avg Value", "L2Norm Value")
        for column, value in zip(columns, expected, strict=True):
            assert float(row[column]) == pytest.approx(value, rel=1e-5, abs=1e-12), path.name


def test_tensors_of_a_line_of_the_script(dumps: dict[str, pathlib.Path]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys\nfrom plumbline.graph_dumps import DumpParser\n"
         "found = DumpParser(sys.argv[1]).get_tensor_files('self.fc1(x)', iterations=[1])\n"
         "print(*found, sep='\\n')", dumps["tensor"]],
        text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    kernels = done.stdout.splitlines()
    assert kernels and any("MatMul" in kernel for kernel in kernels)
    assert not any("SGD" in kernel for kernel in kernels)


def test_a_fault_is_named(dumps: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    for golden, target in (("statistics", "fault"), ("tensor", "tensor_fault")):
        done = plumb("compare", dumps[target], dumps[golden], "--step", "0", "-o",
                     tmp_path / target, "--format", "csv")
        assert done.returncode == 0, done.stderr
        assert "first wrong call" in done.stdout and "Mul-op0.Mul.0.forward" in done.stdout
    same = plumb("compare", dumps["full"] / "rank_0/Net/0/0", dumps["full"] / "rank_0/Net/0/0",
                 "-o", tmp_path / "same", "--fail-on", "suspicious")
    assert same.returncode == 0 and "no wrong call" in same.stdout


def test_a_killed_training_loses_no_tensor(dumps: dict[str, pathlib.Path],
                                           tmp_path: pathlib.Path) -> None:
    root = tmp_path / "killed"
    assert train(root, "statistics", 1.0, "kill").returncode < 0
    done = plumb("dump-config", "finish", root, "--drop-tensors")
    assert done.returncode == 0, done.stderr
    for step in range(STEPS):
        assert not tensors(root, step)
        assert len(rows(root, step)) == len(rows(dumps["statistics"], step))
    again = plumb("dump-config", "finish", root, "--drop-tensors")
    assert again.stdout.startswith("0 new rows")


def test_marked_cells_and_primitives_alone(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "marked"
    done = train(root, "tensor", 1.0, "mark", "first=7")
    assert done.returncode == 0, done.stderr
    names = {path.name.split(".")[1] for path in root.rglob("rank_0/Net/0/*/*.npy")
             if not path.name.startswith("Parameter.")}
    assert any(name.startswith("Default_") and "_fc2-Dense_MatMul" in name for name in names)
    assert any(name.startswith("Gradients_") and "_fc2-Dense_" in name for name in names)
    assert any("_Grad_Pow_" in name for name in names)
    assert all("_fc2-Dense_" in name or "_Pow-op" in name or "_Grad_Pow_" in name
               for name in names), names
    assert sorted(path.name for path in (root / "rank_0/Net/0").glob("[0-9]*")) == ["7", "8"]


@pytest.mark.parametrize(("cell", "kernels", "features"), [("fc1", 2, 16), ("fc2", 3, 4)])
def test_gradients_of_a_marked_cell_are_all_there(tmp_path: pathlib.Path, cell: str, kernels: int,
                                                  features: int) -> None:
    """Two dense layers have equal primitives, and MindSpore named the gradients of both after the
    last one: those of the first were not dumped, and with the last came those of the first."""
    root = tmp_path / cell
    done = train(root, "tensor", 1.0, f"mark={cell}", data_mode=["output"])
    assert done.returncode == 0, done.stderr
    gradients = sorted((root / "rank_0/Net/0/0").glob("*.Gradients_*.output.0.*.npy"))
    # Of the weight, of the bias, and of the input unless that is the data.
    assert len(gradients) == kernels, [path.name for path in gradients]
    assert all(f"_{cell}-Dense_" in path.name for path in gradients)
    [bias] = [np.load(path) for path in gradients if path.name.startswith("BiasAddGrad.")]
    assert bias.shape == (features,)


def test_jit_level_o2_runs_kernels_one_by_one_here(dumps: dict[str, pathlib.Path],
                                                   tmp_path: pathlib.Path) -> None:
    """Without an Ascend device there is no engine for whole graphs. It was refused."""
    done = train(tmp_path / "o2", "statistics", 1.0, "O2")
    assert done.returncode == 0, done.stderr

    def norms(root: pathlib.Path, step: int) -> list[tuple[str, str]]:
        # Kernels that do not wait for each other run in any order.
        return sorted((row["Op Name"], row["L2Norm Value"]) for row in rows(root, step))

    for step in range(STEPS):
        assert norms(tmp_path / "o2", step) == norms(dumps["statistics"], step)


def test_wrong_settings_stop_before_the_training(tmp_path: pathlib.Path) -> None:
    done = train(tmp_path / "dump", "tensor", 1.0, data_mode=["input", "output"])
    assert done.returncode != 0 and "ValueError" in done.stderr
    assert "tensor.data_mode" in done.stderr
    assert not (tmp_path / "dump").exists()
    shutil.rmtree(tmp_path / "dump", ignore_errors=True)


def test_kernels_and_steps_are_selected(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "selected"
    done = train(root, "tensor", 1.0, list=["name-regex(Default/.*MatMul.*)"],
                 data_mode=["output"])
    assert done.returncode == 0, done.stderr
    names = [path.name for path in root.rglob("*.npy") if "Parameter." not in path.name]
    assert names and all(".output." in name and "MatMul" in name for name in names)
