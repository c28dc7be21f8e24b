"""The example that compares from Python, and what `plumb compare` says to dumps of searches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rank_dumps import fine, write_step
from recording import PLUMB

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("given", [True, False])
def test_example_writes_only_where_it_may(tmp_path: Path, given: bool) -> None:
    step = write_step(tmp_path / "step0", {"rank0": [fine(0)]})
    here, output = tmp_path / "here", tmp_path / "tables"
    here.mkdir()
    done = subprocess.run(
        [sys.executable, ROOT / "examples/compare_from_python.py", step, step,
         *([output] if given else [])],
        cwd=here, text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert list(here.iterdir()) == []
    assert "written: ['" in done.stdout
    assert output.is_dir() == given


@pytest.mark.parametrize(("task", "advice"), [
    ("overflow_check", "plumb overflow"), ("nan_check", "plumb overflow"),
    ("diff_check", "plumb inspect")])
def test_dumps_of_searches_say_what_to_do(tmp_path: Path, task: str, advice: str) -> None:
    step = write_step(tmp_path / "step0", {"rank0": [fine(0)]})
    path = step / "rank0" / "dump.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"task": task}))
    done = subprocess.run([str(PLUMB), "compare", step, step, "-o", tmp_path / "out"], text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"plumb compare: {path}: was recorded with task {task}")
    assert f"`{advice} {step / 'rank0'}`" in line and "task statistics" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [
    ["--fail-on", "any"], ["--fail-on", "broken,unmatched", "--fail-on", "suspicious"],
    ["--format", "json"], ["--format", "csv,json"], ["--rank", "0"], ["--rank", "0,3"]])
def test_options_with_lists_may_stand_before_the_paths(tmp_path: Path, words: list[str]) -> None:
    step = write_step(tmp_path / "step0", {f"rank{rank}": [fine(0)] for rank in (0, 3)})
    answers = []
    for order in ([*words, step, step], [step, step, *words]):
        done = subprocess.run([str(PLUMB), "compare", "-o", tmp_path / "out", *order], text=True,
                              capture_output=True, check=False, timeout=60, cwd=tmp_path)
        assert done.returncode == 0 and done.stderr == "", done
        answers.append(done.stdout.splitlines()[0])
    assert answers[0] == answers[1] and answers[0].startswith("no wrong call")


def test_an_empty_path_is_named(tmp_path: Path) -> None:
    for words, side in ((["", "b"], "TARGET"), (["a", ""], "GOLDEN"), (["-gp", "b"], "TARGET")):
        done = subprocess.run([str(PLUMB), "compare", *words], text=True, capture_output=True,
                              check=False, timeout=60, cwd=tmp_path)
        assert done.returncode == 2 and f"{side} (-" in done.stderr, done
        assert list(tmp_path.iterdir()) == []


CUT_WHILE_MAPPED = """
import ctypes, faulthandler, os, sys, threading
import plumbline

target, golden = sys.argv[1:]
tensor = os.path.join(target, "dump_tensor_data", "a.npy")
c_library = ctypes.CDLL(None)

def handler():
    action = ctypes.create_string_buffer(256)
    assert c_library.sigaction(7, None, action) == 0
    return action.raw[:8]

def cut():
    while not is_over.is_set():
        with open("/proc/self/maps") as maps:
            if tensor in maps.read():
                os.truncate(tensor, 4096)
                return

faulthandler.enable()
before = handler()
size = os.path.getsize(tensor)
for _ in range(30):
    is_over = threading.Event()
    os.truncate(tensor, size)
    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        plumbline.compare(target, golden, os.path.join(target, "..", "out"))
    except OSError as error:
        print(error)
        break
    except plumbline.CorruptDataError:
        pass
    finally:
        is_over.set()
        cutter.join()
assert handler() == before
print("still there")
"""


def sparse_recording(directory: Path, fill: bytes) -> Path:
    """One tensor of 256 MB, nearly all of it a hole."""
    numpy = pytest.importorskip("numpy")
    tensors = directory / "dump_tensor_data"
    tensors.mkdir(parents=True)
    count = 1 << 26
    with (tensors / "a.npy").open("wb") as file:
        numpy.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (count,)})
        start = file.tell()
        file.write(fill)
        file.truncate(start + 4 * count)
    value = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [count], "Max": 1.0,
             "Min": 0.0, "Mean": 0.0, "Norm": 1.0, "data_name": "a.npy"}
    call = {"input_args": [], "input_kwargs": {}, "output": [value]}
    (directory / "dump.json").write_text(json.dumps(
        {"task": "tensor", "level": "L1", "framework": "mindspore",
         "data": {"Mint.a.0.forward": call}}))
    return directory


def test_a_tensor_that_is_cut_while_python_compares_it_is_an_error(tmp_path: Path) -> None:
    target = sparse_recording(tmp_path / "target", b"\0\0\x80\x3f")
    golden = sparse_recording(tmp_path / "golden", b"\0\0\0\x3f")
    done = subprocess.run([sys.executable, "-c", CUT_WHILE_MAPPED, target, golden],
                          text=True, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done
    error, end = done.stdout.splitlines()
    assert f"{target}/dump_tensor_data/a.npy: became shorter" in error and end == "still there"
    assert not (tmp_path / "out").exists()
