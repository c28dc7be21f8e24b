"""The line that a TrainerMon shows on the terminal of a training, in a process of its own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

TRAINING = """
import sys, time
import torch
from plumbline.pytorch import TrainerMon

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
monitor = TrainerMon(sys.argv[1], params_have_main_grad=False)
monitor.set_monitor(model, optimizer=optimizer)
for step in range(int(sys.argv[2])):
    optimizer.step()
    time.sleep(0.4)
monitor.stop()
"""


def shown(folder: Path, level: str = "1", steps: int = 8, **options: object) -> str:
    """What the terminal got as stdout and stderr of the training."""
    config = folder / "config.json"
    config.write_text(json.dumps({"param_distribution": True, "ops": ["max", "norm"],
                                  "watch": ["max > -9"], **options}))
    main, terminal = pty.openpty()
    environment = {**os.environ, "MONITOR_OUTPUT_DIR": "out", "PLUMBLINE_LOG_LEVEL": level}
    command = [sys.executable, "-W", "ignore", "-c", TRAINING, str(config), str(steps)]
    done = subprocess.Popen(command, cwd=folder, env=environment, stdout=terminal,
                            stderr=terminal)
    os.close(terminal)
    text = b""
    try:
        while part := os.read(main, 4096):
            text += part
    except OSError:  # the terminal has no other end any more
        pass
    os.close(main)
    assert done.wait() == 0, text
    return text.decode()


def test_the_line_and_the_log(tmp_path: Path) -> None:
    text = shown(tmp_path)
    lines = text.split("\r\n")
    # What is visible of each line: what was written last over it.
    visible = [line.split("\r")[-1] for line in lines]
    [last] = [line for line in visible if line.startswith("monitor: ")]
    assert last.startswith("monitor: step 7, 0 alerts, 16 hits, 16 rows, ")
    assert last.rstrip().rpartition(" in out/")[2].partition("-rank0-")[1]
    # Two or three times in three seconds, and none of them in a line of the log.
    assert 2 <= text.count("\rmonitor: step ") <= 4
    hits = [line for line in visible if "> watch: max > -9 at step" in line]
    assert len(hits) == 16
    assert all("monitor:" not in line and line[:2] == "20" for line in hits)


@pytest.mark.parametrize("off", [{"level": "2"}, {"module_ranks": [1]}])
def test_where_nobody_wants_it(tmp_path: Path, off: dict[str, object]) -> None:
    assert "monitor: step" not in shown(tmp_path, steps=4, **off)  # type: ignore[arg-type]
