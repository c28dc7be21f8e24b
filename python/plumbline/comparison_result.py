"""What comparing functions return for two recordings, and what they share.

The native half is loaded on import of this module, so that recording does not load it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from plumbline import _compare, arguments, notebook

FORMATS = ("xlsx", "csv", "json", "html")
_VERDICTS = ("same", "within noise", "suspicious", "broken", "not comparable")
_MOST_THREADS = 4096  # as `plumb compare --threads`


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """What a comparison found. It has no truth value: ask for what you mean.

    Attributes:
        first_wrong_call: name of the first call that went wrong; None does not mean that all is
            well, see `answer`.
        answer: "first wrong call: NAME", "no wrong call" or "not judged..." with the reason.
        summary: all lines that `plumb compare` prints; the first is `answer`.
        details: of the first wrong call: name, what, item, stack_line, stack, module_path,
            enters_with_inputs, cause, cause_text, confidence.
        counts: rows per verdict ("same", "within noise", "suspicious", "broken", "not comparable"),
            "paired calls", "unmatched target", "unmatched golden", "unreadable files",
            "missing values" (without data, of another shape, or NaN on both sides).
        complete: whether every call and file could be judged.
        certainty: how far the answer can be trusted: `level` ("high": every element was compared;
            "medium"), `text`, what goes unseen, and `limit`, what was taken for noise.
        mode: "statistics", "md5" or "tensor".
        warnings: what the reader should know about the two recordings.
        files: the result files that were written.
        exit_code: 1 if a condition of `fail_on` is met, else 0.
    """

    first_wrong_call: str | None
    answer: str
    summary: str
    details: dict[str, Any] | None
    counts: dict[str, int]
    complete: bool
    certainty: dict[str, str]
    mode: str
    warnings: list[str]
    files: list[str]
    exit_code: int
    _native: _compare.Comparison = field(repr=False, compare=False)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per row as in compare_result_<time>.json; made when first asked for.

        NaN and infinities are the texts "nan", "inf" and "-inf".
        """
        rows: list[dict[str, Any]] = json.loads(self._native.result_json())["rows"]
        return rows

    @cached_property
    def columns(self) -> _compare.RowTable:
        """The rows as columns, those of the table `rows` of the result database.

        A mapping: `columns["error"]` is a NumPy view of the native numbers (NumPy must be
        installed), `columns["verdict"]` a list of texts. `pandas.DataFrame(dict(columns))` makes
        a table of them; pyarrow and polars take the whole without copying:
        `pyarrow.table(columns)`.
        """
        return self._native.row_table()

    @property
    def next_config(self) -> str:
        """The config.json whose recording would settle the cause; "" when there is none."""
        return self._native.next_config

    @property
    def first_divergence(self) -> dict[str, Any] | None:
        """`details`: name, numbers, cause, stack and modules of the first wrong call, or None."""
        return self.details

    @property
    def ok(self) -> bool:
        """Whether no condition of `fail_on` is met: `exit_code` is 0."""
        return self.exit_code == 0

    def to_xlsx(self, path: str | os.PathLike[str]) -> None:
        """Writes the workbook; appears complete or not at all."""
        self._write("xlsx", path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as CSV."""
        self._write("csv", path)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Writes the machine form, with every row."""
        self._write("json", path)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes the report page."""
        self._write("html", path)

    def to_sqlite(self, path: str | os.PathLike[str]) -> None:
        """Writes the database."""
        self._write("sqlite", path)

    def _write(self, name: str, path: str | os.PathLike[str]) -> None:
        """Writes one result file beside its place, then moves it there."""
        options = native_options([name], 0)
        with written_beside(arguments.path("path", path)) as folder:
            options.output_dir = folder
            _compare.write_comparison(self._native, options)

    def __repr__(self) -> str:
        """One line: the answer and how many rows it rests on."""
        rows = sum(self.counts.get(verdict, 0) for verdict in _VERDICTS)
        return f"<ComparisonResult: {self.answer} ({rows} rows, {self.mode})>"

    def _repr_html_(self) -> str:
        """The answer as notebooks show it: the summary and the counts."""
        return notebook.page(self.summary, self.counts)

    def __bool__(self) -> bool:
        """Raises TypeError: "it differs" and "it was judged" are two questions."""
        raise TypeError("ComparisonResult: has no truth value. Test exit_code or first_wrong_call.")


@contextlib.contextmanager
def written_beside(target: str) -> Iterator[str]:
    """An empty folder beside `target`; the file that is put into it is moved to `target`.

    What the operating system refuses names `target`, the only path that the caller knows.
    """
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "is a directory (expected the name of a file)",
                                target)
    parent = os.path.dirname(target) or "."
    if not os.path.isdir(parent):
        raise FileNotFoundError(errno.ENOENT, "no such directory to write into", target)
    folder = parent
    try:
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            yield folder
            [file] = os.listdir(folder)
            os.replace(os.path.join(folder, file), target)
    except OSError as error:
        if error.errno is not None:
            raise OSError(error.errno, error.strerror, target) from error
        text = str(error)  # of the native side: "PATH: what is wrong"
        if text.startswith(folder):
            text = target + text[text.find(":", len(folder)):]
        raise type(error)(text) from error


def conditions_of(fail_on: str | Iterable[str]) -> list[str]:
    """The words of fail_on; an unknown one is refused before the work."""
    conditions = arguments.words("fail_on", fail_on)
    _compare.Comparison().fails_on(conditions)
    return conditions


def native_options(formats: list[str], threads: int) -> _compare.CompareOptions:
    """Native options with the two that have a range."""
    options = _compare.CompareOptions()
    options.set_formats(formats)
    options.threads = arguments.count("threads", threads, _MOST_THREADS)
    return options


def result_of(native: _compare.Comparison, conditions: list[str]) -> ComparisonResult:
    """The facts of the machine form, without its rows."""
    facts = json.loads(native.summary_json())
    summary = native.summary_text()
    details = facts["first_wrong_call"]
    return ComparisonResult(
        first_wrong_call=details["name"] if details else None,
        answer=summary.partition("\n")[0],
        summary=summary,
        details=details,
        counts=facts["counts"],
        complete=facts["complete"],
        certainty=facts["certainty"],
        mode=facts["mode"],
        warnings=facts["warnings"],
        files=facts["files"],
        exit_code=int(native.fails_on(conditions)),
        _native=native,
    )
