"""The rows of a comparison as columns: NumPy views, and the Arrow C stream read with ctypes."""

from __future__ import annotations

import ctypes
import gc
import json
import math
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

import plumbline

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps  # noqa: E402


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


# Members as https://arrow.apache.org/docs/format/CDataInterface.html names them.
Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.POINTER(Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))),
    ("private_data", ctypes.c_void_p)]
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))), ("private_data", ctypes.c_void_p)]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))), ("private_data", ctypes.c_void_p)]


def texts_of(array: Array, count: int) -> list[str]:
    """The texts of a large_utf8 array."""
    ends = ctypes.cast(array.buffers[1], ctypes.POINTER(ctypes.c_int64))
    data = ctypes.string_at(array.buffers[2], ends[count]) if ends[count] else b""
    return [data[ends[i]:ends[i + 1]].decode() for i in range(count)]


def values_of(schema: Schema, array: Array) -> list[Any]:
    """One column as Python values, read from its buffers."""
    kinds: dict[bytes, Any] = {b"l": ctypes.c_int64, b"g": ctypes.c_double, b"i": ctypes.c_int32}
    values: list[Any]
    if schema.format == b"U":
        values = texts_of(array, array.length)
    else:
        numbers = ctypes.cast(array.buffers[1], ctypes.POINTER(kinds[schema.format]))
        values = numbers[:array.length]
    if schema.dictionary:
        assert schema.dictionary.contents.format == b"U"
        words = array.dictionary.contents
        of_code = texts_of(words, words.length)
        values = [of_code[code] if code < len(of_code) else None for code in values]
    if array.buffers[0]:
        valid = ctypes.cast(array.buffers[0], ctypes.POINTER(ctypes.c_uint8))
        values = [value if valid[i // 8] >> i % 8 & 1 else None for i, value in enumerate(values)]
    assert array.null_count == sum(value is None for value in values)
    return values


def table_of(columns: Any) -> dict[str, list[Any]]:
    """All columns, through the stream; every part is released as a consumer must."""
    capsule = columns.__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, b"arrow_array_stream")
    stream = ctypes.cast(address, ctypes.POINTER(Stream))
    schema, array, end = Schema(), Array(), Array()
    assert stream.contents.get_schema(stream, schema) == 0
    assert stream.contents.get_next(stream, array) == 0
    assert stream.contents.get_next(stream, end) == 0
    assert not end.release  # one batch
    assert schema.format == b"+s" and schema.n_children == array.n_children
    del columns, capsule  # frees the stream; what it gave lives on
    gc.collect()
    table = {}
    for i in range(schema.n_children):
        child = schema.children[i].contents
        table[child.name.decode()] = values_of(child, array.children[i].contents)
        assert len(table[child.name.decode()]) == array.length
    schema.release(schema)
    array.release(array)
    assert not schema.release and not array.release
    return table


@pytest.fixture()
def result(tmp_path: Path) -> plumbline.ComparisonResult:
    """Of two runs that differ."""
    make_dumps.wrong_scale(str(tmp_path / "new"))
    make_dumps.sound(str(tmp_path / "good"))
    return plumbline.compare(tmp_path / "new", tmp_path / "good")


def test_stream_holds_the_rows_of_the_database(result: Any, tmp_path: Path) -> None:
    result.to_sqlite(tmp_path / "a.db")
    with sqlite3.connect(tmp_path / "a.db") as database:
        cursor = database.execute("SELECT * FROM rows ORDER BY row")
        names = [column[0] for column in cursor.description]
        stored = dict(zip(names, zip(*cursor.fetchall(), strict=True), strict=True))
    table = table_of(result.columns)
    assert list(table) == names == result.columns.names
    assert len(table["row"]) == result.columns.row_count == len(result.rows)
    for name, values in table.items():
        for ours, theirs in zip(values, stored[name], strict=True):
            if theirs == "nan":
                assert math.isnan(ours), name
            elif isinstance(theirs, str) and ours is None:
                assert name.startswith(("target_", "golden_")), name  # a text among numbers
            else:
                assert ours == theirs, name


def test_numbers_are_views_that_outlive_the_result(result: Any) -> None:
    numpy = pytest.importorskip("numpy")
    expected = [row["error"] for row in result.rows]
    columns = result.columns
    errors, again = columns["error"], columns["error"]
    assert errors.dtype == numpy.float64 and not errors.flags.writeable
    assert errors.ctypes.data == again.ctypes.data  # no copies
    assert columns["call"].dtype == numpy.int64
    del result, columns, again
    gc.collect()
    for ours, theirs in zip(errors.tolist(), expected, strict=True):
        assert ours == theirs or (math.isnan(ours) and theirs == "nan")


def test_texts_and_unknown_names(result: Any) -> None:
    assert result.columns["verdict"] == [row["verdict"] for row in result.rows]
    assert result.columns["notes"] == [
        "; ".join(f"[{note['code']}] {note['text']}" for note in row["notes"]) or None
        for row in result.rows]
    with pytest.raises(KeyError, match="nothing"):
        result.columns["nothing"]


def test_it_is_a_mapping(result: Any) -> None:
    pytest.importorskip("numpy")
    columns = result.columns
    copy = dict(columns)
    assert list(copy) == list(columns) == columns.keys() == columns.names
    assert len(columns) == len(copy)
    assert "error" in columns and "nothing" not in columns and 3 not in columns
    assert copy["verdict"] == [row["verdict"] for row in result.rows]
    for (name, item), value in zip(columns.items(), columns.values(), strict=True):
        assert len(item) == len(value) == columns.row_count, name
        assert [str(one) for one in item] == [str(one) for one in value], name


def test_pandas_takes_the_table(result: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(dict(result.columns))
    assert list(frame.columns) == result.columns.names
    assert frame["verdict"].tolist() == result.columns["verdict"]
    assert frame["call"].tolist() == result.columns["call"].tolist()


def test_pyarrow_takes_the_table(result: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(result.columns)
    table.validate(full=True)
    assert table.column("verdict").to_pylist() == result.columns["verdict"]


def test_no_rows(tmp_path: Path) -> None:
    for side in ("a", "b"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "dump.json").write_text(json.dumps(
            {"task": "statistics", "level": "L1", "framework": "pytorch", "data": {}}))
    empty = plumbline.compare(tmp_path / "a", tmp_path / "b").columns
    assert empty.row_count == 0
    assert all(values == [] for values in table_of(empty).values())
