"""TrainerMon with DYNAMIC_MONITOR: the configuration is edited while the training runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor_training import (
    TwoLayers,
    directory_of,
    out_of,
    rows_of,
    train,
    watched,
    write_config,
)

OPTIONS = {"param_distribution": True, "ops": ["norm"]}


def steps_written(directory: Path, begin: dict[str, Any],
                  edits: dict[int, Callable[[Path], None]], dynamic: bool = True,
                  start_iteration: int = 0) -> list[int]:
    """Trains eight steps; edits[n] is called behind step n. Which steps were written."""
    torch.manual_seed(0)
    model = TwoLayers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = write_config(directory, **OPTIONS, **begin)
    # The monitor looks at the end of a step: hooks run in the order in which they were added.
    step = 0

    def edit(*_: Any) -> None:
        nonlocal step
        edits.get(step, lambda _: None)(path)
        step += 1

    with watched(directory, dynamic=dynamic) as monitor:
        handle = optimizer.register_step_pre_hook(edit)
        monitor.set_monitor(model, optimizer=optimizer, start_iteration=start_iteration)
        train(model, optimizer, steps=8)
        handle.remove()
    if not list(out_of(directory).glob("*-rank0-*")):
        return []
    return sorted({key[1] for key in rows_of(directory_of(directory), "param")})


def rewrite(**options: Any) -> Callable[[Path], None]:
    """An edit that writes a whole new configuration."""
    return lambda path: path.write_text(json.dumps({**OPTIONS, **options})) and None


def test_six_cases(tmp_path: Path) -> None:
    on = {"dynamic_on": True}
    every = list(range(8))
    assert steps_written(tmp_path / "static", {"dynamic_on": False}, {}, dynamic=False) == every
    assert steps_written(tmp_path / "idle", {"dynamic_on": False}, {}) == []
    assert not out_of(tmp_path / "idle").exists()
    assert steps_written(tmp_path / "on", on, {}) == every[1:]
    assert steps_written(tmp_path / "later", {}, {3: rewrite(**on)}) == [4, 5, 6, 7]
    changed = steps_written(tmp_path / "changed", {**on, "collect_times": 5},
                            {2: rewrite(**on, collect_times=2, step_interval=2)})
    assert changed == [1, 2, 4, 6]
    ended = {**on, "collect_times": 2}
    assert steps_written(tmp_path / "again", ended, {5: rewrite(**ended)}) == [1, 2, 6, 7]


def test_the_end_is_written_into_the_file(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    begin = {"dynamic_on": True, "collect_times": 2, "own": [1]}
    written = steps_written(tmp_path, begin, {
        step: lambda path: seen.append(json.loads(path.read_text())) for step in range(6)})
    assert written == [1, 2]
    assert [one["dynamic_on"] for one in seen] == [True, True, True, False, False, False]
    assert seen[-1] == {**OPTIONS, **begin, "dynamic_on": False}
    assert [path.name for path in tmp_path.iterdir()] == ["monitor_config.json", "out"]


def test_the_file_is_whole_at_every_moment(tmp_path: Path) -> None:
    """A reader beside the training never sees half of it, however often it is written."""
    ended = threading.Event()
    seen: list[bool] = []
    path = write_config(tmp_path, **OPTIONS, dynamic_on=True, collect_times=1)

    def read() -> None:
        while not ended.is_set():
            seen.append(json.loads(path.read_text())["dynamic_on"])

    reader = threading.Thread(target=read)
    torch.manual_seed(0)
    model = TwoLayers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watched(tmp_path, dynamic=True) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        reader.start()
        for run in range(40):
            train(model, optimizer, steps=3)
            new = path.with_suffix(".new")
            new.write_text(json.dumps({**OPTIONS, "dynamic_on": True, "collect_times": 1,
                                       "eps": 1e-8 + run * 1e-9}))
            new.replace(path)
        ended.set()
        reader.join()
    assert len(seen) > 40 and {True, False} == set(seen)


def test_all_ranks_change_at_one_step(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    """Whenever a rank sees the new configuration; the old one goes on until then."""
    on = {"dynamic_on": True}
    late = rewrite(**on, apply_at_step=6)
    for seen in (1, 4, 5):
        assert steps_written(tmp_path / str(seen), {}, {seen: late}) == [6, 7]
    changed = steps_written(tmp_path / "changed", {**on, "step_interval": 2}, {1: late})
    assert changed == [2, 4, 6, 7]
    # The end of the old one does not switch the new one off.
    ended = steps_written(tmp_path / "ended", {**on, "collect_times": 3}, {1: late})
    assert ended == [1, 2, 3, 6, 7]
    assert "is over" not in "".join(capfd.readouterr())
    assert steps_written(tmp_path / "over", {}, {4: rewrite(**on, apply_at_step=3)}) == [5, 6, 7]
    assert "apply_at_step: 3 is over; step 5 is the first one" in "".join(capfd.readouterr())


def test_an_edit_at_the_end_is_not_lost(tmp_path: Path) -> None:
    """The new file comes in the step whose end would switch the old one off."""
    written = steps_written(tmp_path, {"dynamic_on": True, "collect_times": 2},
                            {2: rewrite(dynamic_on=True, collect_times=3)})
    assert written == [1, 2, 3, 4, 5]


def test_the_latest_profile_begins_at_once(tmp_path: Path) -> None:
    on = {"dynamic_on": True, "start_step": 6, "step_interval": 2}
    assert steps_written(tmp_path / "1.2.2", {}, {2: rewrite(**on)}) == [6]
    latest = rewrite(**on, profile="latest", param_updated=False)
    assert steps_written(tmp_path / "latest", {}, {2: latest}) == [3, 5, 7]


def test_torn_and_wrong_files_change_nothing(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    written = steps_written(tmp_path, {"dynamic_on": True}, {
        2: lambda path: path.write_text('{"dynamic_on": tr') and None,
        4: rewrite(dynamic_on=True, ops=3),
        6: lambda path: path.unlink()})
    assert written == [1, 2, 3, 4, 5, 6, 7]
    text = "".join(capfd.readouterr())
    assert text.count("is no JSON") == 1 and text.count("ops: is 3") == 1


def test_two_optimizers_change_together(tmp_path: Path) -> None:
    models = [TwoLayers(), torch.nn.Linear(4, 1)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    path = write_config(tmp_path, **OPTIONS, dynamic_on=False)
    with watched(tmp_path, dynamic=True) as monitor:
        for model, optimizer in zip(models, optimizers, strict=True):
            monitor.set_monitor(model, optimizer=optimizer, start_iteration=10)
        for step in range(4):
            for model, optimizer in zip(models, optimizers, strict=True):
                model(torch.ones(2, 4)).sum().backward()
                optimizer.step()
            if step == 1:
                rewrite(dynamic_on=True)(path)
    # The file is looked at behind the next step of each.
    assert {key for key in rows_of(directory_of(tmp_path), "param") if "weight" in key[0]} == {
        ("fc1.weight", 13), ("fc2.weight", 13), ("weight", 13)}
