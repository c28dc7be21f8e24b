"""Checksums of bfloat16: of a float32 copy in release 1.2.2 and here, of its own bytes later."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

import plumbline

torch = pytest.importorskip("torch")

VALUES = [0.5, -1.25, 3.0, 7.5]


def write(directory: Path, values: list[float], newer: bool, file: bool = False,
          statistics: bool = True) -> Path:
    """A rank with one call, whose output is a bfloat16 and a float32 tensor of these values."""
    directory.mkdir()
    tensors: list[dict[str, Any]] = []
    for dtype in (torch.bfloat16, torch.float32):
        tensor = torch.tensor(values, dtype=dtype)
        raw = tensor.view(torch.uint8) if newer else tensor.float().view(torch.uint8)
        record: dict[str, Any] = {"type": "torch.Tensor", "dtype": str(dtype), "shape": [4]}
        if statistics:
            whole = tensor.float()
            record |= {"Max": whole.max().item(), "Min": whole.min().item(),
                       "Mean": whole.mean().item(), "Norm": whole.norm().item()}
        record |= {"requires_grad": False, "md5": f"{zlib.crc32(bytes(raw.tolist())):08x}"}
        if file:
            record["data_name"] = f"Torch.mul.0.forward.output.{len(tensors)}.pt"
            (directory / "dump_tensor_data").mkdir(exist_ok=True)
            torch.save(tensor, directory / "dump_tensor_data" / record["data_name"])
        tensors.append(record)
    name = "Torch.mul.0.forward"
    entry = {"input_args": [], "input_kwargs": {}, "output": tensors}
    (directory / "dump.json").write_text(json.dumps({
        "task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
        "data": {name: entry}}))
    frames = ["File a.py, line 1, in f, \n x = f(y)"]
    (directory / "stack.json").write_text(
        json.dumps({"0": [[name], frames]} if newer else {name: frames}))
    (directory / "construct.json").write_text("{}")
    return directory


def outcome(one: Path, other: Path) -> list[tuple[str, str]]:
    rows = plumbline.compare(one, other).rows
    return [(row["verdict"], row["reason"]) for row in rows]


SAME = ("same", "")


@pytest.mark.parametrize("newer", [False, True])
def test_within_one_release(tmp_path: Path, newer: bool) -> None:
    one, other = (write(tmp_path / name, VALUES, newer) for name in "ab")
    assert outcome(one, other) == [SAME, SAME]
    third = write(tmp_path / "c", [*VALUES[:3], 7.25], newer)
    assert all(reason == "digest-differs" for _, reason in outcome(third, other))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("statistics", [False, True])
def test_across_releases_without_files(tmp_path: Path, turned: bool, statistics: bool) -> None:
    pair = [write(tmp_path / "old", VALUES, False, statistics=statistics),
            write(tmp_path / "new", VALUES, True, statistics=statistics)]
    found = outcome(*(reversed(pair) if turned else pair))
    assert found == [("not comparable", "digest-basis"), SAME]


@pytest.mark.parametrize("turned", [False, True])
def test_across_releases_with_the_file_of_the_old_one(tmp_path: Path, turned: bool) -> None:
    old, new = (write(tmp_path / "old", VALUES, False, file=True),
                write(tmp_path / "new", VALUES, True))
    assert outcome(*((new, old) if turned else (old, new))) == [SAME, SAME]
    other = write(tmp_path / "other", [*VALUES[:3], 7.25], True)
    found = outcome(other, old) if turned else outcome(old, other)
    assert [reason for _, reason in found] == ["digest-differs"] * 2


def test_a_missing_file_or_a_broken_value_is_never_good(tmp_path: Path) -> None:
    old, new = (write(tmp_path / "old", VALUES, False, file=True),
                write(tmp_path / "new", VALUES, True))
    (old / "dump_tensor_data" / "Torch.mul.0.forward.output.0.pt").unlink()
    assert outcome(new, old)[0] == ("not comparable", "digest-basis")
    bad = write(tmp_path / "bad", [*VALUES[:3], float("nan")], True)
    assert outcome(bad, old)[0][0] == "broken"
