"""`plumb precheck` with `--shard I/N` and `plumb merge`: the parts together give the bytes and the
status of one run with --sorted. The time in names of files and how long it took are blanked out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from precheck_dumps import SECONDS, Dump, broken_python, small_model, tensor
from recording import PLUMB, config, run_script
from test_shared_commands import line_of
from warm_interpreter import warm_python

STAMP = re.compile(rb"(accuracy_checking_\w+?_|ut_error_data)\d{14}")
SECONDS_TAKEN = re.compile(rb"[\d.]+ s, [\d.]+ calls/s|\"seconds\":[\d.]+")
# softmax is wrong in float16, celu crashes on the device, relu on both sides, topk raises there.
SPOILED = """
softmax, celu = torch.nn.functional.softmax, torch.nn.functional.celu
topk = torch.topk
def refuse(x, k):
    if x.dtype == torch.float32:
        raise RuntimeError("no \\u00e9 kernel,\\nnone")
    return topk(x, k)
torch.nn.functional.softmax = lambda x, dim: softmax(x, dim) * (
    1.02 if x.dtype == torch.float16 else 1)
torch.nn.functional.celu = lambda x: os.abort() if x.dtype == torch.float32 else celu(x)
torch.nn.functional.relu = lambda x: os.abort()
torch.topk = refuse"""

Run = tuple[int, str, str, dict[str, bytes]]


def blank(text: bytes) -> bytes:
    """Without what is another one each time."""
    return SECONDS_TAKEN.sub(b"T", STAMP.sub(rb"\1T", text))


def plumb(place: Path, *words: object, python: Path | str = "") -> subprocess.CompletedProcess[str]:
    """Runs `plumb` in a directory."""
    return subprocess.run([PLUMB, *map(str, words)], cwd=place, text=True, capture_output=True,
                          check=False, timeout=SECONDS,
                          env={**os.environ, "PLUMBLINE_PYTHON": str(python or warm_python())})


def outcome(done: subprocess.CompletedProcess[str], place: Path) -> Run:
    """All that a run gives: status, output, errors, files; they are taken away."""
    files = {}
    for path in sorted((*place.glob("out/*"), *place.glob("ut_error_data*/*"))):
        name = blank(str(path.relative_to(place)).encode()).decode()
        if path.suffix != ".shard":
            assert name not in files
            files[name] = blank(path.read_bytes())
        path.unlink()
    for directory in place.glob("ut_error_data*"):
        assert re.fullmatch(r"ut_error_data\d{14}", directory.name), "of a part"
        directory.rmdir()
    return (done.returncode, blank(done.stdout.encode()).decode(),
            blank(done.stderr.encode()).decode(), files)


def part(place: Path, index: int, count: int, *words: object,
         python: Path | str = "") -> subprocess.CompletedProcess[str]:
    """One part."""
    return plumb(place, "precheck", *words, "--shard", f"{index}/{count}", python=python)


def merged(place: Path, count: int, *words: object) -> Run:
    """What the parts give together, the last one made first."""
    for index in reversed(range(count)):
        done = part(place, index, count, *words)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"shard {index} of {count}: ")
    return outcome(plumb(place, "merge", "out"), place)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Calls that pass, are wrong, crash, raise, and cannot be run; one entry is damaged."""
    made = small_model(3)
    for name in ("celu", "relu"):
        made.call(f"Functional.{name}.0", [tensor([3])], [tensor([3])], [tensor([3])])
    made.call("Distributed.all_reduce.0", [tensor([3])], [tensor([3])])
    made.call("Torch.bernoulli.0", [tensor([3], low=0.0)], [tensor([3])])
    made.document["data"] = json.loads(json.dumps(made.document["data"]))  # shares nothing
    made.document["data"]["Functional.linear.1.forward"]["input_args"] = 7
    return made.write(tmp_path / "recorded")


@pytest.mark.parametrize(("counts", "more"), [
    ((1, 2, 5), ["--format", "html,junit", "--save_error_data", "--fail-on", "error"]),
    ((40,), ["--json", "-f"]),
    ((2,), ["--fail-on", "skip", "-d", "0", "-n", "2", "--format", "csv"])])
def test_parts_are_the_one_run(tmp_path, dump, counts, more):
    words = [dump, "-o", "out", "--device_type", "cpu", "--sorted", "--python",
             broken_python(tmp_path, SPOILED), *more]
    whole = outcome(plumb(tmp_path, "precheck", *words), tmp_path)
    assert whole[0] == (1 if "--fail-on" in more else 0), whole[2]
    details = whole[3]["out/accuracy_checking_details_T.csv"].decode()
    for word in ("pass", "error", "crashed: on the device: ", "random: ", "bad-argument: ",
                 "device-failed: RuntimeError: no \u00e9 kernel"):
        assert word in details, word
    assert ("ut_error_dataT/Functional.softmax.0.json" in whole[3]) == ("--save_error_data" in more)
    for count in counts:
        assert merged(tmp_path, count, *words) == whole


def test_rows_are_sorted_without_being_asked(tmp_path, dump):
    words = [dump, "-o", "out", "--device_type", "cpu"]
    whole = outcome(plumb(tmp_path, "precheck", *words, "--sorted"), tmp_path)
    assert merged(tmp_path, 3, *words) == whole


def test_a_recording_without_calls_that_can_be_run(tmp_path):
    """No part starts an interpreter."""
    made = Dump().call("Distributed.all_reduce.0", [tensor([3])], [tensor([3])])
    words = [made.write(tmp_path / "recorded"), "-o", "out", "--python", tmp_path / "dump.json",
             "--fail-on", "error"]
    whole = outcome(plumb(tmp_path, "precheck", *words), tmp_path)
    assert whole[0] == 1 and whole[1].startswith("nothing judged: ")
    assert merged(tmp_path, 2, *words) == whole


@pytest.mark.parametrize("model", ["resnet", "lstm"])
def test_a_trained_model(tmp_path, model):
    """A random small model, recorded while PyTorch trains it."""
    pytest.importorskip("transformers")
    run_script(Path(__file__).with_name("precheck_models.py"), "plumbline.pytorch", model,
               "float32", str(config(tmp_path, level="mix")))
    words = [tmp_path / "out" / "step0", "-o", "out", "--device_type", "cpu", "--sorted",
             "--format", "html,junit"]
    place = tmp_path / "checked"
    place.mkdir()
    whole = outcome(plumb(place, "precheck", *words), place)
    assert whole[0] == 0 and whole[1].startswith("no wrong API in "), whole[1]
    assert whole[3]["out/accuracy_checking_result_T.csv"].count(b"pass,pass") > 4
    assert merged(place, 3, *words) == whole


def test_what_does_not_fit_is_one_line(tmp_path, dump):
    words = [dump, "-o", "out", "--device_type", "cpu", "--format", "csv"]
    for more, text in [(["--csv_path", "a.csv"], "--shard: not with --csv_path"),
                       (["--engine", "ray"], "--shard: not with --engine"),
                       (["--address", "h:1"], "--address: belongs to --engine")]:
        done = part(tmp_path, 0, 2, *words, *more)
        assert done.returncode == 2 and text in line_of(done)
    done = plumb(tmp_path, "precheck", "--online", "--host", "127.0.0.1", "--port", "0",
                 "--tls_path", "", "--shard", "0/2")
    assert done.returncode == 2 and "--shard: takes a recording" in line_of(done)
    done = plumb(tmp_path, "precheck", *words, "--engine", "ray", "-d", "0")
    assert done.returncode == 2 and "--engine: not with -d" in line_of(done)
    done = part(tmp_path, 0, 2, "nothing/dump.json")
    assert done.returncode == 3 and "nothing" in line_of(done)

    assert part(tmp_path, 0, 2, *words).returncode == 0
    done = plumb(tmp_path, "merge", "out")
    assert done.returncode == 3
    assert "of 2 shards missing: 1. Run `plumb precheck ... --shard 1/2`" in line_of(done)
    assert part(tmp_path, 1, 2, *words, "--seed", "7").returncode == 0
    done = plumb(tmp_path, "merge", "out")
    assert done.returncode == 2 and "of two commands" in line_of(done)
    assert part(tmp_path, 1, 2, *words).returncode == 0
    document = dump.read_text()
    dump.write_text(document.replace('"Max": 1.0', '"Max": 1.5', 1))
    done = plumb(tmp_path, "merge", "out")
    assert done.returncode == 2 and "has changed since its calls were run" in line_of(done)
    assert part(tmp_path, 1, 2, *words).returncode == 0
    done = plumb(tmp_path, "merge", "out")
    assert done.returncode == 2 and "changed in between" in line_of(done)
    dump.write_text(document)
    shard = tmp_path / "out" / "precheck_1_of_2.shard"
    shard.write_text(shard.read_text().replace("torch.float32", "torch.float64", 1))
    assert plumb(tmp_path, "merge", "out").returncode == 5
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".shard"}


def test_shards_of_compare_beside_them_are_said(tmp_path, dump):
    words = [dump, "-o", "out", "--device_type", "cpu", "--format", "csv"]
    assert part(tmp_path, 0, 1, *words).returncode == 0
    for side in ("a", "b"):
        for rank in (0, 1):
            shutil.copytree(dump.parent, tmp_path / side / f"rank{rank}")
    done = plumb(tmp_path, "compare", "a", "b", "-o", "out", "--shard", "0/1")
    assert done.returncode == 0, done.stderr
    files = ["out/compare_ranks_0_of_1.shard", "out/precheck_0_of_1.shard"]
    for first, other, command in [(*files, "precheck"), (*reversed(files), "compare")]:
        done = plumb(tmp_path, "merge", first, other)
        assert done.returncode == 2
        assert f"{other}: is a shard of plumb {command}, others are of another" in line_of(done)
    assert plumb(tmp_path, "merge", "out").returncode == 2


def test_interpreter_without_plumbline_is_refused(tmp_path, dump):
    done = part(tmp_path, 0, 2, dump, "-o", "out", "--device_type", "cpu", "--python",
                broken_python(tmp_path, "import importlib.util as finder\n"
                                        "finder.find_spec = lambda name: None"))
    assert "with PLUMBLINE_PYTHON or, where the command has it, --python" in line_of(done)


def test_output_that_is_a_file_is_refused(tmp_path, dump):
    (tmp_path / "file").write_text("")
    done = part(tmp_path, 0, 2, dump, "-o", "file", "--device_type", "cpu")
    assert done.returncode == 6 and "file: cannot create directory" in line_of(done)


def test_a_configuration_that_changed(tmp_path, dump):
    """Its lists decide which calls are run."""
    settings = tmp_path / "config.json"
    settings.write_text('{"run_ut": {"black_list": ["softmax"]}}')
    words = [dump, "-o", "out", "--device_type", "cpu", "--config", settings]
    whole = outcome(plumb(tmp_path, "precheck", *words, "--sorted"), tmp_path)
    assert b"filtered: " in whole[3]["out/accuracy_checking_details_T.csv"]
    assert merged(tmp_path, 2, *words) == whole
    for index in (0, 1):
        assert part(tmp_path, index, 2, *words).returncode == 0
    settings.write_text('{"run_ut": {"black_list": ["topk"]}}')
    done = plumb(tmp_path, "merge", "out")
    assert done.returncode == 2 and "has changed since its calls were run" in line_of(done)


def test_parts_of_different_frameworks(tmp_path, dump):
    words = [dump, "-o", "out", "--device_type", "cpu"]
    other = broken_python(tmp_path, "torch.__version__ = '1.0'")
    assert part(tmp_path, 0, 2, *words).returncode == 0
    assert part(tmp_path, 1, 2, *words, python=other).returncode == 0
    done = plumb(tmp_path, "merge", "out")
    assert done.returncode == 2
    assert re.search(r"its calls ran in different places \(shard 0: pytorch \S+ on cpu; "
                     r"shard 1: pytorch 1\.0 on cpu\)", line_of(done))
    assert not list((tmp_path / "out").glob("*.csv"))


# Everything is wrong, and the last call never ends.
HANGING = """
add = torch.add
torch.add = lambda x, y: add(x, y) * (1.02 if x.dtype == torch.float32 else 1)
torch.topk = lambda *args: time.sleep(1000)"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_part_that_ends_early_is_run_again(tmp_path, dump, number):
    """Nothing of what it found is believed, kept calls included, nor an earlier shard."""
    words = [dump, "-o", "out", "--device_type", "cpu", "--save_error_data"]
    whole = outcome(plumb(tmp_path, "precheck", *words, "--sorted"), tmp_path)
    assert b",error," not in whole[3]["out/accuracy_checking_result_T.csv"]
    assert part(tmp_path, 0, 2, *words).returncode == 0
    python = broken_python(tmp_path, HANGING)
    with subprocess.Popen([PLUMB, "precheck", *map(str, words), "--shard", "0/2"], cwd=tmp_path,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PLUMBLINE_PYTHON": str(python)}) as running:
        limit = time.monotonic() + SECONDS
        while not list(tmp_path.glob("ut_error_data_*_0_of_2/Torch.add.*.json")):
            assert time.monotonic() < limit and running.poll() is None
            time.sleep(0.02)
        running.send_signal(number)
        _, errors = running.communicate(timeout=SECONDS)
    assert running.returncode == (130 if number == signal.SIGINT else -number)
    assert errors.startswith("plumb precheck: interrupted\n" if number == signal.SIGINT else "")
    assert not list((tmp_path / "out").iterdir())
    assert part(tmp_path, 1, 2, *words).returncode == 0
    done = plumb(tmp_path, "merge", "out")
    assert done.returncode == 3 and "of 2 shards missing: 0." in line_of(done)
    assert merged(tmp_path, 2, *words) == whole


def test_kept_calls_are_taken_once(tmp_path, dump):
    """A second merge says that they are gone, and gives the rest."""
    words = [dump, "-o", "out", "--device_type", "cpu", "--save_error_data", "--python",
             broken_python(tmp_path, SPOILED)]
    for index in (0, 1):
        assert part(tmp_path, index, 2, *words).returncode == 0
    first = plumb(tmp_path, "merge", "out")
    assert "error data" not in first.stderr and first.returncode == 0
    (kept,) = tmp_path.glob("ut_error_data*")
    names = sorted(path.name for path in kept.iterdir())
    assert "Functional.softmax.2.forward.output.device.0.pt" in names
    again = plumb(tmp_path, "merge", "out")
    assert again.returncode == 0 and "is not there any more" in line_of(again)
    assert sorted(path.name for path in kept.iterdir()) == names
