"""save(), save_grad() and step(): upstream's files, and steps that upstream loses on a CPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from plumbline.mindspore import point_saves, save, save_grad

HERE = Path(__file__).parent
UPSTREAM = sorted((HERE.parents[1] / "build/upstream/26.2.0").glob("lib/python*/site-packages"))


def run(tool: str, folder: Path, mode: str) -> str:
    folder.mkdir()
    paths = [*map(str, UPSTREAM), *sys.path] if tool.startswith("msprobe") else sys.path
    done = subprocess.run(
        [sys.executable, str(HERE / "network_with_points.py"), tool, str(folder / "out"), mode],
        cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True, text=True, timeout=300, check=True)
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("["))


def files(folder: Path) -> dict[str, np.ndarray]:
    return {str(path.relative_to(folder / "out")): np.load(path)
            for path in sorted((folder / "out").rglob("*.npy"))}


def test_values_and_gradients_of_each_step(tmp_path: Path) -> None:
    said = run("plumbline.mindspore", tmp_path / "own", "pynative")
    losses = [line for line in said.splitlines() if line.startswith("loss")]
    assert len(losses) == 3 and said.count("TypeError") == 3
    assert "save(): <class 'str'> is no tensor, nor a list, tuple or dict of such" in said
    found = files(tmp_path / "own")
    assert len(found) == 18
    for step in range(3):
        x = np.full((1, 3), step + 1, np.float64)
        hidden = x @ np.arange(6).reshape(2, 3).T + 1
        wanted = {"hidden": hidden, "hidden_grad": 2 * hidden, "half": hidden, "many.a": hidden,
                  "many.b.0": x, "many.b.1.0": hidden}
        for name, values in wanted.items():
            (path,) = [path for path in found
                       if re.fullmatch(rf"step{step}/rank0/{re.escape(name)}_float32_\d+\.npy",
                                       path)]
            np.testing.assert_allclose(found[path], values, rtol=1e-3)  # MindSpore's product
    if not UPSTREAM:
        pytest.skip("upstream 26.2.0 is not installed: its files were not compared")
    told = run("msprobe.mindspore.dump.dump_processor.graph_tensor_dump", tmp_path / "theirs",
               "pynative")
    assert [line for line in told.splitlines() if line.startswith("loss")] == losses
    assert told.count("step: ") == 3 and "step: " not in said  # it has no kernel for a CPU
    theirs = files(tmp_path / "theirs")
    assert sorted(path.split("/")[-1] for path in theirs) == sorted(
        path.split("/")[-1] for path in found)
    by_name = {path.split("/")[-1]: values for path, values in found.items()}
    for path, values in theirs.items():
        own = by_name[path.split("/")[-1]]
        assert (own.dtype, own.tobytes()) == (values.dtype, values.tobytes()), path


def test_compiled_networks_are_refused_on_a_cpu(tmp_path: Path) -> None:
    said = run("plumbline.mindspore", tmp_path / "own", "graph")
    assert "MindSpore has no TensorDump in networks that it compiles for a CPU" in said


class Net(nn.Cell):  # type: ignore[misc]
    def construct(self, x: Tensor) -> Tensor:
        save("points", "x", {"a": [x, None]})
        return save_grad("points", "x", x * 2).sum()


@pytest.mark.parametrize("with_gradient", [False, True])
def test_they_compile_to_what_upstreams_do(
    monkeypatch: pytest.MonkeyPatch, with_gradient: bool
) -> None:
    """A CPU has no kernel for the node: MindSpore says so, with its name and its path."""
    monkeypatch.setattr(point_saves, "_is_on_cpu", lambda: False)
    net = ms.jit(Net())
    with pytest.raises(RuntimeError, match=r"TensorDump.*StringImm> points/\{step\}/\{rank\}/x"):
        (ms.grad(net) if with_gradient else net)(Tensor(np.ones(3, np.float32)))


@pytest.mark.parametrize("wrong", [None, "", 3])
def test_a_directory_is_needed(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"save_dir is .* \(expected a directory\)"):
        save(wrong, "x", Tensor([1.0]))  # type: ignore[arg-type]


X = Tensor(np.ones(3, np.float32))
RING: list[object] = [X]
RING.append({"again": RING})


@pytest.mark.parametrize(("name", "data", "error", "told"), [
    ("../../x", X, ValueError, "'../../x' leaves the directory of the step"),
    ("x", {"/../../../y": X}, ValueError, "'/../../../y' leaves the directory of the step"),
    (5, X, TypeError, r"name is 5 \(expected a text\)"),
    ("x", RING, ValueError, "a container that holds itself"),
    ("x", [X, "text"], TypeError, "<class 'str'> is no tensor"),
])
def test_what_is_wrong_is_told_before_anything_is_written(
    tmp_path: Path, name: str, data: object, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        save(tmp_path / "out", name, data)
    assert not list(tmp_path.iterdir())


def test_values_that_cannot_be_written_are_left_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no directory")
    x = Tensor(np.arange(3, dtype=np.float32))
    save(tmp_path / "file", "x", x)

    def loss(x: Tensor) -> Tensor:
        return (save_grad(tmp_path / "file", "x", x) ** 2).sum()

    np.testing.assert_array_equal(ms.grad(loss)(x).asnumpy(), 2 * np.arange(3))
    said = "".join(capfd.readouterr())
    assert said.count("[WARNING] save(): ") == 1 and "Not a directory" in said, said
    same = [x, x]
    save(tmp_path / "out", "a/x", {"here": same, "there": same})
    assert len(list((tmp_path / "out").rglob("rank0/a/x.*_float32_*.npy"))) == 4
