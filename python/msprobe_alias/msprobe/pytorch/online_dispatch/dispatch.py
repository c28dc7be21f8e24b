"""PtdbgDispatch with upstream's arguments; the check is plumbline's.

Size caps: the constructor has upstream's six arguments.
"""

from __future__ import annotations

import os
import re
from typing import Any

from msprobe.core.common.exceptions import MsprobeException, translated
from plumbline.pytorch import operator_check

_MODES = ("OFF", "all", "list", "auto")
_MOST_NAMES = 1_000_000


class DispatchException(MsprobeException):
    """A wrong argument of PtdbgDispatch."""

    INVALID_PARAMETER = 0


class PtdbgDispatch:
    """`with PtdbgDispatch(dump_mode="auto", dump_path="/out"):` as plumbline.check_operators().

    Forward and backward may stand in one block. `process_num` counts threads that judge beside the
    program, at most 64. Without an accelerator, the CPU is held against itself in float64.
    """

    def __init__(
        self,
        dump_mode: str = "OFF",
        api_list: list[str] | None = None,
        debug: bool = False,
        dump_path: str | None = None,
        tag: str | None = None,
        process_num: int = 0,
    ) -> None:
        names = _names(api_list)
        if dump_mode not in _MODES:
            raise _wrong(f"dump_mode: {dump_mode!r} (expected one of {', '.join(_MODES)})")
        if tag is not None and not (isinstance(tag, str) and re.fullmatch(r"[A-Za-z0-9_-]+", tag)):
            raise _wrong(f"tag: {tag!r} (expected letters, digits, _ and -)")
        if not isinstance(debug, bool):
            raise _wrong(f"debug: {debug!r} (expected True or False)")
        if isinstance(process_num, bool) or not isinstance(process_num, int) or process_num < 0:
            raise _wrong(f"process_num: {process_num!r} (expected an int of at least 0)")
        if not isinstance(dump_path, (str, os.PathLike)) or not os.path.isdir(dump_path):
            raise _wrong(f"dump_path: {dump_path!r} (expected a directory that exists)")
        listed = operator_check.known_operators(names) if dump_mode == "list" else []
        with translated():
            self._check = operator_check.start(
                os.fspath(dump_path), operator_check.device_under_test("auto"), tag or "",
                (dump_mode, listed), min(process_num, operator_check.MOST_WORKERS), debug=debug)

    def __enter__(self) -> PtdbgDispatch:
        self._check.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._check.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        """What was found, as of plumbline.OperatorCheck: answer, failed, counts."""
        if name == "_check":
            raise AttributeError(name)
        return getattr(self._check, name)


def _names(api_list: Any) -> list[str]:
    if api_list is None:
        return []
    if not isinstance(api_list, list) or any(not isinstance(name, str) for name in api_list):
        raise _wrong(f"api_list: {str(api_list)[:80]} (expected a list of str)")
    if len(api_list) > _MOST_NAMES:
        raise _wrong(f"api_list: {len(api_list)} names (expected at most {_MOST_NAMES})")
    return api_list


def _wrong(text: str) -> DispatchException:
    return DispatchException(DispatchException.INVALID_PARAMETER, text)
