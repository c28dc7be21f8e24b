"""PrecisionDebugger and its companions under upstream's path, with upstream's exceptions.

Size caps: the constructor has upstream's six arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msprobe.core.common.debugger import TranslatedDebugger
from msprobe.core.common.exceptions import MsprobeException, translated
from plumbline import pytorch as recorder


class PrecisionDebugger(TranslatedDebugger, recorder.PrecisionDebugger):
    """plumbline.pytorch.PrecisionDebugger; wrong arguments are upstream's exceptions."""

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        model: Any = None,
        step: list[int | str] | None = None,
    ) -> None:
        super().__init__(config_path, task, dump_path, level, model, step)


def module_dump(module: Any, dump_name: str) -> None:
    """As plumbline's; upstream's exceptions."""
    with _translated_usage():
        recorder.module_dump(module, dump_name)


def module_dump_end() -> None:
    """As plumbline's; upstream's exceptions."""
    with _translated_usage():
        recorder.module_dump_end()


def random_save(output_path: str = "./output") -> None:
    """As plumbline's; upstream's exceptions."""
    with translated():
        recorder.random_save(output_path)


@contextmanager
def _translated_usage() -> Iterator[None]:
    with translated():
        try:
            yield
        except RuntimeError as error:
            raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR, str(error)) from error
