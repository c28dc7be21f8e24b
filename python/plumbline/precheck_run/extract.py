"""Writes a recorded call as a unit test; the program beside `plumb extract`.

    python -m plumbline.precheck_run.extract

Descriptor 3 is a stream socket for lines, 4 and 5 are the memories of the inputs of the target and
of the golden run. One request comes; notes and one answer go:

    <- {"name", "target": REQUEST, "golden": REQUEST or null, "bytes": [TARGET, GOLDEN],
        "directory", "run", "golden_run", "device", "call_seconds", "reduce": bool, "seconds"}
    -> {"note": text}
    -> {"test": path, "fails": bool, "lines": [...]} or {"error": text}, with "is_io": true where
       the system refused something
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch

from plumbline.precheck_run.case_limits import (
    Expected,
    Judgement,
    expect,
    judge,
    judge_target,
)
from plumbline.precheck_run.case_process import CaseProcess, LostError, RaisedError
from plumbline.precheck_run.case_script import (
    DATA_FILE,
    REDUCED_DATA_FILE,
    About,
    function_text,
    script,
)
from plumbline.precheck_run.executor import one_line
from plumbline.precheck_run.extracted_case import Case, Side, load
from plumbline.precheck_run.pytorch import load as load_framework
from plumbline.precheck_run.reduce_case import Reduction, kind_of, reduce_case

CONTROL, FIRST_MEMORY = 3, 4


def extract(request: dict[str, Any], memories: list[memoryview],
            tell: Callable[[str], None]) -> dict[str, Any]:
    """Writes the folder; what to tell the user.

    Raises:
        ValueError: no test can be made of the call here; says why.
        OSError: the folder cannot be written.
    """
    device = request["device"]
    load_framework(device)
    with CaseProcess(request["call_seconds"]) as process:
        case = load(request, *memories)
        function_text(case)
        bench = _Bench(process, device)
        found = bench.examine(case)
        about = About(request["name"], request["run"], request["golden_run"], device,
                      request["call_seconds"] if found.target.is_stuck else None)
        test = _write(Path(request["directory"]), case, found, about, DATA_FILE)
        lines: list[str] = []
        if request["reduce"]:
            # From here on the user may end this at any time.
            tell(f"written: {test}; now it is made smaller for at most {request['seconds']:g} s")
            smaller, lines = _reduced(case, found, bench, request["seconds"])
            if smaller is not None:
                case, found = smaller
                test = _write(Path(request["directory"]), case, found, about, REDUCED_DATA_FILE)
    return {"test": str(test), "fails": found.target.fails,
            "lines": [*found.lines(device), *lines]}


@dataclass(frozen=True)
class _Found:
    """What is expected of a case, and what its sides make of it."""

    expected: Expected
    target: Judgement
    golden: Judgement | None

    def lines(self, device: str) -> list[str]:
        """For the user."""
        told = [_told(self.target, device)]
        if self.golden is not None:
            what = self.golden.error or self.golden.problem
            told.append("with the golden run's arguments it "
                        + (f"fails too: {what}" if what else "passes"))
        return told + [f"{name} is not judged: {reason}"
                       for name, reason in self.expected.left_out.items()]


def _told(target: Judgement, device: str) -> str:
    if target.error:
        return f"cannot run here on {device}: {target.error}"
    return f"fails here on {device}: {target.problem}" if target.fails \
        else f"passes here on {device}"


class _Bench:
    """Finds out about cases in the process beside this one."""

    def __init__(self, process: CaseProcess, device: str) -> None:
        self._process = process
        self._device = device

    def examine(self, case: Case) -> _Found:
        """Raises ValueError if nothing can be expected of it."""
        try:
            expected = self._process.call(expect, case)
        except (RaisedError, LostError) as error:
            if isinstance(error, RaisedError) and error.is_refusal:
                raise ValueError(str(error)) from error
            raise ValueError("this CPU cannot say what is right, as the call "
                             + (f"raises there: {error}" if isinstance(error, RaisedError)
                                else f"{error} there")) from error
        golden = self._judge(case, case.golden, expected) if case.golden else None
        return _Found(expected, self._judge(case, case.target, expected), golden)

    def _judge(self, case: Case, side: Side, expected: Expected) -> Judgement:
        try:
            return self._process.call(judge, case, side, self._device, expected)
        except LostError as lost:
            return Judgement(str(lost), is_stuck=lost.is_stuck)
        except RaisedError as error:
            return Judgement(error=str(error))

    def problem_of(self, case: Case, seconds: float) -> str:
        """What is wrong with the target's side; empty: nothing, or nothing that can be said."""
        end = time.monotonic() + seconds
        try:
            found = self._process.call(judge_target, case, self._device, seconds=seconds)
        except RaisedError:
            return ""
        except LostError as lost:
            left = end - time.monotonic()
            # With the time that is left the limit of a call may not have been reached.
            is_known = left > 0 and self._is_expected(case, left)
            return str(lost) if is_known else ""
        if found.error and self._device.partition(":")[0] != "cpu":
            self._process.end()  # a device that raised may raise at everything from then on
        return found.problem

    def _is_expected(self, case: Case, seconds: float) -> bool:
        try:
            self._process.call(expect, case, seconds=seconds)
        except (LostError, RaisedError):
            return False
        return True


def _reduced(case: Case, found: _Found, bench: _Bench,
             seconds: float) -> tuple[tuple[Case, _Found] | None, list[str]]:
    """A smaller case, if there is one, and what was done."""
    if not found.target.fails:
        return None, ["not reduced: it does not fail"]
    smaller, reduction = reduce_case(case, seconds, bench.problem_of)
    told = [_told_reduction(case.size_bytes, smaller.size_bytes, reduction)]
    try:
        again = bench.examine(smaller)
    except ValueError:
        return None, [*told, "the smaller form cannot be judged any more: the whole one was kept"]
    if kind_of(again.target.problem) != kind_of(found.target.problem):
        return None, [*told, "the smaller form does not always fail: the whole one was kept"]
    return (smaller, again), told


def _told_reduction(before: int, after: int, reduction: Reduction) -> str:
    text = (f"reduced: {before} bytes of tensors to {after}; {reduction.tried} smaller forms were "
            f"tried, {reduction.kept} of them failed too")
    return text + " (stopped at the time limit)" if reduction.is_out_of_time else text


def _write(directory: Path, case: Case, found: _Found, about: About, data_file: str) -> Path:
    """The test is changed at once, from one data file to the other."""
    name = about.call.replace(".", "_").replace("__", "_")
    test = directory / f"test_{name}.py"
    text = script(case, found.expected, about, data_file)
    data = {"tensors": case.tensors, "expected": found.expected.values}
    write_all({directory / data_file: lambda path: save(data, path),
               test: lambda path: path.write_text(text, encoding="utf-8")})
    for other in {DATA_FILE, REDUCED_DATA_FILE} - {data_file}:
        (directory / other).unlink(missing_ok=True)
    return test


class _Kept:
    """A file that keeps the error of the system, of which torch.save() says something else."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """As of files."""
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        """As of files."""
        try:
            self._file.flush()
        except OSError as error:
            self.error = error
            raise


def save(data: Any, path: Path) -> None:
    """torch.save(); raises OSError if the file cannot be written."""
    with path.open("wb") as file:
        kept = _Kept(file)
        try:
            torch.save(data, kept)  # type: ignore[arg-type]
        except Exception as error:
            raise kept.error or error from None


def write_all(files: dict[Path, Callable[[Path], Any]]) -> None:
    """Writes all files or none: each under a name of its own first, which it loses last.

    Raises:
        OSError: says which file.
    """
    made: list[Path] = []
    temporaries = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in files}
    try:
        for path, write in files.items():
            _make_directory(path.parent, made)
            _with_name(path, write, temporaries[path])
        for path, temporary in temporaries.items():
            _with_name(path, temporary.replace, path)
    except BaseException:
        for temporary in temporaries.values():
            with contextlib.suppress(OSError):
                temporary.unlink()
        for directory in reversed(made):
            with contextlib.suppress(OSError):  # somebody else has put something there
                directory.rmdir()
        raise


def _make_directory(directory: Path, made: list[Path]) -> None:
    missing = [one for one in (directory, *directory.parents) if not one.exists()]
    for one in reversed(missing):
        _with_name(one, one.mkdir)
        made.append(one)


def _with_name(path: Path, work: Callable[..., Any], *arguments: Any) -> None:
    """Does the work; what the system says of it gets the name of the file."""
    try:
        work(*arguments)
    except OSError as error:
        raise OSError(error.errno, f"{path}: cannot be written: {error.strerror or error}") \
            from error


def serve_one(
    answer: Callable[[dict[str, Any], list[memoryview], Callable[[str], None]], dict[str, Any]]
) -> int:
    """Answers the requests on descriptor 3, each with the memories behind it; the exit status."""
    control = socket.socket(fileno=CONTROL)

    def send(message: dict[str, Any]) -> None:
        control.sendall(json.dumps(message).encode() + b"\n")

    with control, control.makefile("r") as lines:
        for line in lines:
            try:
                request = json.loads(line)
                memories = [memoryview(mmap.mmap(FIRST_MEMORY + place, size) if size else b"")
                            for place, size in enumerate(request["bytes"])]
                found = answer(request, memories, lambda text: send({"note": text}))
            except OSError as error:
                found = {"error": error.strerror or one_line(error), "is_io": True}
            except Exception as error:
                found = {"error": str(error) if isinstance(error, ValueError) else one_line(error)}
            send(found)
    return 0


if __name__ == "__main__":
    sys.exit(serve_one(extract))
