"""TrainerMon's pictures of Adam: the counts in them against histograms by NumPy in float64."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from monitor_training import TwoLayers, directory_of, train, watched
from torch import nn

LEFT, TOP, WIDTH, BIN = 48, 28, 384, 8  # of the part of a picture that has the counts
BINS, MOST_COLUMNS = 30, 128
HEAT = {"ur_distribution": True, "format": "tensorboard"}


@pytest.fixture(autouse=True)
def one_seed() -> None:
    """Every test begins at the same random numbers, on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)


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


class AdamTruth:
    """Histograms of update and ratio before each step, by NumPy in float64."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.columns: dict[str, list[np.ndarray]] = {}
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        optimizer.register_step_pre_hook(self._take)

    def _take(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state = optimizer.state.get(parameter)
                if state:
                    self._add(self._names[parameter], state, group)

    def _add(self, name: str, state: dict[str, Any], group: dict[str, Any]) -> None:
        step, (beta1, beta2) = float(state["step"]), group["betas"]
        mean = state["exp_avg"].numpy().astype(np.float64) / (1 - beta1 ** step)
        root = np.sqrt(state["exp_avg_sq"].numpy().astype(np.float64) / (1 - beta2 ** step))
        with np.errstate(invalid="ignore", divide="ignore"):
            vectors = {"update": mean / (root + group["eps"]), "ratio": mean / root}
        for kind, values in vectors.items():
            kept = values[np.isfinite(values)]
            counts = np.histogram(kept, bins=BINS, range=(-1, 1))[0]
            self.columns.setdefault(f"0:{name}/rank0/adam_{kind}", []).append(counts)


def trained(tmp_path: Path, steps: int, **options: Any) -> tuple[AdamTruth, list[float]]:
    """A training of two layers in two groups; what it must show, and its last weights."""
    model = TwoLayers()
    optimizer = torch.optim.Adam([
        {"params": model.fc1.parameters(), "betas": (0.8, 0.95)},
        {"params": model.fc2.parameters(), "eps": 1e-2}], lr=0.01)
    truth = AdamTruth(model, optimizer)
    if options:
        with watched(tmp_path, **options) as monitor:
            monitor.set_monitor(model, optimizer=optimizer)
            train(model, optimizer, steps)
    else:
        train(model, optimizer, steps)
    return truth, [one for value in model.parameters() for one in value.flatten().tolist()]


def test_every_count_is_numpys(tmp_path: Path) -> None:
    truth, weights = trained(tmp_path, 5, **HEAT, ops=["norm"])
    found = pictures_of(directory_of(tmp_path))
    assert set(found) == set(truth.columns) and len(found) == 8
    for tag, columns in truth.columns.items():
        assert sorted(found[tag]) == [1, 2, 3, 4]  # no moments before the first step
        for step, picture in found[tag].items():
            expect_counts(picture, columns[:step])
    torch.manual_seed(0)
    assert trained(tmp_path, 5)[1] == weights  # bit for bit what nobody watches


def test_old_steps_leave_the_picture(tmp_path: Path) -> None:
    steps = MOST_COLUMNS + 4
    truth, _ = trained(tmp_path, steps, **HEAT, targets={"fc2.bias": {}})
    found = pictures_of(directory_of(tmp_path))
    assert sorted(found) == ["0:fc2.bias/rank0/adam_ratio", "0:fc2.bias/rank0/adam_update"]
    for tag, pictures in found.items():
        expect_counts(pictures[steps - 1], truth.columns[tag][-MOST_COLUMNS:])


def test_other_formats_have_no_pictures(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    trained(tmp_path, 2, **{**HEAT, "format": "csv"}, param_distribution=True)
    assert "ur_distribution: ignored, pictures are written with" in "".join(capfd.readouterr())
    assert not list(directory_of(tmp_path).glob("events*"))


@pytest.mark.parametrize("broken", ["sgd", "no moment", "no step"])
def test_what_is_missing_is_told_once(tmp_path: Path, capfd: pytest.CaptureFixture,
                                      broken: str) -> None:
    model = TwoLayers()
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    optimizer = torch.optim.SGD(model.parameters(), 0.1) if broken == "sgd" else adam
    hidden: dict[str, Any] = {}

    def hide(*_: Any) -> None:
        state = optimizer.state.get(model.fc1.bias)
        if broken != "sgd" and state:
            key = "exp_avg_sq" if broken == "no moment" else "step"
            hidden[key] = state.pop(key)

    optimizer.register_step_pre_hook(hide)
    with watched(tmp_path, **HEAT) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)  # looks behind hide() and before the next
        optimizer.register_step_pre_hook(lambda *_: optimizer.state[model.fc1.bias].update(hidden))
        train(model, optimizer, 4)
    text = "".join(capfd.readouterr())
    assert text.count("ur_distribution: no picture of ") == 1, text
    found = pictures_of(directory_of(tmp_path))
    assert len(found) == (0 if broken == "sgd" else 6)
    assert not any("fc1.bias" in tag for tag in found)
