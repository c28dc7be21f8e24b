"""The checked-in stubs of the extensions are what the bindings say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("module", ["_core", "_compare", "_hdf5", "_reference"])
def test_stub_is_current(module: str, tmp_path: Path) -> None:
    out = tmp_path / f"{module}.pyi"
    generate = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", f"plumbline.{module}", "-o"]
    command = [*generate, str(out)]
    subprocess.run(command, check=True, capture_output=True)
    assert (ROOT / f"python/plumbline/{module}.pyi").read_text() == out.read_text(), (
        f"regenerate it: {' '.join(generate[1:])} python/plumbline/{module}.pyi"
    )
