"""`plumb compare --postprocess`: values against NumPy's float64, and what is said of them."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording import PLUMB

RNG = np.random.default_rng(5)
X, Y = "Torch.mul.0.forward.output.0", "Torch.npu_grouped_matmul.0.forward.output.0"


class Dump:
    """One recorded rank whose tensors are .npy files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data: dict[str, Any] = {}
        (directory / "dump_tensor_data").mkdir(parents=True)

    def tensor(self, name: str, x: np.ndarray) -> dict[str, Any]:
        np.save(self.directory / "dump_tensor_data" / f"{name}.npy", x)
        kind = "float32" if x.dtype.kind == "f" else str(x.dtype)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            values = {"Max": wide.max(), "Min": wide.min(), "Mean": wide.mean(),
                      "Norm": np.linalg.norm(wide)}
        return {"type": "torch.Tensor", "dtype": f"torch.{kind}", "shape": list(x.shape),
                **{key: float(value) for key, value in values.items()}, "requires_grad": False,
                "data_name": f"{name}.npy"}

    def call(self, name: str, x: np.ndarray, y: np.ndarray, **kwargs: Any) -> None:
        convert = {key: self.tensor(f"{name}.kwargs.{key}", value)
                   if isinstance(value, np.ndarray) else {"type": "int", "value": value}
                   for key, value in kwargs.items()}
        self.data[name] = {"input_args": [self.tensor(f"{name}.input.0", x)],
                           "input_kwargs": convert, "output": [self.tensor(f"{name}.output.0", y)]}

    def write(self) -> Path:
        (self.directory / "dump.json").write_text(json.dumps(
            {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
             "data": self.data}))
        return self.directory


def compare(target: Path, golden: Path, out: Path, *words: str | Path,
            status: int = 0) -> tuple[str, dict[str, dict[str, str]]]:
    done = subprocess.run([PLUMB, "compare", target, golden, "-o", out, "--schema", "newest",
                           "--format", "csv", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    tables = list(out.glob("*.csv"))
    if status or not tables:
        return done.stdout + done.stderr, {}
    with tables[0].open(newline="") as file:
        return done.stdout, {row["NPU Name"]: row for row in csv.DictReader(file)}


def expect_metrics(row: dict[str, str], a: np.ndarray, b: np.ndarray) -> None:
    """Errors of the row are those of a against b."""
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    worst = float(np.abs(a - b).max())
    assert float(row["MaxAbsErr"]) == pytest.approx(worst, rel=1e-5)
    assert float(row["EucDist"]) == pytest.approx(float(np.linalg.norm(a - b)), rel=1e-5)
    assert float(row["NPU max"]) == pytest.approx(float(a.max()), rel=1e-5)
    assert float(row["Bench l2norm"]) == pytest.approx(float(np.linalg.norm(b)), rel=1e-5)


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_products_are_numpys(tmp_path: Path) -> None:
    x = random(3, 4, 6)
    rotation = np.linalg.qr(RNG.standard_normal((6, 6)))[0].astype(np.float32)
    narrow, left = random(6, 2), random(5, 4)
    for name, matrix in (("r", rotation), ("n", narrow), ("l", left)):
        np.save(tmp_path / f"{name}.npy", matrix)
    sides = []
    for side, factor in (("target", 1.01), ("golden", 1.0)):
        dump = Dump(tmp_path / side)
        # The target is rotated, as quantised models are.
        y = (x * factor) @ rotation.T if side == "target" else x * np.float32(factor)
        dump.call("Torch.mul.0.forward", x, y.astype(np.float32))
        dump.call("Torch.add.0.forward", x, x * np.float32(factor))
        sides.append(dump.write())
    add = "Torch.add.0.forward.output.0"
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps({
        "right_matmul": {"target_tensor_map": {str(tmp_path / "r.npy"): [f"{X}.npy"],
                                               str(tmp_path / "n.npy"): [f"{add}.npy"]},
                         "golden_tensor_map": {str(tmp_path / "n.npy"): [f"{add}.npy"]}},
        "left_matmul": {f"{side}_tensor_map": {str(tmp_path / "l.npy"): [f"{add}.npy"]}
                        for side in ("target", "golden")}}))
    text, rows = compare(*sides, tmp_path / "out", "--postprocess", rules)
    rotated = np.load(tmp_path / "target" / "dump_tensor_data" / f"{X}.npy").astype(np.float64)
    expect_metrics(rows[X], rotated @ rotation, x)
    a = [np.load(tmp_path / side / "dump_tensor_data" / f"{add}.npy").astype(np.float64)
         for side in ("target", "golden")]
    expect_metrics(rows[add], left @ a[0] @ narrow, left @ a[1] @ narrow)
    assert rows[add]["NPU Tensor Shape"] == "[3, 5, 2]"
    assert f"target: is multiplied by {tmp_path / 'r.npy'} from the right" in rows[X]["Err_message"]
    assert rows[add]["Err_message"].count("is multiplied by") == 4
    assert "2 rows were compared after they were changed" in text
    # The spelling of the chapter: one mode for the whole file.
    rules.write_text(json.dumps({
        "mode": "right_matmul", "target_tensor_map": {str(tmp_path / "r.npy"): [f"{X}.npy"]}}))
    _, rows = compare(*sides, tmp_path / "old", "--postprocess", rules)
    expect_metrics(rows[X], rotated @ rotation, x)


def test_what_fails_is_said_and_stays(tmp_path: Path) -> None:
    x = random(4, 6)
    for side in ("target", "golden"):
        dump = Dump(tmp_path / side)
        dump.call("Torch.mul.0.forward", x, x)
        dump.write()
    np.save(tmp_path / "m.npy", random(5, 5))
    (tmp_path / "cut.pt").write_bytes(b"PK")
    rules = tmp_path / "rules.yaml"
    sides = (tmp_path / "target", tmp_path / "golden")
    for matrix, problem in (("m.npy", "its shape [5, 5] does not fit a tensor of shape [4, 6]"),
                            ("cut.pt", "cut.pt"), ("none.npy", "none.npy"),
                            ("m.txt", "expected .npy, .pt or .pth")):
        rules.write_text(json.dumps({"right_matmul": {
            "target_tensor_map": {str(tmp_path / matrix): [f"{X}.npy", "other.npy"]}}}))
        text, rows = compare(*sides, tmp_path / f"out_{matrix}", "--postprocess", rules)
        assert f"{X}: is compared as it was recorded: " in text and problem in text
        assert "1 of 2 tensors of the target that it names are in the recording" in text
        assert rows[X]["Verdict"] == "same" and "post-processed" not in rows[X]["Err_message"]
    rules.write_text("right_matmul: {target_tensor_map: {m.npy: one}, other: {}}\nelse: 1\n")
    text, _ = compare(*sides, tmp_path / "skipped", "--postprocess", rules)
    assert "m.npy has no list of data names" in text
    assert "other is not known" in text and "else is not known" in text
    rules.write_text("- a\n")
    text, _ = compare(*sides, tmp_path / "bad", "--postprocess", rules, status=2)
    assert "rules.yaml: line 1: expected a mapping" in text


def tails(tmp_path: Path, **kwargs: Any) -> tuple[Path, Path, np.ndarray]:
    """The target leaves NaN in all rows but the first five, golden zeros."""
    x, y = random(8, 3), random(8, 3)
    dirty, clean = y.copy(), y.copy()
    dirty[5:], clean[5:] = np.nan, 0
    sides = []
    for side, result in (("target", dirty), ("golden", clean)):
        dump = Dump(tmp_path / side)
        dump.call("Torch.npu_grouped_matmul.0.forward", x, result, **kwargs)
        sides.append(dump.write())
    return *sides, clean


@pytest.mark.parametrize("kwargs", [
    {"group_list": np.array([2, 0, 3]), "group_list_type": 1},
    {"group_list": np.array([2, 2, 5]), "group_list_type": 0},
    {"group_list": np.array([2, 2, 5])},
], ids=["counts", "ends", "default"])
def test_dirty_tails_become_zeros(tmp_path: Path, kwargs: dict[str, Any]) -> None:
    target, golden, clean = tails(tmp_path, **kwargs)
    rules = tmp_path / "rules.yaml"
    rules.write_text("{}\n")
    text, rows = compare(target, golden, tmp_path / "out", "--postprocess", rules)
    expect_metrics(rows[Y], clean, clean)
    assert rows[Y]["Verdict"] == "same" and "rows from 5 on are set to 0" in rows[Y]["Err_message"]
    assert "1 row was compared after" in text
    # Without the option, and where the file wants none, nothing is touched.
    rules.write_text("compare_handlers: {}\n")
    for words in ([], ["--postprocess", rules]):
        _, rows = compare(target, golden, tmp_path / f"plain{len(words)}", *words)
        assert rows[Y]["Verdict"] == "broken" and "post-processed" not in rows[Y]["Err_message"]


def test_a_tail_that_is_not_known_stays(tmp_path: Path) -> None:
    target, golden, _ = tails(tmp_path, group_list=np.array([2, 0, 3]), group_list_type=0)
    rules = tmp_path / "rules.yaml"
    rules.write_text("{}\n")
    text, rows = compare(target, golden, tmp_path / "out", "--postprocess", rules)
    assert "group_list: the ends of its groups do not grow" in text
    assert rows[Y]["Verdict"] == "broken"


def test_several_ranks_and_what_is_refused(tmp_path: Path) -> None:
    for side in ("target", "golden"):
        for rank in (0, 1):
            dump = Dump(tmp_path / side / f"rank{rank}")
            dump.call("Torch.mul.0.forward", np.ones((2, 2), np.float32),
                      np.full((2, 2), rank + 1, np.float32))
            dump.write()
    matrix, rules = tmp_path / "m.npy", tmp_path / "rules.yaml"
    np.save(matrix, np.eye(2, dtype=np.float32) * 3)
    rules.write_text(json.dumps({"right_matmul": {
        f"{side}_tensor_map": {str(matrix): [f"{X}.npy"]} for side in ("target", "golden")}}))

    def largest(out: Path) -> list[float]:
        rows = []
        for path in sorted(out.glob("compare_result_*.csv"), key=lambda p: (p.stat().st_mtime_ns)):
            with path.open(newline="") as file:
                rows.append({row["NPU Name"]: row for row in csv.DictReader(file)}[X])
        return sorted(float(row["NPU max"]) for row in rows[-2:])

    sides, out = (tmp_path / "target", tmp_path / "golden"), tmp_path / "out"
    compare(*sides, out, "--postprocess", rules)
    assert largest(out) == [3, 6]
    # Results of another matrix are not taken over.
    np.save(matrix, np.eye(2, dtype=np.float64) * 5)
    compare(*sides, out, "--postprocess", rules)
    assert largest(out) == [5, 10]
    np.save(tmp_path / "a.npy", np.ones(3))
    text, _ = compare(tmp_path / "a.npy", tmp_path / "a.npy", tmp_path / "arrays",
                      "--postprocess", rules, status=2)
    assert "hold no recorded calls" in text
