"""The alias package: installed as its own distribution, never with plumbline itself."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from rank_dumps import forward, tensor, write_step
from recording import PLUMB

import plumbline.pytorch

ROOT = Path(__file__).resolve().parent.parent.parent
PLUMBLINE = Path(plumbline.__file__).parent.parent

MISSING = {
    "from msprobe.pytorch import parse": "Use the command `plumb parse`",
    "from msprobe.pytorch import set_ge_dump_config": "setting up torchair's dump is not built yet",
    "import msprobe.core.overflow_check.checker": "use `plumb overflow`",
    "from msprobe.pytorch.monitor import unit_conversion": "no counterpart of this name",
    "import msprobe.mindspore.monitor": "No module named 'mindspore'",
    "import msprobe.core.data_dump.scope": "plumbline has no counterpart of this name",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the alias distribution, without an index."""
    target = tmp_path_factory.mktemp("alias") / "site"
    source = ROOT / "python" / "msprobe_alias"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index",
         "--no-deps", "--no-build-isolation", "--target", str(target), str(source)],
        text=True, capture_output=True, timeout=200, check=False)
    if "No module named pip" in done.stderr:
        pytest.skip("this environment has no pip")
    assert done.returncode == 0, done.stderr[-3000:]
    return target


def python(installed: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Runs code that sees the alias and this plumbline."""
    path = os.pathsep.join([str(installed), str(PLUMBLINE)])
    return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True,
                          env=dict(os.environ, PYTHONPATH=path), timeout=120, check=False)


def test_plumbline_does_not_install_it() -> None:
    assert 'wheel.packages = ["python/plumbline"]' in (ROOT / "pyproject.toml").read_text()
    assert not (PLUMBLINE / "msprobe" / "pytorch").exists()


def test_names_are_plumblines(installed: Path) -> None:
    done = python(installed, (
        "import msprobe.pytorch as alias, plumbline.pytorch as own\n"
        "from msprobe.pytorch.common.utils import seed_all\n"
        "from msprobe.pytorch.debugger.precision_debugger import PrecisionDebugger\n"
        "assert issubclass(alias.PrecisionDebugger, own.PrecisionDebugger)\n"
        "from msprobe.pytorch.monitor.module_hook import TrainerMon\n"
        "assert TrainerMon is alias.TrainerMon is own.TrainerMon\n"
        "assert alias.PrecisionDebugger is PrecisionDebugger and alias.seed_all is seed_all\n"
        "from msprobe.core.config_check import ConfigChecker\n"
        "import plumbline; assert ConfigChecker is plumbline.ConfigChecker\n"
        "assert not hasattr(alias, '__path_of_nothing__')\n"
    ))
    assert done.returncode == 0, done.stderr


def test_what_is_called_missing_is_missing() -> None:
    """The list follows what is built: no name of the recorders, no command that does not exist."""
    path = ROOT / "python" / "msprobe_alias" / "msprobe" / "missing.py"
    known = runpy.run_path(str(path))["_NOT_BUILT"]
    commands = subprocess.run([PLUMB, "--help"], text=True, capture_output=True, check=True).stdout
    for name, advice in known.items():
        module, _, attribute = name.rpartition(".")
        if module == "msprobe.pytorch":
            assert not hasattr(plumbline.pytorch, attribute), name
        for command in re.findall(r"`plumb (\w+)`", advice):
            assert re.search(rf"^  {command}\b", commands, re.MULTILINE), (name, command)


@pytest.mark.parametrize("statement", MISSING)
def test_what_is_not_there_says_so(installed: Path, statement: str) -> None:
    done = python(installed, statement)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert MISSING[statement] in last
    assert last.startswith(("ImportError", "ModuleNotFoundError"))


def test_comparison_takes_upstreams_arguments(installed: Path, tmp_path: Path) -> None:
    done = python(installed, f"""
import os, sys, torch
from msprobe.core.common.exceptions import FileCheckException, MsprobeException
from msprobe.pytorch import PrecisionDebugger, compare
for name, scale in (("a", 1.0), ("b", 2.0)):
    if os.fork() == 0:
        debugger = PrecisionDebugger(dump_path=f"{tmp_path}/{{name}}", level="L1")
        debugger.start(); torch.mul(torch.ones(3), scale); debugger.stop(); debugger.step()
        sys.exit()
    os.wait()
sides = {{"npu_json_path": "{tmp_path}/a/step0/rank/dump.json",
          "bench_json_path": "{tmp_path}/b/step0/rank/dump.json"}}
result = compare(sides, "{tmp_path}/out", stack_mode=True)
print(result.first_wrong_call)
for call, kind in ((lambda: compare(sides, "{tmp_path}/out", data_mapping="x"), FileCheckException),
                   (lambda: compare({{}}, "{tmp_path}/out"), MsprobeException),
                   (lambda: compare(dict(sides, npu_json_path="{tmp_path}/no/dump.json"),
                                    "{tmp_path}/out"), FileCheckException)):
    try:
        call()
    except kind as error:
        print(error.code, error.error_info)
""")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "[INFO]" not in line]
    assert lines[0] == "Torch.mul.0.forward"
    assert len(lines) == 4
    assert list((tmp_path / "out").glob("compare_result_*.xlsx"))
    assert list((tmp_path / "out").glob("advisor_*.txt"))


def test_all_ranks_in_one_call(installed: Path, tmp_path: Path) -> None:
    for name, fault in (("a", 3.0), ("b", 2.0)):
        write_step(tmp_path / name, {
            f"rank{rank}": [forward("Torch.exp.0.forward", [tensor(1.0)],
                                    [tensor(fault if rank == 1 else 2.0)])] for rank in range(2)})
    done = python(installed, f"""
from msprobe.core.common.exceptions import FileCheckException, MsprobeException
from msprobe.pytorch import compare_distributed
result = compare_distributed("{tmp_path}/a", "{tmp_path}/b", "{tmp_path}/out", stack_mode=True)
print(result.answer)
for words, kind in ((dict(suffix="x"), MsprobeException), (dict(other=1), MsprobeException),
                    (dict(data_mapping="x"), MsprobeException)):
    try:
        compare_distributed("{tmp_path}/a", "{tmp_path}/b", "{tmp_path}/none", **words)
    except kind as error:
        print(error.error_info)
try:
    compare_distributed("{tmp_path}/nowhere", "{tmp_path}/b", "{tmp_path}/none")
except FileCheckException as error:
    print(error.error_info)
""")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "first wrong call: rank 1 Torch.exp.0.forward" and len(lines) == 5
    names = sorted(path.name.rpartition("_")[0] for path in (tmp_path / "out").glob("[ac]*-rank*"))
    assert names == ["advisor_rank0-rank0", "advisor_rank1-rank1", "compare_result_rank0-rank0",
                     "compare_result_rank1-rank1"]
    assert not (tmp_path / "none").exists()


def test_comparison_takes_mappings_and_suffixes(installed: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "golden"))
    import make_dumps

    make_dumps.sound(str(tmp_path / "golden"))
    make_dumps.wrong_scale(str(tmp_path / "target"))
    done = python(installed, f"""
from msprobe.pytorch import compare
step = "{tmp_path}"
sides = {{"npu_json_path": step + "/target/dump.json",
          "bench_json_path": step + "/golden/dump.json"}}
mapping = {{"Torch.add.0.forward.input.0": "Torch.add.1.forward.input.0"}}
result = compare(sides, step + "/one", data_mapping=mapping, suffix="_mine", auto_analyze=False)
print(result.rows[0]["golden"]["name"])
try:
    compare(sides, step + "/one", data_mapping=3)
except TypeError as error:
    print(error)
""")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "[INFO]" not in line]
    assert lines[0] == "Torch.add.1.forward.input.0"
    assert "data_mapping is int" in lines[1]
    assert len(list((tmp_path / "one").glob("compare_result_mine_*.xlsx"))) == 1


def test_command_runs_plumb(installed: Path, tmp_path: Path) -> None:
    plumb = tmp_path / "plumb"
    plumb.write_text("#!/bin/sh\necho got \"$@\"\nexit 5\n")
    plumb.chmod(0o755)
    path = os.pathsep.join([str(installed), str(PLUMBLINE)])
    done = subprocess.run(
        [sys.executable, str(installed / "bin" / "msprobe"), "-f", "pytorch", "compare", "-i", "x"],
        text=True, capture_output=True, timeout=60, check=False,
        env=dict(os.environ, PYTHONPATH=path, PATH=f"{tmp_path}:{os.environ['PATH']}"))
    assert (done.stdout, done.returncode) == ("got msprobe -f pytorch compare -i x\n", 5)


def test_the_script_of_upstreams_toolkit_runs_plumb(installed: Path, tmp_path: Path) -> None:
    """Found by its name, started by its path, from wherever."""
    plumb = tmp_path / "plumb"
    plumb.write_text("#!/bin/sh\necho got \"$@\"\nexit 11\n")
    plumb.chmod(0o755)
    (script,) = installed.rglob("msaccucmp.py")
    done = subprocess.run(
        [sys.executable, str(script), "convert", "-d", "x"], text=True, capture_output=True,
        timeout=60, check=False, cwd=script.parent,
        env=dict(os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}"))
    assert (done.stdout, done.returncode) == ("got msaccucmp convert -d x\n", 11), done.stderr
