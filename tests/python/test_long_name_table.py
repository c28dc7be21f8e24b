"""A mapping.csv of many names: the memory of a command is little more than the table."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import device_dumps as dumps
import numpy as np
from recording import PLUMB


def peak_kib(*words: str | Path) -> int:
    """Of a command that succeeds."""
    process = subprocess.Popen([PLUMB, *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss


def test_a_long_table_of_names(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32)
    for side in ("few", "many"):
        dumps.Dump(outputs=[dumps.plain(values)]).write(tmp_path / side / "7")
    name = "Conv2D." + "Default_network_" * 16
    (tmp_path / "few" / "mapping.csv").write_text(f"7,{name}7.1.2.1612439563000001\n")
    rows = (f"{i},{name}{i}.1.2.1612439563000001\n" for i in range(150_000))
    table = tmp_path / "many" / "mapping.csv"
    table.write_text("".join(rows))
    few, many = (peak_kib("convert", "-d", tmp_path / side, "-out", tmp_path / "out")
                 for side in ("few", "many"))
    assert many - few < 1.6 * table.stat().st_size / 1024
    (array,) = (tmp_path / "out").glob("*.npy")
    assert np.array_equal(np.load(array), values)
