"""Upstream's exceptions, with their codes, and how plumbline's own become them.

Each is also the built-in class that plumbline raises, so that both kinds of `except` catch it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from plumbline import CorruptDataError


class CodedException(Exception):
    """Base of upstream's exceptions.

    Attributes:
        code: one of the class's constants.
        error_info: the whole message.
    """

    _MEANINGS: ClassVar[dict[int, str]] = {}

    def __init__(self, code: int, error_info: str = "") -> None:
        super().__init__(code, error_info)
        self.code = code
        self.error_info = self._MEANINGS.get(code, "") + error_info

    def __str__(self) -> str:
        return self.error_info


class MsprobeException(CodedException, ValueError):
    """A wrong argument or setting, or a call at the wrong time."""

    INVALID_PARAM_ERROR = 0
    OVERFLOW_NUMS_ERROR = 1
    RECURSION_LIMIT_ERROR = 2
    INTERFACE_USAGE_ERROR = 3
    UNSUPPORTED_TYPE_ERROR = 4
    _MEANINGS: ClassVar[dict[int, str]] = {
        0: "[msprobe] Invalid parameter: ",
        1: "[msprobe] Overflow count exceeded: ",
        2: "[msprobe] Recursion limit: ",
        3: "[msprobe] Invalid interface usage: ",
        4: "[msprobe] Unsupported type: ",
    }


class FileCheckException(CodedException, OSError):
    """A file or directory that cannot be used."""

    INVALID_FILE_ERROR = 0
    FILE_PERMISSION_ERROR = 1
    SOFT_LINK_ERROR = 2
    ILLEGAL_PATH_ERROR = 3
    ILLEGAL_PARAM_ERROR = 4
    FILE_TOO_LARGE_ERROR = 5
    _MEANINGS: ClassVar[dict[int, str]] = {
        0: "[msprobe] Invalid file: ",
        1: "[msprobe] Permission error: ",
        2: "[msprobe] Invalid soft link: ",
        3: "[msprobe] Illegal path: ",
        4: "[msprobe] Illegal open mode: ",
        5: "[msprobe] File too large: ",
    }


class ScopeException(CodedException, ValueError):
    """A `scope` that cannot be used."""

    InvalidApiStr = 0
    InvalidScope = 1
    ArgConflict = 2
    _MEANINGS: ClassVar[dict[int, str]] = {
        0: "[msprobe] Invalid api_list: ",
        1: "[msprobe] Invalid scope: ",
        2: "[msprobe] Scope and api_list conflict: ",
    }


class ParseJsonException(CodedException, ValueError):
    """A damaged dump.json."""

    UnexpectedNameStruct = 0
    InvalidDumpJson = 1
    _MEANINGS: ClassVar[dict[int, str]] = {
        0: "[msprobe] Unexpected name in json: ",
        1: "[msprobe] Invalid dump.json: ",
    }


def invalid_argument(text: str) -> MsprobeException:
    """What to raise for an argument that only upstream's form of a function has."""
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


@contextmanager
def translated() -> Iterator[None]:
    """Raises plumbline's errors in the block as upstream's classes."""
    try:
        yield
    except CodedException:
        raise
    except CorruptDataError as error:
        raise ParseJsonException(ParseJsonException.InvalidDumpJson, str(error)) from error
    except OSError as error:
        raise FileCheckException(_file_code(error), str(error)) from error
    except ValueError as error:
        text = str(error)
        # At level L2 a scope is no wrong scope, but one setting too many.
        if "scope" in text.partition("(")[0] and "L2" not in text:
            raise ScopeException(ScopeException.InvalidScope, text) from error
        raise invalid_argument(text) from error


def _file_code(error: OSError) -> int:
    if isinstance(error, PermissionError):
        return FileCheckException.FILE_PERMISSION_ERROR
    return FileCheckException.INVALID_FILE_ERROR
