"""What the server of plumb view, and pages in one file, say is wrong first."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from view_client import Viewer, viewer

__all__ = ["Viewer", "first_in_files", "first_of", "viewer"]

FIRST_ROWS = Path(__file__).resolve().parent.parent.parent / "web" / "tools" / "first_rows.mjs"


def first_of(running: Viewer, target: Path, golden: Path) -> tuple[Any, Any]:
    """The first row of first divergence, or None without rows; meta of the result."""
    name = running.post("open", {"target": str(target), "golden": str(golden)}).json()["id"]
    numbers = [dataset["id"] for dataset in running.get("datasets")["datasets"]]
    found = running.dataset(numbers.index(name))
    assert found["state"] == "ready", found["error"]
    table = running.get(f"d/{name}/first", limit=1)["rows"]
    rows = [dict(zip(table["fields"], row, strict=True)) for row in table["rows"]]
    return (rows[0] if rows else None), running.get(f"d/{name}/meta")


def first_in_files(pages: Iterable[Path]) -> list[tuple[Any, Any]]:
    """The same of each page in one file."""
    done = subprocess.run(["node", str(FIRST_ROWS), *map(str, pages)], capture_output=True,
                          text=True, check=True, timeout=300)
    return [(answer["row"], answer["meta"]) for answer in json.loads(done.stdout)]
