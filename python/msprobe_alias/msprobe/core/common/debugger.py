"""What the PrecisionDebuggers of both frameworks have in common."""

from __future__ import annotations

from typing import Any

from msprobe.core.common.exceptions import translated
from plumbline.debugger import DebuggerBase


class TranslatedDebugger(DebuggerBase):
    """Comes before a recorder among the bases: wrong arguments are upstream's exceptions."""

    def __init__(
        self, config_path: str | None, task: str | None, dump_path: str | None, *rest: Any
    ) -> None:
        if config_path is None and dump_path is None:
            dump_path = "./dump_path"  # as in the configuration file that upstream ships
        with translated():
            super().__init__(config_path, task, dump_path, *rest)

    @classmethod
    def start(cls, *args: Any, **kwargs: Any) -> None:
        """As plumbline's; raises MsprobeException for a missing or wrong model."""
        with translated():
            super().start(*args, **kwargs)

    @classmethod
    def set_init_step(cls, step: int) -> None:
        """As plumbline's; raises MsprobeException for a wrong number."""
        with translated():
            super().set_init_step(step)

    @classmethod
    def register_custom_api(cls, module: Any, api: str, api_prefix: str | None = None) -> None:
        """As plumbline's; raises MsprobeException for an unknown function."""
        with translated():
            super().register_custom_api(module, api, api_prefix)

    @classmethod
    def restore_custom_api(cls, module: Any, api: str) -> None:
        """As plumbline's; raises MsprobeException for an unknown function."""
        with translated():
            super().restore_custom_api(module, api)
