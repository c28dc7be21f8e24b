"""The lines of upstream's documents on operator dumps and MindSpore's Dump, as they stand there.

Only what the documents leave open is filled in: names in braces and absolute paths.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import device_dumps
import h5py
import numpy as np
import pytest
import torch
from operator_dumps import device_tensor
from recording import PLUMB

from plumbline.pytorch import dumper

ALIAS = Path(__file__).resolve().parent.parent.parent / "python" / "msprobe_alias"
CONV = ("Conv2D.Default_network-WithLossCell__backbone-AlexNet_conv3-Conv2d_Conv2D-op12.2.7."
        "161243956333802")
POOL = "Pooling.pool1.1147.1589195081588018"

OVERFLOW = """
with torch.utils.dumper(check_overflow=check_overflow, dump_path=dump_path, \
load_file_path='${load}') as dump:
    x = model(input_data)
"""
REPLAY = """
with torch.utils.dumper(use_load=True, dump_path="./",load_file_path="./output.h5", \
load_with_acl_dump=True) as dump:
    x = model(input_data)
"""
ACL_JSON = """{
    "dump":
    {
            "dump_list":[]
            "dump_path":"./output_IR2TBE"# where the result goes
            "dump_mode":"all"
            "dump_op_switch":"on"
    }
}
"""
COMMON: dict[str, Any] = {
    "dump_mode": 0, "path": "/absolute_path", "net_name": "ResNet50", "iteration": "0|5-8|100-120",
    "saved_data": "tensor", "input_output": 0, "kernels": ["Default/Conv-op12"],
    "support_device": [0, 1, 2, 3, 4, 5, 6, 7], "op_debug_mode": 0,
    "statistic_category": ["max", "min", "l2norm"]}
SYNCHRONOUS = {
    "common_dump_settings": COMMON,
    "e2e_dump_settings": {"enable": True, "trans_flag": True, "stat_calc_mode": "host"}}
ASYNCHRONOUS = {"common_dump_settings": {**COMMON, "file_format": "npy"}}


@pytest.fixture
def shell(tmp_path: Path) -> Any:
    """Runs lines of a document in a directory of their own; fails with their errors.

    The toolkit of the documents is a directory with the script msaccucmp.py somewhere below it;
    `python3.7.5` is this interpreter.
    """
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("python", "python3", "python3.7.5"):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (programs / name).chmod(0o755)
    (programs / "plumb").symlink_to(PLUMB)
    toolkit = tmp_path / "cann" / "latest" / "toolkit" / "tools" / "operator_cmp"
    toolkit.mkdir(parents=True)
    (toolkit / "compare").symlink_to(ALIAS / "msprobe" / "msaccucmp")
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}",
                   "CANN_INSTALL_PATH": str(tmp_path / "cann"), "run_path": str(ALIAS)}

    def run(lines: str) -> str:
        done = subprocess.run(["bash", "-e", "-c", lines], cwd=tmp_path, text=True,
                              capture_output=True, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_operators_whose_results_overflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    """The file to load, which the document names here too, is not looked at."""
    monkeypatch.setattr(torch.utils, "dumper", dumper, raising=False)
    exec(OVERFLOW, {"torch": torch, "check_overflow": True, "dump_path": str(tmp_path),
                    "model": lambda x: x * 10, "input_data": torch.full((2,), 3e38)})
    assert "IR: mul_Tensor SeqId: " in capsys.readouterr().out
    (file,) = tmp_path.glob("*.h5")
    with h5py.File(file) as dump:
        assert list(dump) == ["mul_Tensor"]


def test_copying_operators_to_replay(tmp_path: Path, shell: Any) -> None:
    """By the program of the HDF5 library, and by plumb with the same words."""
    with dumper(use_dump=True, dump_path=str(tmp_path / "input.h5")):
        torch.ones(2).relu().abs()
    with h5py.File(tmp_path / "input.h5") as file:
        operators = [f"/{name}/{next(iter(file[name]))}/" for name in ("relu", "abs")]
    for program in ("h5copy", "plumb h5copy"):
        for one in operators:
            shell(f'{program} -pv -i "./input.h5" -o "./output.h5" -s "{one}" -d "{one}"')
        with h5py.File(tmp_path / "output.h5") as file:
            assert sorted(file) == ["abs", "relu"]
            assert file[operators[0] + "output/result"][()].tolist() == [1.0, 1.0]
        (tmp_path / "output.h5").unlink()


def test_mapping_operators_to_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable that the document sets, which says 1 where 0 is right."""
    calls: list[str] = []

    class Npu:
        def is_available(self) -> bool:
            return True

        def __getattr__(self, name: str) -> Any:
            return lambda *args: calls.append(" ".join([name, *args]))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.utils, "dumper", dumper, raising=False)
    with dumper(use_dump=True, dump_path="./output.h5"):
        torch.ones(2).relu()
    monkeypatch.setitem(sys.modules, "torch_npu", types.SimpleNamespace(npu=Npu()))
    monkeypatch.setenv("ACL_DUMP_DATA", "1")  # export ACL_DUMP_DATA=1
    with pytest.warns(UserWarning, match="ACL_DUMP_DATA is 1"):
        exec(REPLAY, {"torch": torch, "model": torch.relu, "input_data": torch.zeros(2)})
    assert "set_dump acl.json" in calls and calls.count("finalize_dump") == 1


def test_the_acl_json_of_the_document(tmp_path: Path, shell: Any) -> None:
    """Refused with its place; --lenient prints what was meant."""
    (tmp_path / "acl.json").write_text(ACL_JSON)
    done = subprocess.run([PLUMB, "dump-config", "check-acl", "acl.json"], cwd=tmp_path, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("plumb dump-config check-acl: acl.json: line 4, column 27: a ")
    assert done.stderr.count("\n") == 1
    shell("plumb dump-config check-acl acl.json --lenient > corrected.json")
    assert json.loads((tmp_path / "corrected.json").read_text()) == {"dump": {
        "dump_list": [], "dump_path": "./output_IR2TBE", "dump_mode": "all",
        "dump_op_switch": "on"}}
    shell("plumb dump-config check-acl corrected.json")


def test_dumps_as_arrays_and_texts(tmp_path: Path, shell: Any) -> None:
    values = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    home = tmp_path / "home" / "HwHiAiUser"
    place = home / "dump" / "20200808163566" / "0" / "1" / "0"
    device_dumps.Dump(outputs=[device_dumps.plain(values)]).write(place / POOL)
    shell(f"""
        cd  ${{CANN_INSTALL_PATH}}/latest/toolkit/tools/operator_cmp/compare
        python3 msaccucmp.py convert -d {home}/dump -out {home}/dumptonumpy -v 2
    """)
    (array,) = (home / "dumptonumpy").rglob(f"{POOL}.output.0.npy")
    a = np.load(array)
    b = a.flatten()
    np.savetxt(array.with_suffix(".txt"), b)
    assert a.shape == values.shape and np.array_equal(a, values)
    assert array.with_suffix(".txt").read_text().splitlines()[0] == "-1.000000000000000000e+00"


@pytest.mark.parametrize("settings", [SYNCHRONOUS, ASYNCHRONOUS])
def test_configurations_of_mindspore(settings: dict[str, Any], tmp_path: Path, shell: Any) -> None:
    (tmp_path / "data_dump.json").write_text(json.dumps(settings))
    shown = shell("""
        export MINDSPORE_DUMP_CONFIG=$PWD/data_dump.json
        plumb dump-config check "$MINDSPORE_DUMP_CONFIG" --device ascend
    """)
    assert shown.endswith("data_dump.json: valid, 2 warnings\n"), shown
    for entry in ("kernels", "statistic_category"):  # which the documents set beside others
        assert f"warning: common_dump_settings.{entry}: has no effect" in shown
    assert "iterations, counted from 0: 0, 5 to 8, 100 to 120" in shown


def test_a_dump_of_mindspore_as_arrays(tmp_path: Path, shell: Any) -> None:
    random = np.random.default_rng(1)
    arrays = {"input.0.32x256x13x13": (32, 256, 13, 13), "input.1.384x256x3x3": (384, 256, 3, 3),
              "output.0.32x384x13x13": (32, 384, 13, 13)}
    host = {name: random.standard_normal(shape).astype(np.float16)
            for name, shape in arrays.items()}
    image, weight, result = host.values()
    dump = device_dumps.Dump([device_tensor(image, "NC1HWC0"), device_tensor(weight, "FRACTAL_Z")],
                             [device_tensor(result, "NC1HWC0")])
    dump.write(tmp_path / "path" / "to" / CONV)
    script = shell('find ${run_path} -name "msaccucmp.py"').split()
    assert len(script) == 1 and script[0].endswith("/msprobe/msaccucmp/msaccucmp.py")
    shell(f"""
        cd $(dirname $(find ${{run_path}} -name "msaccucmp.py"))
        python3.7.5 msaccucmp.py convert -d {tmp_path}/path/to/{CONV} -out {tmp_path}/output \
            -f NCHW -t npy
    """)
    assert {path.name for path in (tmp_path / "output").iterdir()} == {
        f"{CONV}.{name}.npy" for name in arrays}
    for name, array in host.items():
        np.testing.assert_array_equal(np.load(tmp_path / "output" / f"{CONV}.{name}.npy"), array)
    shell(f"python {script[0]} convert -d path/to -out raw")
    assert np.load(tmp_path / "raw" / f"{CONV}.input.0.npy").shape == (32, 16, 13, 13, 16)


def test_arrays_of_a_synchronous_dump(tmp_path: Path, shell: Any) -> None:
    """`numpy.load` of a file that `plumb` wrote a row about."""
    name = "Conv2D.Conv2D-op12.0.0.1623124369613540.output.0.DefaultFormat.npy"
    place = tmp_path / "rank_0" / "ResNet50" / "0" / "0"
    place.mkdir(parents=True)
    np.save(place / name, np.arange(6, dtype=np.float32))
    shell("plumb dump-config finish .")
    assert re.search(r"^Conv2D,Conv2D-op12,0,0,1623124369613540,output,0,",
                     (place / "statistic.csv").read_text(), re.M)
    assert np.load(place / name).sum() == 15
