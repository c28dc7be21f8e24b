"""PrecisionDebugger under upstream's path, with upstream's exceptions."""

from __future__ import annotations

from msprobe.core.common.debugger import TranslatedDebugger
from plumbline import mindspore as recorder


class PrecisionDebugger(TranslatedDebugger, recorder.PrecisionDebugger):
    """plumbline.mindspore.PrecisionDebugger; wrong arguments are upstream's exceptions."""

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        step: list[int | str] | None = None,
    ) -> None:
        super().__init__(config_path, task, dump_path, level, step)
