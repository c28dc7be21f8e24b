"""These tests run in build/mindspore; where there is no MindSpore they are left out, aloud."""

from __future__ import annotations

import importlib.util

_HAS_MINDSPORE = importlib.util.find_spec("mindspore") is not None
collect_ignore_glob = [] if _HAS_MINDSPORE else ["test_*.py"]


def pytest_report_header() -> str | None:
    return None if _HAS_MINDSPORE else "tests/mindspore: left out, MindSpore is not installed here"
