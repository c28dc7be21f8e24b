"""Recordings of MindSpore's debugger, whose tensors are .npy files beside dump.json."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess

import numpy as np
import page_data
from recording import PLUMB


def write(root: pathlib.Path, factor: float) -> pathlib.Path:
    """Two calls; the second one's result is multiplied by `factor`."""
    tensors = root / "dump_tensor_data"
    tensors.mkdir(parents=True)
    values = np.random.default_rng(1).standard_normal((4, 8)).astype("f4")

    def tensor(name: str, array: np.ndarray) -> dict[str, object]:
        np.save(tensors / f"{name}.npy", array)
        return {"type": "mindspore.Tensor", "dtype": "Float32", "shape": list(array.shape),
                "Max": float(array.max()), "Min": float(array.min()), "Mean": float(array.mean()),
                "Norm": float(np.linalg.norm(array)), "requires_grad": False,
                "data_name": f"{name}.npy"}

    data = {}
    for number, result in enumerate((values * 2, values * 4 * factor)):
        call = f"Mint.mul.{number}.forward"
        data[call] = {"input_args": [tensor(f"{call}.input.0", values * (number + 1))],
                      "input_kwargs": {},
                      "output": [tensor(f"{call}.output.0", result.astype("f4"))]}
    (root / "dump.json").write_text(json.dumps({
        "task": "tensor", "level": "L1", "framework": "mindspore",
        "dump_data_dir": str(tensors), "data": data}))
    return root


def compare(target: pathlib.Path, golden: pathlib.Path,
            out: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, "compare", target, golden, "-o", out, "--fail-on", "any",
                           "--format", "csv,html"], text=True, capture_output=True, check=False,
                          timeout=60)


def test_tensors_are_read_and_the_cause_is_named(tmp_path: pathlib.Path) -> None:
    golden = write(tmp_path / "golden", 1)
    same = compare(write(tmp_path / "same", 1), golden, tmp_path / "out")
    assert same.returncode == 0 and same.stdout.startswith("no wrong call\n"), same.stdout
    wrong = compare(write(tmp_path / "wrong", 1.25), golden, tmp_path / "wrong_out")
    assert wrong.returncode == 1
    assert wrong.stdout.startswith("first wrong call: Mint.mul.1.forward\n")
    assert "cause: scale" in wrong.stdout and "golden times 1.25" in wrong.stdout


def test_cut_tensor_is_no_pass(tmp_path: pathlib.Path) -> None:
    golden, target = write(tmp_path / "golden", 1), write(tmp_path / "target", 1)
    victim = target / "dump_tensor_data/Mint.mul.0.forward.output.0.npy"
    victim.write_bytes(victim.read_bytes()[:-4])
    done = compare(target, golden, tmp_path / "out")
    assert done.returncode == 1 and "1 unreadable tensor file" in done.stdout


# ---- copies, whose dump_data_dir still names the directory of the first one


def moved(source: pathlib.Path, to: pathlib.Path, *, with_tensors: bool) -> pathlib.Path:
    shutil.copytree(source, to, ignore=None if with_tensors else
                    shutil.ignore_patterns("dump_tensor_data"))
    return to


def warnings(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stdout.splitlines() if line.startswith("warning: ")]


def test_tensors_beside_the_copy_win(tmp_path: pathlib.Path) -> None:
    golden = write(tmp_path / "golden", 1)
    first = write(tmp_path / "run", 1)
    copy = moved(first, tmp_path / "copy", with_tensors=True)
    shutil.rmtree(first)
    write(first, 1.25)  # another run in the same place
    done = compare(copy, golden, tmp_path / "out")
    assert done.stdout.startswith("no wrong call\n") and not warnings(done), done.stdout
    done = compare(golden, copy, tmp_path / "out")
    assert done.stdout.startswith("no wrong call\n") and not warnings(done), done.stdout


def test_tensors_elsewhere_are_told(tmp_path: pathlib.Path) -> None:
    golden = write(tmp_path / "golden", 1)
    first = write(tmp_path / "run", 1)
    copy = moved(first, tmp_path / "copy", with_tensors=False)
    said = [f"warning: {copy}/dump.json: no dump_tensor_data lies beside it; its tensors are read "
            f"from {first}/dump_tensor_data, which its dump_data_dir names"]
    for sides in ((copy, golden), (golden, copy)):
        done = compare(*sides, tmp_path / "out")
        assert done.stdout.startswith("no wrong call\n") and warnings(done) == said, done.stdout


def test_tensors_of_another_run_are_not_read(tmp_path: pathlib.Path) -> None:
    golden = write(tmp_path / "golden", 1)
    first = write(tmp_path / "run", 1)
    copy = moved(first, tmp_path / "copy", with_tensors=False)
    said = [f"warning: {copy}/dump.json: no dump_tensor_data lies beside it, and "
            f"{first}/dump_tensor_data, which its dump_data_dir names, is of another recording by "
            "now: not read"]
    shutil.rmtree(first)
    write(first, 1.25)
    for sides in ((copy, golden), (golden, copy)):
        done = compare(*sides, tmp_path / "out")
        assert done.returncode == 1 and warnings(done) == said, done.stdout
        assert done.stdout.startswith("not judged: "), done.stdout
    (first / "dump.json").rename(first / ".dump.journal")  # it is being written
    done = compare(copy, golden, tmp_path / "out")
    assert done.stdout.startswith("not judged: ") and warnings(done) == said, done.stdout


def test_elements_elsewhere_are_drawn(tmp_path: pathlib.Path) -> None:
    golden, wrong = write(tmp_path / "golden", 1), write(tmp_path / "wrong", 1.25)
    copy = moved(wrong, tmp_path / "copy", with_tensors=False)
    drawn = []
    for target in (wrong, copy):
        done = compare(target, golden, tmp_path / f"out_{target.name}")
        assert done.stdout.startswith("first wrong call: Mint.mul.1.forward\n"), done
        [page] = (tmp_path / f"out_{target.name}").glob("*.html")
        drawn.append(page_data.read(page)["parts"][0]["part"]["evidence"])
    assert drawn[0] is not None and drawn[0] == drawn[1]
