"""The checked-in stub of the extension is what the bindings say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_stub_is_current(tmp_path: Path) -> None:
    out = tmp_path / "_core.pyi"
    generate = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "plumbline._core", "-o"]
    command = [*generate, str(out)]
    subprocess.run(command, check=True, capture_output=True)
    assert (ROOT / "python/plumbline/_core.pyi").read_text() == out.read_text(), (
        f"regenerate it: {' '.join(generate[1:])} python/plumbline/_core.pyi"
    )
