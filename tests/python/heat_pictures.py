"""Reads the pictures of Adam that TrainerMon draws; needs no framework."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

LEFT, TOP, WIDTH, BIN = 48, 28, 384, 8  # of the part of a picture that has the counts
BINS, MOST_COLUMNS = 30, 128


def histogram(first: np.ndarray, second: np.ndarray, rule: tuple[float, float, float, float],
              kind: str) -> np.ndarray:
    """Counts of Adam's update or ratio, by NumPy in float64; `rule`: both betas, eps and step."""
    beta1, beta2, eps, step = rule
    mean = first.astype(np.float64) / (1 - beta1 ** step)
    root = np.sqrt(second.astype(np.float64) / (1 - beta2 ** step))
    with np.errstate(invalid="ignore", divide="ignore"):
        values = mean / (root + eps) if kind == "update" else mean / root
    return np.histogram(values[np.isfinite(values)], bins=BINS, range=(-1, 1))[0]


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a protocol buffer message."""
    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    at = 0
    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, message[at:at + size]
            at += size


def pixels(png: bytes) -> np.ndarray:
    """Rows of (red, green, blue) of a PNG whose rows have no filter."""
    at, parts = 8, {}
    while at < len(png):
        size = struct.unpack(">I", png[at:at + 4])[0]
        parts[png[at + 4:at + 8]] = png[at + 8:at + 8 + size]
        at += 12 + size
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, -1)
    return rows[:, 1:].reshape(height, width, 3)


def pictures_of(directory: Path) -> dict[str, dict[int, np.ndarray]]:
    """Tag -> step -> pixels, of the only event file."""
    [path] = directory.glob("events.out.tfevents.*")
    data, at, found = path.read_bytes(), 0, {}
    while at < len(data):
        size = struct.unpack("<Q", data[at:at + 8])[0]
        event = dict(fields(data[at + 12:at + 12 + size]))
        at += 16 + size
        for _, value in fields(event.get(5, b"")):
            parts = dict(fields(value))
            if 4 in parts:
                image = dict(fields(parts[4]))
                picture = pixels(image[4])
                assert picture.shape[:2] == (image[1], image[2])
                found.setdefault(parts[1].decode(), {})[event.get(2, 0)] = picture
    return found


def hot(count: int, largest: int) -> tuple[int, ...]:
    """matplotlib's colour "hot" of a count, in 256 shades."""
    share = int(255 * count / max(largest, 1) + 0.5) / 255
    red = 0.0416 + (1 - 0.0416) * share / 0.365079
    green = (share - 0.365079) / (0.746032 - 0.365079)
    blue = (share - 0.746032) / (1 - 0.746032)
    return tuple(int(255 * min(max(one, 0), 1) + 0.5) for one in (red, green, blue))


def counts_in(picture: np.ndarray, columns: int, largest: int) -> np.ndarray:
    """The matrix that a picture shows, told by its colours; -1: a colour of no count."""
    assert largest <= 255, "more counts than shades"
    known = {hot(count, largest): count for count in range(largest + 1)}
    assert len(known) == largest + 1
    found = np.zeros((BINS, columns), np.int64)
    for column in range(columns):
        middle = LEFT + (column * WIDTH // columns + (column + 1) * WIDTH // columns) // 2
        for row in range(BINS):
            color = tuple(picture[TOP + row * BIN + BIN // 2, middle].tolist())
            found[row, column] = known.get(color, -1)
    return found


def expect_counts(picture: np.ndarray, columns: list[np.ndarray]) -> None:
    """The picture shows these counts."""
    expected = np.stack(columns, axis=1)
    assert (counts_in(picture, len(columns), int(expected.max())) == expected).all()
