"""Static-graph dumps for tests: the recorded ones unpacked, and other forms of them."""

from __future__ import annotations

import pathlib
import shutil
import zipfile

import numpy as np

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "static_graph"
HEADER = ("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
          "Max Value,Min Value,Avg Value,L2Norm Value")


def unpack(name: str, to: pathlib.Path) -> pathlib.Path:
    """Writes the recorded dump `name` ("golden" or "target") below `to`; returns its root."""
    root = to / name
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        archive.extractall(root)
    return root


def write_statistics(source: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """The same dump as statistic.csv, as MindSpore writes it on devices that can: six digits and a
    comma at the end of every row but the header."""
    for directory in sorted({path.parent for path in source.rglob("*.npy")}):
        lines = [HEADER]
        files = sorted(directory.glob("*.npy"), key=lambda path: int(path.name.split(".")[4]))
        for path in files:
            kind, name, task, stream, time, io, slot, _, dtype, _ = path.name.split(".")
            values = np.load(path)
            wide = values.astype(np.float64)
            shape = '"(' + ",".join(map(str, values.shape)) + ')"'
            norm = np.sqrt((wide * wide).sum())
            lines.append(f"{kind},{name},{task},{stream},{time},{io},{slot},{values.nbytes},"
                         f"{dtype.lower()},{shape},{wide.max():g},{wide.min():g},{wide.mean():g},"
                         f"{norm:g},")
        out = to / directory.relative_to(source)
        out.mkdir(parents=True)
        (out / "statistic.csv").write_text("\n".join(lines) + "\n")
    return to


def as_device_layout(source: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """rank_{r}/{net}/{graph}/{step} as {time}/{device}/{model}/{model id}/{step}."""
    for directory in {path.parent for path in source.rglob("*") if path.is_file()}:
        parts = directory.relative_to(source).parts
        if len(parts) != 4 or not parts[0].startswith("rank_"):
            continue
        rank, net, graph, step = parts
        out = to / "20260101010101" / rank.removeprefix("rank_") / net / graph / step
        shutil.copytree(directory, out)
    return to
