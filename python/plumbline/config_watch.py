"""Notices that config.json has changed (`dump_enable`)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class ConfigWatch:
    """Compares modification time and size, at most every half second (three while disabled)."""

    interval_enabled = 0.5  # seconds
    interval_disabled = 3.0

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = self._signature()
        self._looked = time.monotonic()
        self._settings = self._read()

    def has_changed(self, enabled: bool) -> bool:
        """Whether the file differs from when this was last answered with yes."""
        now = time.monotonic()
        if now - self._looked < (self.interval_enabled if enabled else self.interval_disabled):
            return False
        self._looked = now
        signature = self._signature()
        if signature is None or signature == self._seen:
            return False
        self._seen = signature
        return True

    def accept(self) -> bool:
        """Takes the file's settings as the current ones; True if more than the switch changed."""
        settings = self._read()
        other = bool(settings != self._settings)
        self._settings = settings
        return other

    def _signature(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def _read(self) -> Any:
        try:
            settings = json.loads(Path(self._path).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if isinstance(settings, dict):
            settings.pop("dump_enable", None)
        return settings
