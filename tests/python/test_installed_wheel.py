"""The wheel that set-up built, alone in a fresh environment of a bare account."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
def test_a_bare_account_records_compares_prechecks_watches_and_views() -> None:
    wheels = list((ROOT / "build" / "dist").glob("plumbline_numerics-*.whl"))
    assert len(wheels) == 1, "tools/bootstrap.sh native leaves one wheel in build/dist"
    done = subprocess.run(
        [sys.executable, ROOT / "tests/wheel/check_wheel.py", wheels[0], "--borrow",
         sysconfig.get_path("purelib")], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "wheel: 6 checks passed"
