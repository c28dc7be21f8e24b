"""Writes a recorded call as a unit test; the program beside `plumb extract`.

    python -m plumbline.precheck_run.extract

Descriptor 3 is a stream socket for lines, 4 and 5 are the memories of the inputs of the target and
of the golden run. One request comes, one answer goes:

    <- {"name", "target": REQUEST, "golden": REQUEST or null, "bytes": [TARGET, GOLDEN],
        "directory", "run", "golden_run", "device", "reduce": bool, "seconds"}
    -> {"test": path, "fails": bool, "lines": [...]} or {"error": text}
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from plumbline.precheck_run.case_script import DATA_FILE, About, function_text, script
from plumbline.precheck_run.executor import one_line
from plumbline.precheck_run.extracted_case import Case, Expected, expect, judge, load
from plumbline.precheck_run.pytorch import load as load_framework
from plumbline.precheck_run.reduce_case import Reduction, reduce_case

CONTROL, FIRST_MEMORY = 3, 4


def extract(request: dict[str, Any], target: memoryview, golden: memoryview) -> dict[str, Any]:
    """Writes the folder; what to tell the user.

    Raises:
        ValueError: the call cannot be made here, with what it raised.
        OSError: the folder cannot be written.
    """
    device = request["device"]
    load_framework(device)
    case = load(request, target, golden)
    function_text(case)
    try:
        expected = expect(case)
    except Exception as error:
        raise ValueError(f"the call does not run in float64 on this CPU: {one_line(error)}") \
            from error
    before = judge(case, case.target, device, expected)
    lines: list[str] = []
    if request["reduce"]:
        case, lines = _reduced(case, request, before.fails)
        expected = expect(case)
    found = judge(case, case.target, device, expected)
    lines = [_told(found.error, found.problem, device), *_told_golden(case, device, expected),
             *lines]
    about = About(request["name"], request["run"], request["golden_run"], device)
    test = _write(Path(request["directory"]), case, expected, about)
    return {"test": str(test), "fails": found.fails, "lines": lines}


def _told(error: str, problem: str, device: str) -> str:
    if error:
        return f"cannot run here on {device}: {error}"
    return f"fails here on {device}: {problem}" if problem else f"passes here on {device}"


def _told_golden(case: Case, device: str, expected: Expected) -> list[str]:
    if case.golden is None:
        return []
    right = judge(case, case.golden, device, expected)
    what = right.error or right.problem
    return [f"with the golden run's arguments it {'fails too: ' + what if what else 'passes'}"]


def _reduced(case: Case, request: dict[str, Any], fails: bool) -> tuple[Case, list[str]]:
    device = request["device"]
    if not fails:
        return case, [f"not reduced: it does not fail on {device}"]
    before = case.size_bytes
    case, reduction = reduce_case(case, device, request["seconds"])
    return case, [_told_reduction(before, case.size_bytes, reduction)]


def _told_reduction(before: int, after: int, reduction: Reduction) -> str:
    text = (f"reduced: {before} bytes of tensors to {after}; {reduction.tried} smaller forms were "
            f"tried, {reduction.kept} of them failed too")
    return text + " (stopped at the time limit)" if reduction.is_out_of_time else text


def _write(directory: Path, case: Case, expected: Expected, about: About) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    name = about.call.replace(".", "_").replace("__", "_")
    test = directory / f"test_{name}.py"
    data = {"tensors": case.tensors, "expected": expected.values}
    write_all({directory / DATA_FILE: lambda path: torch.save(data, path),
               test: lambda path: path.write_text(script(case, expected, about), encoding="utf-8")})
    return test


def write_all(files: dict[Path, Callable[[Path], Any]]) -> None:
    """Writes each file under a name of its own first, so that none is there in part."""
    for path, write in files.items():
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            write(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _extract(request: dict[str, Any], memories: list[memoryview]) -> dict[str, Any]:
    return extract(request, memories[0], memories[1])


def serve_one(answer: Callable[[dict[str, Any], list[memoryview]], dict[str, Any]]) -> int:
    """Answers the requests on descriptor 3, each with the memories behind it; the exit status."""
    control = socket.socket(fileno=CONTROL)
    with control, control.makefile("r") as lines:
        for line in lines:
            try:
                request = json.loads(line)
                memories = [memoryview(mmap.mmap(FIRST_MEMORY + place, size) if size else b"")
                            for place, size in enumerate(request["bytes"])]
                found = answer(request, memories)
            except Exception as error:
                found = {"error": str(error) if isinstance(error, ValueError) else one_line(error)}
            control.sendall(json.dumps(found).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(serve_one(_extract))
