"""plumbline.compare(): the same answer and the same bytes as the program `plumb`.

The dumps come from tests/golden/make_dumps.py and from upstream 1.2.2 (tests/data). PLUMB names the
program (default: the one beside this Python, then the one on PATH).
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB

import plumbline

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps  # noqa: E402

UPSTREAM = ROOT / "tests" / "data" / "upstream_1.2.2"
Make = Callable[[str], str]

# Target builder, golden builder, mode, the name of the first wrong call.
PAIRS = [
    ("sound", "sound", "statistics", None),
    ("wrong_scale", "sound", "statistics", "Torch.mul.1.forward"),
    ("wrong_eps", "sound", "statistics", "Torch.add.1.forward"),
    ("other_shape", "sound", "statistics", "Functional.relu.0.forward"),
    ("missing_call", "extra_call", "statistics", None),
    ("odd_target", "odd_golden", "statistics", "Torch.nan.0.forward"),
    ("sound_md5", "sound_md5", "md5", None),
    ("wrong_scale_md5", "sound_md5", "md5", "Torch.mul.1.forward"),
    ("sound_tensor", "sound_tensor", "tensor", None),
    ("wrong_scale_tensor", "sound_tensor", "tensor", "Torch.mul.1.forward"),
    ("broken_files", "sound_tensor", "tensor", None),
]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Builds a dump once per name and returns its directory."""

    def build(builder: str) -> str:
        directory = tmp_path / builder
        if not directory.exists():
            getattr(make_dumps, builder)(str(directory))
        return str(directory)

    yield build


def plumb(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs `plumb compare`."""
    return subprocess.run([PLUMB, "compare", *words], text=True, capture_output=True, check=False)


def by_suffix(files: list[str]) -> dict[str, Path]:
    return {Path(file).suffix: Path(file) for file in files}


def assert_as_the_program(target: str, golden: str, tmp_path: Path) -> Any:
    """Compares twice, in this process and by `plumb --json`; every fact and byte must agree."""
    done = plumb(target, golden, "-o", str(tmp_path / "program"), "--json", "--fail-on", "any")
    assert done.returncode in (0, 1), done.stderr
    facts = json.loads(done.stdout)
    result = plumbline.compare(target, golden, tmp_path / "here")
    answer = facts["first_wrong_call"]
    assert result.details == answer
    assert result.first_wrong_call == (answer["name"] if answer else None)
    assert result.counts == facts["counts"]
    assert result.complete is facts["complete"]
    assert result.mode == facts["mode"]
    assert result.warnings == facts["warnings"]
    assert result.exit_code == done.returncode
    ours, theirs = by_suffix(result.files), by_suffix(facts["files"])
    assert set(ours) == set(theirs) == {".csv", ".html", ".json", ".xlsx"}
    for suffix in (".csv", ".html", ".json"):
        assert ours[suffix].read_bytes() == theirs[suffix].read_bytes(), suffix
    assert ours[".xlsx"].stat().st_size > 1000
    assert {path.name for path in ours.values()} == set(os.listdir(tmp_path / "here"))
    return result


@pytest.mark.parametrize(("target", "golden", "mode", "wrong"), PAIRS)
def test_agrees_with_the_program(
    target: str, golden: str, mode: str, wrong: str | None, make: Make, tmp_path: Path
) -> None:
    result = assert_as_the_program(make(target), make(golden), tmp_path)
    assert result.mode == mode
    assert result.first_wrong_call == wrong
    assert result.answer == result.summary.splitlines()[0]
    if wrong:
        assert result.answer == f"first wrong call: {wrong}"


@pytest.mark.parametrize("name", ["l0_statistics", "mix_statistics", "mix_md5", "l1_tensor"])
def test_dumps_of_upstream_agree_with_the_program(name: str, tmp_path: Path) -> None:
    result = assert_as_the_program(str(UPSTREAM / name), str(UPSTREAM / name), tmp_path)
    assert result.first_wrong_call is None
    assert result.counts["paired calls"] == len(
        json.loads((UPSTREAM / name / "dump.json").read_text())["data"]
    )


@pytest.mark.parametrize(("target", "golden", "mode", "wrong"), PAIRS)
def test_summary_is_what_the_program_prints(
    target: str, golden: str, mode: str, wrong: str | None, make: Make, tmp_path: Path
) -> None:
    done = plumb(make(target), make(golden), "-o", str(tmp_path / "out"))
    printed = [line for line in done.stdout.splitlines() if not line.startswith("file: ")]
    assert plumbline.compare(make(target), make(golden)).summary.splitlines() == printed


@pytest.mark.parametrize("name", ["wrong_scale", "wrong_scale_md5", "wrong_scale_tensor"])
def test_rows_are_those_of_the_result_files(name: str, make: Make, tmp_path: Path) -> None:
    golden = make(name.replace("wrong_scale", "sound"))
    result = plumbline.compare(make(name), golden, tmp_path / "out", formats="csv,json")
    files = by_suffix(result.files)
    assert set(files) == {".csv", ".json"}
    assert result.rows == json.loads(files[".json"].read_text())["rows"]
    with files[".csv"].open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["verdict"] for row in result.rows] == [line["Verdict"] for line in table]
    for verdict in ("same", "within noise", "suspicious", "broken", "not comparable"):
        count = sum(row["verdict"] == verdict for row in result.rows)
        assert result.counts[verdict] == count
    assert result.rows is result.rows  # parsed once


def test_without_directory_nothing_is_written(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, golden = make("wrong_scale"), make("sound")
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    result = plumbline.compare(target, golden)
    assert result.files == []
    assert result.rows
    assert list(empty.iterdir()) == []


def dump(directory: Path, output: list[float]) -> Path:
    """A statistics dump of one call with a sound input."""
    recording = make_dumps.Recording(str(directory))
    recording.call("Torch.f.0.forward", [([1.0, 2.0], [2])], [(output, [2])])
    recording.write()
    return directory


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("side", ["target", "golden", "both"])
def test_non_finite_is_never_good(bad: float, side: str, tmp_path: Path) -> None:
    wrong, right = [bad, 1.0], [2.0, 1.0]
    target = dump(tmp_path / "target", right if side == "golden" else wrong)
    golden = dump(tmp_path / "golden", right if side == "target" else wrong)
    result = plumbline.compare(target, golden)
    (output,) = [row for row in result.rows if row["role"] == "output"]
    if side == "both":
        # One statistic that is NaN or infinite hides the other elements: nobody can say "same".
        assert output["verdict"] == "not comparable"
        assert output["reason"] == "nonfinite-both"
    else:
        assert output["verdict"] == "broken"
        assert result.first_wrong_call == "Torch.f.0.forward"
        assert result.exit_code == 1
        assert plumbline.compare(target, golden, fail_on=["broken"]).exit_code == 1


def test_when_nothing_could_be_judged_the_exit_code_says_so(tmp_path: Path) -> None:
    for name in ("target", "golden"):
        recording = make_dumps.Recording(str(tmp_path / name))
        nan = [float("nan"), 1.0]
        recording.call("Torch.f.0.forward", [(nan, [2])], [(nan, [2])])
        recording.write()
    result = plumbline.compare(tmp_path / "target", tmp_path / "golden")
    assert result.answer.startswith("not judged")
    assert result.exit_code == 1
    words = [str(tmp_path / "target"), str(tmp_path / "golden"), "-o", str(tmp_path / "out")]
    assert plumb(*words, "--fail-on", "any").returncode == 1


def test_nan_in_a_tensor_file_is_never_good(tmp_path: Path) -> None:
    for name, value in (("target", float("nan")), ("golden", 2.0)):
        recording = make_dumps.Recording(str(tmp_path / name), task="tensor")
        recording.call("Torch.f.0.forward", [([1.0], [1])], [([value, 1.0], [2])])
        recording.write()
    result = plumbline.compare(tmp_path / "target", tmp_path / "golden")
    assert result.first_wrong_call == "Torch.f.0.forward"
    assert result.counts["broken"] == 1


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [((), 0), ("any", 1), (["unmatched"], 0), ("unmatched,suspicious", 1), (("broken",), 1),
     ("wrong", 1), (("unjudged",), 0)],
)
def test_exit_code_is_that_of_fail_on(
    conditions: Any, expected: int, make: Make, tmp_path: Path
) -> None:
    target, golden = make("wrong_scale"), make("sound")
    assert plumbline.compare(target, golden, fail_on=conditions).exit_code == expected
    words = conditions if isinstance(conditions, str) else ",".join(conditions)
    options = ["--fail-on", words] if words else []
    done = plumb(target, golden, "-o", str(tmp_path / "out"), *options)
    assert done.returncode == expected


# Overridden arguments, exception, what its message names.
BAD = [
    ({"golden": "{dir}/nowhere"}, FileNotFoundError, "nowhere"),
    ({"target": ""}, ValueError, "target"),
    ({"golden": "{dir}/sound\0x"}, ValueError, "golden"),
    ({"output_dir": "{dir}/\ud800"}, ValueError, "output_dir"),
    ({"target": "{make}/truncated"}, plumbline.CorruptDataError, "byte"),
    ({"target": "{make}/not_json"}, plumbline.CorruptDataError, "dump.json"),
    ({"target": "{make}/structure_task"}, ValueError, "structure"),
    ({"target": "{make}/sound_md5"}, ValueError, "md5"),
    ({"target": "{make}/sound_tensor"}, ValueError, "task"),
    ({"formats": "pdf"}, ValueError, "formats"),
    ({"formats": ""}, ValueError, "formats"),
    ({"fail_on": "worse"}, ValueError, "worse"),
    ({"threads": -1}, ValueError, "threads"),
    ({"threads": 5000}, ValueError, "threads"),
    ({"stack_path": "{dir}/no_stack.json"}, FileNotFoundError, "no_stack.json"),
    ({"output_dir": "{dir}/occupied"}, OSError, "occupied"),
    ({"output_dir": "{dir}/occupied/below"}, OSError, "occupied"),
    ({"output_dir": ""}, ValueError, "output_dir"),
    ({"target": 3}, TypeError, ""),
]


@pytest.mark.parametrize(("changes", "exception", "text"), BAD)
def test_bad_input_is_an_exception_that_names_it(
    changes: dict[str, Any], exception: type[Exception], text: str, make: Make, tmp_path: Path
) -> None:
    arguments: dict[str, Any] = {
        "target": make("sound"), "golden": make("sound"), "output_dir": str(tmp_path / "out"),
    }
    (tmp_path / "occupied").write_text("x")
    for key, value in changes.items():
        if isinstance(value, str) and "{make}" in value:
            value = make(value.removeprefix("{make}/"))
        arguments[key] = value.replace("{dir}", str(tmp_path)) if isinstance(value, str) else value
    with pytest.raises(exception) as caught:
        plumbline.compare(**arguments)
    assert text in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "occupied").read_text() == "x"


def test_directory_that_refuses_files_is_an_os_error(make: Make) -> None:
    # /proc refuses new directories even for root.
    with pytest.raises(OSError, match="/proc/plumbline"):
        plumbline.compare(make("sound"), make("sound"), "/proc/plumbline")


def test_truncated_dump_is_salvaged_and_not_called_good(make: Make, tmp_path: Path) -> None:
    target, golden = make("truncated"), make("sound")
    result = plumbline.compare(target, golden, salvage=True)
    assert not result.complete
    assert result.answer.startswith("not judged completely")
    assert result.exit_code == 1
    done = plumb(target, golden, "--salvage", "--json", "-o", str(tmp_path / "out"))
    assert json.loads(done.stdout)["counts"] == result.counts


def test_options_reach_the_comparison(make: Make, tmp_path: Path) -> None:
    target = make("sound")
    renumbered = tmp_path / "renumbered"
    shutil.copytree(target, renumbered)
    for name in ("dump.json", "stack.json", "construct.json"):
        file = renumbered / name
        file.write_text(file.read_text().replace("Functional.relu.0.", "Functional.relu.5."))
    for fuzzy in (False, True):
        result = plumbline.compare(renumbered, target, fuzzy_match=fuzzy)
        assert result.counts["unmatched target"] == 0
        notes = [note["code"] for row in result.rows for note in row["notes"]]
        assert set(notes) == {"fuzzy" if fuzzy else "renumbered"}
    cells = tmp_path / "cells.yaml"
    cells.write_text("blocks: layers\n")
    for name in ("dump.json", "stack.json", "construct.json"):
        file = renumbered / name
        file.write_text(file.read_text().replace("Module.layers.", "Module.blocks."))
    mapped = plumbline.compare(renumbered, target, mappings={"cell": cells})
    notes = [note["code"] for row in mapped.rows for note in row["notes"]]
    assert "mapped" in notes
    with pytest.raises(ValueError, match="mappings"):
        plumbline.compare(target, target, mappings={"data": True})
    advised = plumbline.compare(target, target, tmp_path / "advice", formats=(), write_advice=True)
    assert [Path(file).name[:8] for file in advised.files] == ["advisor_"]
    headers = []
    for index, show in enumerate((True, False)):
        out = tmp_path / f"stack{index}"
        shown = plumbline.compare(target, target, out, formats="csv", show_stack=show)
        headers.append(Path(shown.files[0]).read_text().splitlines()[0])
    assert "NPU_Stack_Info" in headers[0]
    assert "NPU_Stack_Info" not in headers[1]


def test_threads_do_not_change_the_bytes(make: Make, tmp_path: Path) -> None:
    tables = set()
    for threads in (1, 2, 7):
        out = tmp_path / f"out{threads}"
        pair = make("wrong_scale_tensor"), make("sound_tensor")
        result = plumbline.compare(*pair, out, formats="csv", threads=threads)
        tables.add(Path(result.files[0]).read_bytes())
    assert len(tables) == 1


def test_result_is_frozen_and_has_no_truth_value(make: Make) -> None:
    result = plumbline.compare(make("sound"), make("sound"))
    with pytest.raises(AttributeError):
        result.answer = "no wrong call"  # type: ignore[misc]
    with pytest.raises(TypeError, match="exit_code"):
        bool(result)


def test_other_threads_run_meanwhile(tmp_path: Path) -> None:
    calls = {}
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0,
              "Min": 0.0, "Mean": 0.5, "Norm": 1.0, "requires_grad": False}
    for index in range(30000):
        calls[f"Torch.f.{index}.forward"] = {
            "input_args": [tensor], "input_kwargs": {}, "output": [tensor]}
    header = {"task": "statistics", "level": "L1", "dump_data_dir": None, "data": calls}
    (tmp_path / "dump.json").write_text(json.dumps(header))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(plumbline.compare(tmp_path, tmp_path)))
    plumbline.compare(UPSTREAM / "mix_md5", UPSTREAM / "mix_md5")  # loads the module
    ticks = 0
    thread.start()
    while thread.is_alive():
        time.sleep(0.002)
        ticks += 1
    assert found[0].counts["same"] == 60000
    assert ticks >= 10


def test_recording_does_not_load_the_analysis_half() -> None:
    code = """
import sys, plumbline
assert "compare" in dir(plumbline)
assert "plumbline._compare" not in sys.modules
maps = open("/proc/self/maps").read()
assert "libsqlite3" not in maps and "libtbb" not in maps
from plumbline import ComparisonResult, compare
import plumbline.comparison
assert compare is plumbline.compare is plumbline.comparison.compare and callable(compare)
assert "libsqlite3" in open("/proc/self/maps").read()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="compair"):
        plumbline.compair  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(("argument", "value", "error"), [
    ("target", b"bytes", TypeError), ("golden", None, TypeError), ("output_dir", 3, TypeError),
    ("noise", b"x", TypeError), ("stack_path", 3, TypeError), ("threads", "2", TypeError),
    ("threads", 2.5, TypeError), ("threads", -1, ValueError), ("threads", 2**70, ValueError),
    ("fuzzy_match", "no", TypeError), ("show_stack", 1, TypeError), ("suffix", 3, TypeError),
    ("formats", 3, TypeError), ("formats", [3], TypeError), ("fail_on", None, TypeError),
    ("mappings", ["a"], TypeError), ("mappings", {"data": 3}, TypeError),
    ("thread", 2, TypeError)])
def test_wrong_arguments_are_named(make: Make, argument: str, value: Any,
                                   error: type[Exception]) -> None:
    given = {"target": make("sound"), "golden": make("sound"), argument: value}
    with pytest.raises(error, match=rf"\b{argument}\b") as caught:
        plumbline.compare(**given)
    assert "\n" not in str(caught.value)
    assert argument == "thread" or "expected" in str(caught.value)


@pytest.mark.parametrize(("argument", "value", "error"), [
    ("ranks", "0", TypeError), ("ranks", [-1], ValueError), ("ranks", [1.5], TypeError),
    ("steps", 3, TypeError), ("steps", [2**70], ValueError), ("resume", "x", TypeError)])
def test_wrong_arguments_for_ranks_are_named(tmp_path: Path, argument: str, value: Any,
                                             error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"^{argument}: .*expected") as caught:
        plumbline.compare_ranks(tmp_path, tmp_path, tmp_path, **{argument: value})
    assert "\n" not in str(caught.value)
