"""Both releases of upstream read recordings whose modules tell the buffers that they changed."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import openpyxl
import pytest
from conftest import run, upstream_python

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

RECORD = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5))
debugger = PrecisionDebugger(task="tensor", level="L0", dump_path=sys.argv[1])
debugger.start(net)
net(torch.randn(8, 4)).square().mean().backward()
debugger.stop()
"""
NORM = "Module.1.BatchNorm1d.forward.0."


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("buffers")
    found = []
    for name in ("target", "golden"):
        done = run([sys.executable, "-c", RECORD, directory / name])
        assert done.returncode == 0, done.stderr
        found.append(directory / name / "step0/rank/dump.json")
        assert '"buffers"' in found[-1].read_text()
    return found


def test_release_1_2_2(dumps: list[Path], tmp_path: Path) -> None:
    paths = tmp_path / "compare.json"
    target, golden = (str(path) for path in dumps)
    paths.write_text(json.dumps({
        "npu_path": target, "bench_path": golden, "is_print_compare_log": False,
        "stack_path": str(dumps[0].with_name("stack.json"))}))
    program = upstream_python("1.2.2").with_name("msprobe")
    done = run([program, "-f", "pytorch", "compare", "-i", paths, "-o", tmp_path / "out", "-s"])
    assert done.returncode == 0, done.stdout + done.stderr
    sheet = openpyxl.load_workbook(next((tmp_path / "out").glob("*.xlsx"))).active
    check([str(row[0].value) for row in sheet.iter_rows(min_row=2)])


def test_release_26_2_0(dumps: list[Path], tmp_path: Path) -> None:
    program = upstream_python("26.2.0").with_name("msprobe")
    done = run([program, "compare", "-tp", dumps[0], "-gp", dumps[1], "-o", tmp_path / "out"])
    assert done.returncode == 0, done.stdout + done.stderr
    with next((tmp_path / "out").glob("*.csv")).open() as file:
        check([row[0] for row in csv.reader(file)][1:])


def check(names: list[str]) -> None:
    """Every other value of the module is there."""
    parts = {name.removeprefix(NORM) for name in names if name.startswith(NORM)}
    assert parts == {"input.0", "parameters.weight", "parameters.bias", "output.0"}
