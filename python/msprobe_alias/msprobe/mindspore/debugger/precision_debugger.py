"""PrecisionDebugger under upstream's path, with upstream's exceptions."""

from __future__ import annotations

from typing import Any

from msprobe.core.common.exceptions import translated
from plumbline import mindspore as recorder


class PrecisionDebugger(recorder.PrecisionDebugger):
    """plumbline.mindspore.PrecisionDebugger; wrong arguments are upstream's exceptions."""

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        step: list[int | str] | None = None,
    ) -> None:
        if config_path is None and dump_path is None:
            dump_path = "./dump_path"  # as in the configuration file that upstream ships
        with translated():
            super().__init__(config_path, task, dump_path, level, step)

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
