"""plumbline.precheck(): the same run and rows as the command, from Python."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from precheck_dumps import SECONDS, broken_python, precheck, result_file, rows, small_model, tensor
from warm_interpreter import warm_python

import plumbline

WRONG_LINEAR = """
linear = torch.nn.functional.linear
def wrong(x, weight, bias):
    return linear(x, weight, bias) + (0.5 if x.dtype == torch.float32 else 0)
torch.nn.functional.linear = wrong"""


@pytest.fixture(autouse=True)
def _warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no test names an interpreter."""
    monkeypatch.setenv("PLUMBLINE_PYTHON", warm_python())


def test_rows_are_those_of_the_command(tmp_path: Path) -> None:
    dump = small_model().write(tmp_path)
    python = broken_python(tmp_path, WRONG_LINEAR)
    result = plumbline.precheck(dump, tmp_path / "api", "cpu", python=python, sorted=True)
    done = precheck(dump, tmp_path / "command", "--sorted", "--python", python)
    assert result.answer == done.stdout.splitlines()[0]
    assert result.answer.startswith("wrong: Functional.linear.0 forward")
    assert result_file(tmp_path / "api", "details").read_bytes() == result_file(
        tmp_path / "command", "details").read_bytes()
    truth = rows(tmp_path / "api", "details")
    assert [row["name"] for row in result.rows] == [row[0] for row in truth]
    assert [row["status"] for row in result.rows] == [row[-2] for row in truth]
    for row, cells in zip(result.rows, truth, strict=True):
        cell = cells[5].strip()
        assert row["max_abs_error"] == (float(cell) if cell else None)
    assert result.calls == [
        {"call": row[0], "forward": row[1].strip(), "backward": row[2].strip(), "message": ""}
        for row in rows(tmp_path / "api")]
    assert result.counts["error"] == 1 == result.exit_code
    assert not result.ok
    assert result.worst[0]["as_test"].startswith("plumb extract ")
    assert {Path(file).suffix for file in result.files} == {".csv", ".html"}
    assert all(Path(file).exists() for file in result.files)


def test_columns_are_arrays(tmp_path: Path) -> None:
    dump = small_model().write(tmp_path)
    result = plumbline.precheck(dump, device="cpu", sorted=True)
    columns = result.columns
    assert columns.names == list(result.rows[0])
    assert columns.row_count == len(result.rows)
    cosine = columns["cosine"]
    assert isinstance(cosine, np.ndarray) and cosine.dtype == np.float64
    for value, row in zip(cosine, result.rows, strict=True):
        assert np.isnan(value) if row["cosine"] is None else value == row["cosine"]
    assert columns["status"] == [row["status"] for row in result.rows]
    table = pytest.importorskip("pyarrow").table(columns)
    assert table.column_names == columns.names
    assert table["cosine"].null_count == sum(row["cosine"] is None for row in result.rows)


def test_without_an_output_nothing_stays(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = small_model().write(tmp_path / "dump")
    for name in ("scratch", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    monkeypatch.chdir(tmp_path / "here")
    result = plumbline.precheck(dump, device="cpu")
    assert result.ok and result.files == []
    assert "written:" not in result.summary
    assert len(list((tmp_path / "scratch").iterdir())) == 1
    result.to_html("page.html")
    result.to_xlsx("table.xlsx")
    result.to_junit("cases.xml")
    assert Path("page.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(FileNotFoundError, match="nonesuch"):
        result.to_html("nonesuch/page.html")
    del result
    assert list((tmp_path / "scratch").iterdir()) == []
    with pytest.raises(plumbline.UnsupportedError, match="nonesuch"):
        plumbline.precheck(dump, device="nonesuch")
    assert list((tmp_path / "scratch").iterdir()) == []
    assert sorted(path.name for path in Path().iterdir()) == ["cases.xml", "page.html",
                                                              "table.xlsx"]


def test_conditions(tmp_path: Path) -> None:
    dump = small_model().call("Torch.rand.0", [], [tensor([3])]).write(tmp_path)
    result = plumbline.precheck(dump, device="cpu", fail_on="error,warning")
    assert result.exit_code == 0
    assert [cause["cause"] for cause in result.skipped] == ["random"]
    assert plumbline.precheck(dump, device="cpu", fail_on=["skip"]).exit_code == 1
    with pytest.raises(TypeError, match="no truth value"):
        bool(result)
    assert repr(result) == f"<PrecheckResult: {result.answer} (6 calls)>"
    assert "no wrong API" in result._repr_html_()


@pytest.mark.parametrize(("arguments", "error", "said"), [
    ({"dump": "nonesuch.json"}, FileNotFoundError, "nonesuch.json"),
    ({"dump": 3}, TypeError, "dump: 3"),
    ({"devices": [0, 0]}, ValueError, "devices: "),
    ({"devices": "0"}, TypeError, "devices: "),
    ({"devices": [5]}, ValueError, r"devices: \[5\] with device 'cpu' .*the CPU is one device"),
    ({"devices": [0, 1]}, ValueError, r"devices: \[0, 1\] with device 'cpu'"),
    ({"workers": 65}, ValueError, "workers: 65"),
    ({"workers": 0}, ValueError, r"workers: 0 \(expected 1 to 64\)"),
    ({"api_timeout": 0}, ValueError, "api_timeout: 0"),
    ({"api_timeout": "1"}, TypeError, "api_timeout: '1'"),
    ({"formats": "pdf"}, ValueError, "pdf"),
    ({"fail_on": "everything"}, ValueError, "everything"),
    ({"dedupe": "no"}, TypeError, "dedupe: 'no'"),
    ({"config": "nonesuch.json"}, FileNotFoundError, "nonesuch.json"),
    ({"python": "/no/such/python"}, FileNotFoundError, "/no/such/python"),
])
def test_wrong_arguments_are_named(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, object],
        error: type[Exception], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    words = {"dump": small_model().write(tmp_path), "device": "cpu", **arguments}
    with pytest.raises(error, match=said):
        plumbline.precheck(**words)


def test_a_run_goes_on_and_lists_apply(tmp_path: Path) -> None:
    dump = small_model().write(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"task": "run_ut", "run_ut": {"white_list": ["softmax"],
                                                               "black_list": []}}))
    first = plumbline.precheck(dump, tmp_path / "out", "cpu", config=config, formats="csv")
    assert first.counts["pass"] == 1 and first.counts["SKIP"] == 4
    again = plumbline.precheck(dump, device="cpu", resume=first.files[0], retry_skipped=True)
    assert again.counts["pass"] == 5
    assert again.files[0] == first.files[0]
    assert len(rows(tmp_path / "out")) == 5


HANG = "torch.nn.functional.celu = lambda *args, **kwargs: time.sleep(1000)"


def test_other_threads_run_meanwhile(tmp_path: Path) -> None:
    dump = small_model().write(tmp_path)
    beats: list[float] = []
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(0.02):
            beats.append(time.monotonic())

    thread = threading.Thread(target=beat)
    thread.start()
    begin = time.monotonic()
    plumbline.precheck(dump, device="cpu")
    end = time.monotonic()
    stop.set()
    thread.join()
    during = [at for at in beats if begin < at < end]
    assert len(during) > 5
    assert max(b - a for a, b in itertools.pairwise(during)) < (end - begin) / 2


def test_ctrl_c_ends_it_and_the_files_go_on(tmp_path: Path) -> None:
    dump = small_model().call("Functional.celu.0", [tensor([3])], [tensor([3])]).write(tmp_path)
    output = tmp_path / "out"
    program = ("import sys, plumbline\n"
               "try:\n    plumbline.precheck(sys.argv[1], sys.argv[2], 'cpu', python=sys.argv[3])\n"
               "except KeyboardInterrupt:\n    print('interrupted')\n")
    with subprocess.Popen(
            [sys.executable, "-c", program, dump, output, broken_python(tmp_path, HANG)],
            stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        end = time.monotonic() + SECONDS
        # On either side one call may wait behind the one that hangs.
        while not list(output.glob("*result*")) or len(rows(output)) < 3:
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert said == "interrupted\n"
    assert process.returncode == 0
    result = plumbline.precheck(dump, device="cpu", resume=result_file(output))
    assert result.counts["pass"] == 6
