"""`plumb api_precision_compare`: what it says, what it refuses, and the files it writes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest
from precheck_files import DETAILS, read_csv, write_details
from recording import PLUMB

RMSE = DETAILS[11]
METRICS = DETAILS[10:15]  # what the benchmark standard looks at


def run(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True, check=False,
                          env=os.environ | {"COLUMNS": "80"}, timeout=120, **options)


def row(name: str = "Torch.sum.0.forward.output.0", **cells: object) -> dict[str, object]:
    """A float32 output that is as good on one side as on the other."""
    start: dict[str, object] = {"API Name": name, "Bench Dtype": "torch.float64",
                                "DEVICE Dtype": "torch.float32", "Shape": "(2, 3)",
                                "Status": "pass", "Message": ""}
    return start | dict.fromkeys(METRICS, 1e-5) | cells


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """Two files: `sum` is five times as bad on the target, `mean` is fine."""
    target, golden = tmp_path / "npu.csv", tmp_path / "gpu.csv"
    mean = row("Torch.mean.0.forward.output.0")
    write_details(target, [row(**{RMSE: 3e-4}), mean])
    write_details(golden, [row(), mean])
    return target, golden


def compare(sides: tuple[Path, Path], out: Path,
            *words: object) -> subprocess.CompletedProcess[str]:
    return run("api_precision_compare", "-npu", sides[0], "-gpu", sides[1], "-o", out, *words)


def test_the_first_line_is_the_answer(sides: tuple[Path, Path], tmp_path: Path) -> None:
    done = compare(sides, tmp_path / "new" / "out")
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == ("worst: Torch.sum.0.forward.output.0: root mean square error is 4.92 times "
                        "that of the reference (limit 2)")
    assert lines[1] == ("  calls: 2; forward: 1 pass, 1 error, 0 skipped; backward: 0 pass, 0 "
                        "error, 0 skipped")
    written = sorted((tmp_path / "new" / "out").iterdir())
    assert [path.name[:29] for path in written] == ["api_precision_compare_details",
                                                    "api_precision_compare_result_"]
    for path in written:
        assert path.stat().st_mode & 0o777 == 0o640
        assert str(path) in done.stdout
        data = path.read_bytes()
        assert data.startswith(b"\xef\xbb\xbf") and data.count(b"\xef\xbb\xbf") == 1
        assert data.endswith(b"\r\n")
    assert (tmp_path / "new" / "out").stat().st_mode & 0o777 == 0o750
    assert read_csv(written[1])[1:] == [["Torch.sum.0", "error", " ", ""],
                                        ["Torch.mean.0", "pass", " ", ""]]


def test_no_api_is_worse(sides: tuple[Path, Path], tmp_path: Path) -> None:
    done = compare((sides[1], sides[1]), tmp_path / "out", "--fail-on", "any")
    assert done.returncode == 0
    assert done.stdout.startswith("no API is worse than on the reference device: 2 outputs "
                                  "compared\n")


@pytest.mark.parametrize(("condition", "status"), [("error", 1), ("warning", 1), ("any", 1),
                                                   ("skip", 0), ("error,skip", 1)])
def test_fail_on(sides: tuple[Path, Path], tmp_path: Path, condition: str, status: int) -> None:
    assert compare(sides, tmp_path / "out", "--fail-on", condition).returncode == status


def test_nothing_compared_is_no_success(sides: tuple[Path, Path], tmp_path: Path) -> None:
    write_details(sides[1], [])
    done = compare(sides, tmp_path / "out", "--fail-on", "error")
    assert done.returncode == 1
    assert done.stdout.startswith("nothing was compared: 2 outputs without a decision; without a "
                                  "counterpart: 2 on the target\n")
    assert "without a counterpart: 2 on the target, 0 on the reference" in done.stdout


def test_json(sides: tuple[Path, Path], tmp_path: Path) -> None:
    done = compare(sides, tmp_path / "out", "--json")
    found = json.loads(done.stdout)
    assert found["worst"]["name"] == "Torch.sum.0.forward.output.0"
    assert found["answer"].startswith("worst: ")
    assert found["forward"] == {"pass": 1, "error": 1, "skip": 0} == found["outputs"]
    assert [Path(path).exists() for path in found["files"]] == [True, True]


@pytest.mark.parametrize("words", [
    ("api_precision_compare", "--npu_csv_path", "{0}", "--gpu_csv_path={1}", "--out_path", "{2}"),
    ("-f", "pytorch", "api_precision_compare", "-npu", "{0}", "-gpu", "{1}", "-o", "{2}"),
    ("msprobe", "-f", "pytorch", "api_precision_compare", "-npu", "{0}", "-gpu", "{1}", "-o",
     "{2}"),
    ("msprobe", "api_precision_compare", "--npu_csv_path={0}", "--gpu_csv_path", "{1}",
     "--out_path={2}"),
    ("msprobe", "api_precision_compare", "-npu={0}", "-gpu={1}", "-o", "{2}")])
def test_every_spelling(sides: tuple[Path, Path], tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(*(word.format(*sides, tmp_path / "out") for word in words))
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_without_a_directory_it_is_the_current_one(sides: tuple[Path, Path],
                                                   tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for _ in range(2):  # in the same second, too
        assert run("msprobe", "api_precision_compare", "-npu", sides[0], "-gpu", sides[1],
                   cwd=here).returncode == 0
    assert len(list(here.iterdir())) == 4


@pytest.mark.parametrize(("words", "status", "said"), [
    (("-npu", "{0}"), 2, "--gpu_csv_path is required"),
    (("-npu", "{0}", "-gpu", "{dir}/none.csv"), 3, "none.csv"),
    (("-npu", "{0}", "-gpu", "{dir}/text.csv"), 2,
     "text.csv: no column API Name, DEVICE Dtype, 小值域错误占比"),
    (("-npu", "{dir}/quotes.csv", "-gpu", "{1}"), 5, "text after the closing quote"),
    (("-npu", "{dir}/empty.csv", "-gpu", "{1}"), 2, "empty.csv: is empty"),
    (("-npu", "{dir}", "-gpu", "{1}"), 2, "directory"),
    (("-npu", "-gpu", "{1}"), 2, "expected a path"),
    (("-npu", "{0}", "-gpu", "{1}", "-o", "{0}"), 6, "npu.csv"),
    (("-npu", "{0}", "-gpu", "{1}", "--fail-on", "bad"), 2, "--fail-on")])
def test_wrong_use_is_one_line(sides: tuple[Path, Path], tmp_path: Path, words: tuple[str, ...],
                               status: int, said: str) -> None:
    (tmp_path / "text.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "quotes.csv").write_text('"a"b\n')
    done = run("api_precision_compare",
               *(word.format(*sides, dir=tmp_path) for word in words))
    assert done.returncode == status, done.stderr
    assert said in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""


def test_not_for_mindspore(sides: tuple[Path, Path]) -> None:
    done = run("msprobe", "-f", "mindspore", "api_precision_compare", "-npu", sides[0], "-gpu",
               sides[1])
    assert done.returncode == 2 and "not for -f mindspore" in done.stderr


def test_inputs_need_not_be_writable(sides: tuple[Path, Path], tmp_path: Path) -> None:
    for path in sides:
        path.chmod(0o444)
    before = [path.read_bytes() for path in sides]
    assert compare(sides, tmp_path / "out").returncode == 0
    assert [path.read_bytes() for path in sides] == before


def test_a_torn_line_is_left_out(sides: tuple[Path, Path], tmp_path: Path) -> None:
    text = sides[0].read_bytes()
    sides[0].write_bytes(text[:-9])
    done = compare(sides, tmp_path / "out")
    assert "calls: 1;" in done.stdout
    assert "0 on the target, 1 on the reference" in done.stdout


def test_damaged_rows_are_skipped_with_their_reason(sides: tuple[Path, Path],
                                                    tmp_path: Path) -> None:
    write_details(sides[0], [row(**{RMSE: "many"}), row("strange"),
                             row("Torch.mean.0.forward.output.0", Status="maybe")])
    compare(sides, tmp_path / "out")
    [path] = (tmp_path / "out").glob("*_details_*")
    rows = read_csv(path)[1:]
    assert [cells[25] for cells in rows] == ["SKIP"] * 3
    assert '"many" is no number' in rows[0][27] and "name" in rows[1][27]
    assert '"maybe" is no status' in rows[2][27]


def test_a_long_file_is_not_held_in_memory(tmp_path: Path) -> None:
    count, message = 40000, "x" * 2000
    target, golden = tmp_path / "npu.csv", tmp_path / "gpu.csv"
    for path in (target, golden):
        write_details(path, (row(f"Torch.sum.{i}.forward.output.0", Message=message)
                             for i in range(count)))
    limit = 64 << 20  # of 80 MiB of text on each side
    done = run("api_precision_compare", "-npu", target, "-gpu", golden, "-o", tmp_path,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
    assert done.returncode == 0, done.stderr
    assert f"{count} outputs compared" in done.stdout
