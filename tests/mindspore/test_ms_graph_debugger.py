"""PrecisionDebugger in GRAPH_MODE: one class under both names, and jit in PyNative mode."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore: run it in that environment", allow_module_level=True)

HERE = Path(__file__).resolve().parent
ALIAS = HERE.parents[1] / "python/msprobe_alias"


def run(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    paths = [str(ALIAS), *(path for path in sys.path if path)]
    return subprocess.run(
        [sys.executable, *words], text=True, capture_output=True, timeout=300, check=False,
        cwd=directory, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})


def configure(directory: Path, **entries: object) -> Path:
    path = directory / "config.json"
    path.write_text(json.dumps({"task": "tensor", "level": "L2",
                                "dump_path": str(directory / "dump"), **entries}))
    path.chmod(0o640)
    return path


@pytest.fixture()
def place(tmp_path: Path) -> Path:
    """MindSpore takes no dots in the path of a dump."""
    assert "." not in str(tmp_path)
    return tmp_path


@pytest.mark.parametrize("package", ["plumbline", "msprobe"])
def test_calls_on_the_class(place: Path, package: str) -> None:
    configure(place)
    done = run(place, str(HERE / "graph_classes.py"), package)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["one"]
    assert facts["early"][0] == "RuntimeError" and "is not created" in facts["early"][-1]
    wrong = "MsprobeException" if package == "msprobe" else "ValueError"
    assert facts["level"][0] == wrong and "ValueError" in facts["level"]
    assert 'level: is "L1"' in facts["level"][-1]
    assert facts["init"][0] == wrong
    missing = "FileCheckException" if package == "msprobe" else "FileNotFoundError"
    assert facts["missing"][0] == missing
    # Upstream's name has a directory where neither file nor argument names one.
    name = "dump_path" if package == "msprobe" else "dump"
    assert (facts["no_file"] == []) == (package == "msprobe"), facts["no_file"]
    assert facts["directory"] == str(place / name / "rank_0")
    for step in (0, 1):
        assert list((place / name / f"rank_0/Net/0/{step}").glob("MatMul.*.output.0.*.npy"))
    assert done.stdout.count("save(): has no effect on static graphs") == 1
    assert "are ignored" in done.stdout


def test_a_directory_that_cannot_be_written_stops_no_training(place: Path) -> None:
    configure(place, dump_path=str(place / "file" / "dump"))
    (place / "file").write_text("")
    done = run(place, str(HERE / "graph_classes.py"), "plumbline")
    assert done.returncode == 0, done.stderr
    assert "Graphs are not dumped" in done.stdout and "Traceback" not in done.stderr


JIT = """
import mindspore as ms, numpy as np
from plumbline.mindspore import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
debugger = PrecisionDebugger("config.json")
@ms.jit
def compiled(x):
    return ms.ops.exp(x) * 2
debugger.start()
value = ms.Tensor(np.ones((2, 3), np.float32))
compiled(ms.ops.abs(value)).asnumpy()
debugger.stop(); debugger.step()
"""


def test_level_l2_dumps_what_jit_compiles(place: Path) -> None:
    script = place / "script.py"  # jit wants the source in a file
    configure(place, task="statistics", statistics={"list": ["name-regex(.*Exp.*)"]})
    script.write_text(JIT)
    done = run(place, str(script))
    assert done.returncode == 0, done.stderr
    [table] = (place / "dump").rglob("statistic.csv")
    kernels = {line.split(",")[0] for line in table.read_text().splitlines()[1:]}
    assert "Exp" in kernels and "Abs" not in kernels


@pytest.mark.parametrize(("entries", "words"), [
    ({"task": "statistics", "statistics": {"list": ["Mint.exp.0.forward"]}},
     "the task must be set to tensor"),
    ({"tensor": {"list": ["Mint.exp.0.forward"], "scope": ["Mint.exp.0.forward"]}},
     "the scope cannot be configured"),
    ({"tensor": {"list": ["Mint.exp.0.forward", "Mint.abs.0.forward"]}},
     "a list with one api name")])
def test_kernels_below_one_api(place: Path, entries: dict[str, object], words: str) -> None:
    """What upstream refuses is refused; what it warns of stops no training."""
    script = place / "script.py"
    script.write_text(JIT.replace("plumbline.mindspore", "msprobe.mindspore"))
    configure(place, **entries)
    done = run(place, str(script))
    assert done.returncode != 0 and words in done.stderr
    assert "MsprobeException: [msprobe] Invalid parameter" in done.stderr
    configure(place, tensor={"list": ["Mint.exp.0.forward"]})
    done = run(place, str(script))
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("kernel dump cannot be used") == 1
    assert not list((place / "dump").rglob("*.npy"))
