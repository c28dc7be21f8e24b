"""plumb precheck killed again and again, and continued until it is done.

PLUMBLINE_PRECHECK_KILLS is how many kills there are in all (default: as many as take half a
minute).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from precheck_dumps import SECONDS, precheck, result_file, rows, small_model
from recording import PLUMB

KILLS = int(os.environ.get("PLUMBLINE_PRECHECK_KILLS", "10"))
MARK = "PLUMBLINE_KILLED_RUN"
STEP_SECONDS = 0.001


def processes_with(mark: str) -> list[int]:
    """Every process whose environment has the mark, whoever its parent is by now."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


def size_of(output: Path) -> int:
    """Bytes of the result file; 0: there is none yet."""
    return sum(path.stat().st_size for path in output.glob("accuracy_checking_result_*.csv"))


class KilledRun:
    """A run that is started, killed at some moment, and goes on when it is started again."""

    def __init__(self, dump: Path, output: Path, drawn: random.Random, whole: int) -> None:
        self._command = [PLUMB, "precheck", dump, "-o", output, "--device_type", "cpu", "--sorted",
                         "--format", "csv"]
        self._output = output
        self._drawn = drawn
        self._whole = whole

    def is_killed(self) -> bool:
        """Runs once; false: it came to its end before."""
        words: list[str | Path] = list(self._command)
        if size_of(self._output) > 0:
            words += ["--csv_path", result_file(self._output)]
        mark = uuid.uuid4().hex
        with subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
                env={**os.environ, "PLUMBLINE_PYTHON": sys.executable, MARK: mark}) as process:
            self._await_moment(process)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            _, errors = process.communicate(timeout=SECONDS)
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        expect_none_left(mark)
        return process.returncode != 0

    def _await_moment(self, process: subprocess.Popen[bytes]) -> None:
        """When so many rows are written; now and then at any time, also before the first one."""
        drawn = self._drawn
        rows_until = size_of(self._output) + drawn.uniform(0, 0.4) * self._whole
        seconds = drawn.uniform(0, 3) if drawn.random() < 0.2 else SECONDS
        later = drawn.choice((0, 0, drawn.uniform(0, 0.05)))  # while rows are sorted, or after
        end = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < end:
            if size_of(self._output) > rows_until:
                time.sleep(later)
                return
            time.sleep(STEP_SECONDS)


def expect_none_left(mark: str) -> None:
    """No executor outlives a run that was killed."""
    end = time.monotonic() + 20
    while left := processes_with(mark):
        assert time.monotonic() < end, left
        time.sleep(0.01)


def test_sorted_files_are_those_of_a_run_that_nobody_killed(tmp_path: Path) -> None:
    dump = small_model(40).write(tmp_path)
    done = precheck(dump, tmp_path / "whole", "--sorted", "--format", "csv")
    assert done.returncode == 0, done.stderr
    expected = [result_file(tmp_path / "whole", kind).read_bytes()
                for kind in ("result", "details")]
    seed = int(os.environ.get("PLUMBLINE_PRECHECK_KILLS_SEED", "24"))
    drawn = random.Random(seed)
    kills, runs = 0, 0
    while kills < KILLS:
        runs += 1
        output = tmp_path / str(runs)
        run = KilledRun(dump, output, drawn, len(expected[0]))
        while run.is_killed():
            kills += 1
        result = result_file(output)
        details = output / result.name.replace("result", "details")
        where = f"seed {seed}, run {runs}, {kills} kills"
        assert [result.read_bytes(), details.read_bytes()] == expected, where
        assert len(rows(output)) == 200
    print(f"{kills} kills in {runs} runs")


def test_the_marks_of_processes_are_found() -> None:
    mark = uuid.uuid4().hex
    with subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: mark}) as process:
        environment = Path(f"/proc/{process.pid}/environ")
        while not environment.read_bytes():  # between its start and its program
            time.sleep(0.001)
        assert processes_with(mark) == [process.pid]
        process.kill()
    assert processes_with(mark) == []
