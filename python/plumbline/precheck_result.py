"""Running every recorded call again from Python: `plumbline.precheck()`.

Size caps: precheck() has an argument, with its sentence, for each option of the command.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from plumbline import _compare, arguments, notebook
from plumbline.comparison_result import written_beside

_CONDITIONS = ("error", "warning", "skip")
_MOST_WORKERS = 64  # as `plumb precheck -n`
_MOST_DEVICE = 4095
_MOST_SECONDS = 1e6


@dataclass(frozen=True, repr=False)
class PrecheckResult:
    """What a pre-check found. It has no truth value: ask for what you mean.

    Attributes:
        answer: "wrong: CALL DIRECTION OUTPUT: why", "no wrong API in ..." or "nothing judged...".
        summary: all lines that `plumb precheck` prints; the first is `answer`.
        counts: calls by status: "pass", "Warning", "error", "SKIP" and "none", each call with the
            worse one of its directions.
        skipped: why calls were not judged, the most frequent first: dicts with cause, calls,
            example, detail.
        worst: the calls that are furthest off, at most ten: dicts with call, output, status,
            reason, message, as_test (the command that makes a unit test of it).
        device: what was tested, "npu", "cpu".
        warnings: what the reader should know.
        files: the files that were written; none where no `output` was given.
        exit_code: 1 if a condition of `fail_on` is met, else 0.
    """

    answer: str
    summary: str
    counts: dict[str, int]
    skipped: list[dict[str, Any]]
    worst: list[dict[str, Any]]
    device: str
    warnings: list[str]
    files: list[str]
    exit_code: int
    _native: _compare.PrecheckReport = field(repr=False, compare=False)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per output, in the order of the details file.

        Keys are the names of `columns`. Without a number there is None; NaN and infinities are the
        texts "nan", "inf" and "-inf".
        """
        rows: list[dict[str, Any]] = json.loads(self._native.details_json())
        return rows

    @cached_property
    def calls(self) -> list[dict[str, str]]:
        """One dict per call: call, forward, backward, message; "" where nothing was to judge."""
        calls: list[dict[str, str]] = json.loads(self._native.calls_json())
        return calls

    @cached_property
    def columns(self) -> _compare.RowTable:
        """The rows as columns: name, dtypes, shape, the metrics, status, message.

        A mapping: `columns["max_abs_error"]` is a NumPy view of the native numbers (NumPy must be
        installed), `columns["status"]` a list of texts. `pandas.DataFrame(dict(columns))` makes a
        table of them; pyarrow and polars take the whole without copying: `pyarrow.table(columns)`.
        """
        return self._native.row_table()

    @property
    def ok(self) -> bool:
        """Whether no condition of `fail_on` is met: `exit_code` is 0."""
        return self.exit_code == 0

    def to_xlsx(self, path: str | os.PathLike[str]) -> None:
        """Writes the workbook; appears complete or not at all."""
        self._write("xlsx", path)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes the report page."""
        self._write("html", path)

    def to_junit(self, path: str | os.PathLike[str]) -> None:
        """Writes JUnit XML, a test case for each direction of a call."""
        self._write("junit", path)

    def _write(self, name: str, path: str | os.PathLike[str]) -> None:
        with written_beside(arguments.path("path", path)) as folder:
            self._native.write(name, os.path.join(folder, "file"))

    def __repr__(self) -> str:
        """One line: the answer and how many calls it rests on."""
        return f"<PrecheckResult: {self.answer} ({sum(self.counts.values())} calls)>"

    def _repr_html_(self) -> str:
        """The answer as notebooks show it: the summary and the counts."""
        return notebook.page(self.summary, self.counts)

    def __bool__(self) -> bool:
        """Raises TypeError: "it is wrong" and "it was judged" are two questions."""
        raise TypeError("PrecheckResult: has no truth value. Test exit_code or counts.")


def precheck(
    dump: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    device: str = "auto",
    *,
    devices: Iterable[int] = (0,),
    workers: int | None = None,
    bench_workers: int = 0,
    formats: str | Iterable[str] = ("html",),
    fail_on: str | Iterable[str] = ("error",),
    config: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    dedupe: bool = False,
    api_timeout: float = 600.0,
    resume: str | os.PathLike[str] | None = None,
    retry_skipped: bool = False,
    sorted: bool = False,
    save_error_data: bool = False,
    max_abs_error: float | None = None,
    python: str | os.PathLike[str] | None = None,
) -> PrecheckResult:
    """Runs every recorded call again, on the device and in raised precision on the CPU.

    The calls run in processes of their own, started with this interpreter. Ctrl-C ends the run;
    what was judged is in the files, from which `resume` goes on.

    Args:
        dump: a dump.json, or a rank or step directory, of level L1 or mix.
        output: where the files go, made when missing; None keeps none.
        device: "auto" (an NPU, else CUDA, else the CPU), "npu", "cuda", "cpu", or what PyTorch
            calls it.
        devices: numbers of the devices; the CPU is 0.
        workers: processes over all devices, at least 1; None: one per device.
        bench_workers: processes that compute the benchmark; 0: one per core.
        formats: files beside the two csv files: "xlsx", "html", "junit"; "csv": none.
        fail_on: what makes `exit_code` 1: "error" (calls that failed on the device, too), "warning"
            (both of them, too), "skip".
        config: a config.json with white and black lists.
        seed: of inputs that are drawn; None: that of `config`, else 1234.
        dedupe: of calls that differ in values alone run the first one.
        api_timeout: seconds after which a call is given up.
        resume: result file of an interrupted run to go on with.
        retry_skipped: with `resume`, also run calls again that were skipped.
        sorted: rows in the order of the recording.
        save_error_data: keep inputs and results of calls that do not pass, below the path that
            `config` names, else the working directory.
        max_abs_error: of MindSpore, what outputs may be off; None: 0.0001.
        python: another interpreter that has the framework.

    Raises:
        ValueError: an argument is wrong, or the recording cannot be pre-checked.
        OSError: a path is missing, or the operating system refused to read or write.
        plumbline.CorruptDataError: a file is damaged.
        plumbline.UnsupportedError: there is no such device, or no framework in the interpreter.
    """
    options = _compare.PrecheckOptions()
    warnings = options.load_settings("" if config is None else arguments.path("config", config))
    options.dump = arguments.path("dump", dump)
    options.device_type = arguments.text("device", device)
    options.devices = _devices(devices, options.device_type)
    if workers is not None:
        options.workers = arguments.count("workers", workers, _MOST_WORKERS, least=1)
    options.bench_workers = arguments.count("bench_workers", bench_workers, _MOST_WORKERS)
    if seed is not None:
        options.seed = arguments.count("seed", seed, 2**64 - 1)
    options.dedupe = arguments.flag("dedupe", dedupe)
    options.api_timeout = _positive("api_timeout", api_timeout, _MOST_SECONDS)
    options.retry_skipped = arguments.flag("retry_skipped", retry_skipped)
    options.sorted = arguments.flag("sorted", sorted)
    options.save_error_data = arguments.flag("save_error_data", save_error_data)
    if max_abs_error is not None:
        options.max_abs_error = _positive("max_abs_error", max_abs_error, sys.float_info.max)
    if resume is not None:
        options.resume_path = arguments.path("resume", resume)
    options.python = sys.executable if python is None else arguments.path("python", python)
    conditions = _conditions(fail_on)
    words = arguments.words("formats", formats)
    _compare.PrecheckReport.check_formats(words)
    if output is not None:
        options.output_dir = arguments.path("output", output)
    if output is not None or resume is not None:
        native = _compare.run_precheck(options)
        native.write_files(words)
        return _result_of(native, conditions, warnings, native.files())
    # The rows are read from files even where nothing is to be kept: these end with the result.
    folder = options.output_dir = tempfile.mkdtemp()
    try:
        result = _result_of(_compare.run_precheck(options), conditions, warnings, [])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(result, shutil.rmtree, folder, ignore_errors=True)
    return result


def _result_of(native: _compare.PrecheckReport, conditions: list[str], warnings: list[str],
               files: list[str]) -> PrecheckResult:
    """The facts of the machine form; without files the summary names none."""
    summary = native.summary_text()
    if not files:
        summary = "".join(line for line in summary.splitlines(keepends=True)
                          if not line.startswith("  written: "))
    facts = json.loads(native.summary_json())
    return PrecheckResult(
        answer=facts["answer"],
        summary=summary,
        counts=facts["calls"],
        skipped=facts["skipped"],
        worst=facts["worst"],
        device=facts["device"],
        warnings=[*warnings, *native.warnings],
        files=files,
        exit_code=int(native.fails_on(conditions)),
        _native=native,
    )


def _conditions(fail_on: str | Iterable[str]) -> list[str]:
    words = arguments.words("fail_on", fail_on)
    for word in words:
        if word not in _CONDITIONS:
            raise ValueError(f"fail_on: {word!r} is unknown (expected {', '.join(_CONDITIONS)})")
    return words


def _devices(devices: Iterable[int], device: str) -> list[int]:
    found = arguments.numbers("devices", devices)
    if not found or len(set(found)) != len(found) or max(found) > _MOST_DEVICE:
        raise ValueError(f"devices: {found} (expected different numbers from 0 to {_MOST_DEVICE})")
    if device == "cpu" and found != [0]:
        raise ValueError(f"devices: {found} with device 'cpu' (expected [0]: the CPU is "
                         "one device)")
    return found


def _positive(argument: str, value: Any, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{argument}: {value!r} is of type {type(value).__name__} "
                        "(expected a number)")
    if not 0 < value <= most:
        raise ValueError(f"{argument}: {value!r} (expected a number above 0 and at most {most:g})")
    return float(value)
