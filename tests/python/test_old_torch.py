"""The recorder on other releases of PyTorch; opt-in, because each needs an environment of its own.

    OLD_TORCH_PYTHON=old/bin/python:older/bin/python pytest tests/python/test_old_torch.py

An environment: `python -m venv old; old/bin/pip install torch==1.13.0 "numpy<2"`, with the same
minor version of Python as the one plumbline was built for. The oldest that pip offers for Python
3.11 is 1.13.0.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import plumbline

HERE = Path(__file__).resolve().parent
INTERPRETERS = [path for path in os.environ.get("OLD_TORCH_PYTHON", "").split(":") if path]


@pytest.mark.skipif(not INTERPRETERS, reason="OLD_TORCH_PYTHON names no interpreter")
@pytest.mark.parametrize("interpreter", INTERPRETERS or [""])
def test_import_closed_window_and_recording(interpreter: str, tmp_path: Path) -> None:
    package_parent = str(Path(plumbline.__file__).parent.parent)
    (tmp_path / "plumbline").symlink_to(Path(package_parent, "plumbline"))
    done = subprocess.run(
        [interpreter, "-W", "ignore", str(HERE / "record_on_old_torch.py"), str(tmp_path / "out")],
        env=dict(os.environ, PYTHONPATH=str(tmp_path)), text=True, capture_output=True,
        timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.rsplit("ANSWER ", 1)[1])
    print(answer["torch"])
    assert answer["python"] == list(sys.version_info[:2])
    assert answer["untouched while closed"]
    assert "recording" not in answer, answer["recording"]
    assert answer["same losses"]
    assert answer["entries"][:3] == ["Functional.linear.0.forward", "Functional.relu.0.forward",
                                     "Functional.linear.1.forward"]
    assert "Functional.linear.0.backward" in answer["entries"]
    assert answer["untouched at the end"]
    release = tuple(int(part) for part in answer["torch"].split("+")[0].split(".")[:2])
    assert answer["modules"] == (release >= (2, 2))
