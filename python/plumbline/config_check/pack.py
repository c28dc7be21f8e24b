"""Packs of the configuration check, as far as they are made inside a training script."""

from __future__ import annotations

import fcntl
import importlib.metadata
import json
import linecache
import os
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from plumbline import _core

_STARTED = time.time()
_SIBLINGS_S = 60.0  # a pack this much older than the process is of an earlier run
_OWN = str(Path(__file__).parent.parent) + os.sep

Named = tuple[str, Any, str]  # name in the pack, object that has the function, attribute


class PackFile:
    """A ZIP archive to which the ranks of one run add members.

    Every addition writes the archive anew and renames it: a reader never finds half of one.

    Args:
        path: the archive; its directory is made when missing.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def add(self, members: Mapping[str, str]) -> None:
        """Adds texts, in place of those that have their names.

        Raises:
            OSError: the archive cannot be written.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        # The directory is what stays the same while the archive is replaced.
        lock = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._write({**self._present(), **members})
        finally:
            os.close(lock)

    def _present(self) -> dict[str, str]:
        """What the ranks of this run have added."""
        try:
            if self._path.stat().st_mtime < _STARTED - _SIBLINGS_S:
                return {}
            with zipfile.ZipFile(self._path) as archive:
                return {name: archive.read(name).decode() for name in archive.namelist()}
        except FileNotFoundError:
            return {}
        except (zipfile.BadZipFile, UnicodeDecodeError):
            return {}  # no pack: of an earlier run that was another tool's, or damaged

    def _write(self, members: Mapping[str, str]) -> None:
        handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(handle, "wb") as file, zipfile.ZipFile(
                file, "w", zipfile.ZIP_DEFLATED
            ) as archive:
                for name in sorted(members):
                    archive.writestr(name, members[name])
            os.chmod(temporary, 0o640)
            os.replace(temporary, self._path)
        except BaseException:
            os.unlink(temporary)
            raise


class RandomStacks:
    """Counts calls for random numbers by function and Python stack.

    Args:
        functions: what to count. The functions themselves are called unchanged.
    """

    def __init__(self, functions: Iterable[Named]) -> None:
        self._patches = _core.PatchSet()
        self._counts: dict[str, dict[tuple[str, ...], int]] = {}
        self._lock = threading.Lock()
        self._finished = False
        self._suspended = 0
        for name, owner, attribute in functions:
            original = getattr(owner, attribute, None)
            if callable(original):
                self._patches.add(owner, attribute, self._counted(original, name, owner, attribute))

    def suspend(self) -> None:
        """Puts the originals back, until `resume` was called as often as this."""
        self._suspended += 1
        if self._patches.is_applied:
            self._patches.restore()

    def resume(self) -> None:
        """Undoes one `suspend`."""
        self._suspended -= 1
        self.start()

    def start(self) -> None:
        """Counts from now on."""
        if not self._patches.is_applied and not self._finished and self._suspended == 0:
            self._patches.apply()

    def finish(self) -> None:
        """Counts no more, not even through references that others have taken."""
        self._finished = True
        if self._patches.is_applied:
            self._patches.restore()

    def text(self) -> str:
        """The member `random/rank{r}.json`."""
        with self._lock:
            calls = {
                name: [{"count": count, "stack": list(stack)} for stack, count in stacks.items()]
                for name, stacks in self._counts.items()
            }
        return json.dumps(calls, indent=4)

    def _counted(
        self, original: Callable[..., Any], name: str, owner: Any, attribute: str
    ) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self._finished:
                self._count(name)
            return original(*args, **kwargs)

        # Pickled by name, which gives this function here and the original elsewhere.
        is_class = isinstance(owner, type)
        call.__module__ = owner.__module__ if is_class else owner.__name__
        call.__qualname__ = f"{owner.__qualname__}.{attribute}" if is_class else attribute
        call.__name__, call.__doc__ = attribute, getattr(original, "__doc__", None)
        return call

    def _count(self, name: str) -> None:
        try:
            stack = _stack(2)
            with self._lock:
                stacks = self._counts.setdefault(name, {})
                stacks[stack] = stacks.get(stack, 0) + 1
        except Exception as error:  # whatever is wrong here is not the training's concern
            _core.log_error(f"config_check: {name}: {error}")


def _stack(depth: int) -> tuple[str, ...]:
    """The frames outside this package, outermost first."""
    frame: FrameType | None = sys._getframe(depth)
    lines = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OWN):
            source = linecache.getline(code.co_filename, frame.f_lineno).strip()
            file = os.path.abspath(code.co_filename)
            lines.append(f"File {file}, line {frame.f_lineno}, in {code.co_name}, {source}")
        frame = frame.f_back
    return tuple(reversed(lines))


def packages_text() -> str:
    """The member `pip`: what this process could import."""
    versions: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            versions.setdefault(name, distribution.version)
    return "".join(f"{name}={versions[name]}\n" for name in sorted(versions))


def tree_of(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Nested lists, tuples and dicts as dicts; other values as `leaf` has them."""
    return _tree_of(value, leaf, frozenset())


def _tree_of(value: Any, leaf: Callable[[Any], Any], above: frozenset[int]) -> Any:
    is_container = isinstance(value, (list, tuple, dict))
    if is_container and (id(value) in above or len(above) > 100):
        return ""  # a list that holds itself
    if isinstance(value, (list, tuple)):
        return {str(i): _tree_of(x, leaf, above | {id(value)}) for i, x in enumerate(value)}
    if isinstance(value, dict):
        return {str(k): _tree_of(x, leaf, above | {id(value)}) for k, x in value.items()}
    return leaf(value)
