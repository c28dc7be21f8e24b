"""Tables of statistics of tensors, as dumps of static graphs have them, and their summary."""

from __future__ import annotations

import csv
import importlib
import math
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, str]
# rank -> iteration -> "{op}:{io}:{slot}" -> rows.
Statistics = dict[int, dict[int, dict[str, list[Row]]]]

_SUMMARY = ["op_type", "op_name", "tensor_name", "inf_number", "nan_number", "out_of_range_number",
            "total_number", "none_overflow_number", "total_iterations"]
_INFINITIES = ("positive inf count", "negative inf count")


class StatisticsFiles:
    """The `statistic.csv` files below a directory, by rank and iteration."""

    def __init__(self, root: str) -> None:
        self._paths: dict[tuple[int, int], list[Path]] = {}
        for path in sorted(Path(root).absolute().rglob("statistic.csv")):
            ranks = [part for part in path.parts if re.fullmatch(r"rank_\d+", part)]
            if ranks and path.parent.name.isdigit():
                key = (int(ranks[-1][5:]), int(path.parent.name))
                self._paths.setdefault(key, []).append(path)

    def rows(self, rank: int, iteration: int) -> dict[str, list[Row]] | None:
        """Rows of all graphs that ran in the iteration; None: there is no file."""
        paths = self._paths.get((rank, iteration))
        return None if paths is None else by_tensor(row for path in paths for row in _read(path))


def _read(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        for number, cells in enumerate(reader, 2):
            if len(cells) == len(header) + 1 and not cells[-1]:
                cells.pop()  # rows end with a comma that the header has not
            if len(cells) != len(header):
                warnings.warn(f"{path}: line {number} is left out: it has {len(cells)} fields "
                              f"(expected {len(header)})", stacklevel=4)
                continue
            yield dict(zip(header, cells, strict=True))


def by_tensor(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of each tensor, in their order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(_name_of(row), []).append(row)
    return found


def _name_of(row: Row) -> str:
    return ":".join(row.get(key, "") for key in ("Op Name", "IO", "Slot"))


def row_of(name: str, kind: str, io: str, slot: int, value: Any) -> Row:
    """What a table would say of a NumPy array. Extremes and mean are NaN where an element is; the
    counts called zero are those below and above zero, as the tables have it.
    """
    numpy = importlib.import_module("numpy")
    plain = numpy.abs(value) if numpy.iscomplexobj(value) else value
    wide = plain.astype(numpy.float64).ravel()
    finite = plain.dtype.kind in "biu"  # their extremes are exact
    known = {"Max Value": plain.max(), "Min Value": plain.min(), "Avg Value": wide.mean()
             } if wide.size else dict.fromkeys(("Max Value", "Min Value", "Avg Value"), math.nan)
    counts = {
        "Count": wide.size, "Negative Zero Count": (wide < 0).sum(),
        "Positive Zero Count": (wide > 0).sum(), "NaN Count": numpy.isnan(wide).sum(),
        "Negative Inf Count": numpy.isneginf(wide).sum(),
        "Positive Inf Count": numpy.isposinf(wide).sum(), "Zero Count": (wide == 0).sum()}
    numbers = {key: str(int(one)) if finite and key != "Avg Value" and wide.size
               else repr(float(one)) for key, one in known.items()}
    shape = f"({','.join(map(str, value.shape))})"
    return {"Op Type": kind, "Op Name": name, "IO": io, "Slot": str(slot),
            "Data Size": str(value.nbytes), "Data Type": str(value.dtype), "Shape": shape,
            **numbers, **{key: str(int(one)) for key, one in counts.items()}}


# ---- summary

def write_summary(statistics: Any, overflow_value: Any, out_path: Any) -> str:
    """See `DumpAnalyzer.summary_statistics`."""
    is_number = isinstance(overflow_value, (int, float)) and not isinstance(overflow_value, bool)
    if not is_number or not overflow_value >= 0:
        raise ValueError(f"overflow_value is {overflow_value!r} (expected a number of at least 0)")
    lines: dict[str, dict[str, Any]] = {}
    unknown: set[str] = set()
    for name, rows in _tensors_of(statistics):
        line = lines.setdefault(name, dict.fromkeys(_SUMMARY, 0))
        line.update(op_type=rows[0].get("Op Type", "") if rows else "",
                    op_name=name.rsplit(":", 2)[0], tensor_name=name)
        line["total_iterations"] += 1
        # Not a generator: every row is counted.
        if not all([_count(line, row, overflow_value) for row in rows]):
            unknown.add(name)
    if unknown:
        warnings.warn(f"of {len(unknown)} of {len(lines)} tensors, as {min(unknown)}, no largest "
                      "and smallest value was recorded: such rows are not in "
                      "none_overflow_number", stacklevel=3)
    path = Path(out_path) / "statistics_summary.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _SUMMARY)
        writer.writeheader()
        writer.writerows(lines.values())
    return str(path)


def _tensors_of(statistics: Any) -> list[tuple[str, list[Row]]]:
    try:
        return [(name, list(rows)) for rank in statistics.values() for table in rank.values()
                for name, rows in table.items()]
    except (AttributeError, TypeError):
        raise TypeError("statistics: expected what select_tensor_statistics() returned, "
                        f"got {type(statistics).__name__}") from None


def _count(line: dict[str, Any], row: Row, limit: float) -> bool:
    """Adds a row; False: what is in it does not say whether all is well."""
    cells = {key.lower(): text for key, text in row.items()}
    extremes = [_number(cells.get(key)) for key in ("max value", "min value")]
    infinite = any(map(math.isinf, extremes)) or any(
        _number(cells.get(key)) > 0 for key in _INFINITIES)
    strange = _number(cells.get("nan count")) > 0 or any(
        cells.get(key, "").lower() in ("nan", "-nan") for key in ("max value", "min value"))
    beyond = any(abs(one) > limit for one in extremes)
    # Tables that leave what is not finite out of the extremes write null where nothing is left.
    is_known = not any(map(math.isnan, extremes)) or infinite or strange
    line["inf_number"] += infinite
    line["nan_number"] += strange
    line["out_of_range_number"] += beyond
    line["total_number"] += 1
    line["none_overflow_number"] += is_known and not (infinite or strange or beyond)
    return is_known


def _number(text: str | None) -> float:
    """NaN for what is no number."""
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan
