"""What the tests of the suite share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where cases of one process are recorded; what is there is recorded once (evaluate.record)."""
    return tmp_path_factory.mktemp("faults")
