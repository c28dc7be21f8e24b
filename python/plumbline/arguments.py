"""Arguments of the comparing functions: refused in one line that names argument, expected and got.

What the native side would say of them names neither.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import Any


def path(argument: str, value: object) -> str:
    """A path that the native side reads in full."""
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if isinstance(text, str):
            if not text or "\0" in text or not _is_file_name(text):
                raise ValueError(f"{argument}: {text!r} is no path (expected a name of a file or "
                                 "directory, without NUL)")
            return text
    raise _wrong(argument, value, "a str or os.PathLike of str")


def words(argument: str, value: object) -> list[str]:
    """Words given as the command takes them ("csv,json") or one by one."""
    if isinstance(value, str):
        return value.split(",")
    found: list[Any] = list(value) if isinstance(value, Iterable) else [None]
    if any(not isinstance(word, str) for word in found):
        raise _wrong(argument, value, "a str or an iterable of str")
    return found


def flag(argument: str, value: object) -> bool:
    """True or False; a text such as "no" would be true."""
    if isinstance(value, bool):
        return value
    raise _wrong(argument, value, "True or False")


def text(argument: str, value: object) -> str:
    """A text."""
    if isinstance(value, str):
        return value
    raise _wrong(argument, value, "a str")


def count(argument: str, value: Any, most: int, least: int = 0) -> int:
    """A whole number from `least` to `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise _wrong(argument, value, f"an int from {least} to {most}") from None
    if not least <= number <= most:
        raise ValueError(f"{argument}: {number} (expected {least} to {most})")
    return number


def numbers(argument: str, value: object) -> list[int]:
    """Numbers of ranks or steps."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise _wrong(argument, value, "an iterable of int")
    return [count(argument, one, 2**63 - 1) for one in value]


def _wrong(argument: str, value: object, expected: str) -> TypeError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return TypeError(f"{argument}: {shown} is of type {type(value).__name__} "
                     f"(expected {expected})")


def _is_file_name(value: str) -> bool:
    """False for lone surrogates that stand for no byte of a name."""
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True
