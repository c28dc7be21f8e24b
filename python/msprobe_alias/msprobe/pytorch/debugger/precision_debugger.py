"""PrecisionDebugger and its companions under upstream's path, with upstream's exceptions.

Size caps: the constructor has upstream's six arguments.
"""

from __future__ import annotations

from typing import Any

from msprobe.core.common.exceptions import MsprobeException, translated
from plumbline import pytorch as recorder


class PrecisionDebugger(recorder.PrecisionDebugger):
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
        if config_path is None and dump_path is None:
            dump_path = "./dump_path"  # as in the configuration file that upstream ships
        with translated():
            super().__init__(config_path, task, dump_path, level, model, step)

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


def module_dump(module: Any, dump_name: str) -> None:
    """As plumbline's; upstream's exceptions."""
    with translated():
        try:
            recorder.module_dump(module, dump_name)
        except RuntimeError as error:
            raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR, str(error)) from error


def module_dump_end() -> None:
    """As plumbline's; upstream's exceptions."""
    try:
        recorder.module_dump_end()
    except RuntimeError as error:
        raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR, str(error)) from error


def random_save(output_path: str = "./output") -> None:
    """As plumbline's; upstream's exceptions."""
    with translated():
        recorder.random_save(output_path)
