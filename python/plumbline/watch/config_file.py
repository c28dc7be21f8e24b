"""The configuration file of a monitor, read again when it changes while a training runs."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

from plumbline import _core


class ConfigFile:
    """Remembers what it has seen by content, so that a touched file is no change."""

    def __init__(self, path: str) -> None:
        self.path = os.fspath(path)
        self._seen = b""  # nothing seen: the first look counts as a change

    def read(self) -> _core.MonitorConfig:
        """The checked configuration."""
        return _core.read_monitor_config(self.path)

    def read_if_changed(self) -> _core.MonitorConfig | None:
        """The configuration when the file differs from the last look; None otherwise.

        A file that is being written or wrong is logged once and looked at again at the next step.
        """
        digest = self._digest()
        if digest is None or digest == self._seen:
            return None
        try:
            config = self.read()
        except (ValueError, OSError) as error:
            if digest != getattr(self, "_refused", None):
                _core.log_error(f"the changed configuration is not taken: {error}")
            self._refused = digest
            return None
        self._seen = digest
        return config

    def switch_off(self) -> None:
        """Sets `dynamic_on` to false in the file, in one piece, unless it is a new one."""
        if self._digest() != self._seen:
            return
        try:
            settings = json.loads(Path(self.path).read_text(encoding="utf-8"))
            settings["dynamic_on"] = False
            folder = os.path.dirname(os.path.abspath(self.path))
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=".monitor-")
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump(settings, out, indent=2)
            os.chmod(temporary, os.stat(self.path).st_mode)
            os.replace(temporary, self.path)
        except (OSError, ValueError) as error:
            _core.log_warning(f"{self.path}: dynamic_on could not be set to false: {error}")
        self._seen = self._digest() or b""

    def _digest(self) -> bytes | None:
        try:
            return hashlib.sha256(Path(self.path).read_bytes()).digest()
        except OSError:
            return None
