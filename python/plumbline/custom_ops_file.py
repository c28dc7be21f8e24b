"""custom_wrap_ops.yaml: functions that the user wants recorded, and listed APIs that he does not.

    my_package.kernels:        # a module or class, by its import path
      - rms_norm
      - rotary
    operator: floordiv
    removed: [Tensor.add, Torch.linalg.norm]   # names as in dump.json, without number

The file lies beside config.json. It is read by this module and not by a YAML library, because
recording needs nothing but the framework: a map of names to a name or a list of names, with
comments, in block or in [a, b] form. Anything else is said and skipped.
"""

from __future__ import annotations

import importlib
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline import _core
from plumbline.custom_apis import CustomApis

FILE_NAME = "custom_wrap_ops.yaml"
_REMOVED = "removed"
_MODULE_PATH = re.compile(r"[a-zA-Z_]\w*(\.[a-zA-Z_]\w*)*", re.ASCII)
_FUNCTION = re.compile(r"[a-zA-Z_]\w*", re.ASCII)
_LONGEST_PATH = 4096
_LONGEST_NAME = 255
_MOST_BYTES = 1 << 20
_KEY_LINE = re.compile(r"(?P<key>[^\s:#\-\[][^\s:#]*|\"[^\"]*\"|'[^']*')\s*:(?:\s+(?P<rest>.*))?$")
_ITEM_LINE = re.compile(r"\s*-\s+(?P<item>.*)$")


@dataclass
class CustomOps:
    """What the file asks for.

    Attributes:
        functions: (module path, function) in the order of the file.
        removed: names of listed APIs that are not to be recorded.
        problems: sentences about lines that were skipped.
    """

    functions: list[tuple[str, str]] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def parse(text: str, path: str) -> CustomOps:
    """The content of a file; `path` is used in messages."""
    found = CustomOps()
    key = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = _without_comment(raw).rstrip()
        if not line.strip() or line.strip() in ("---", "..."):
            continue
        key_line, item_line = _KEY_LINE.match(line), _ITEM_LINE.match(line)
        if key_line:
            key = _unquoted(key_line["key"])
            values = _values(key_line["rest"] or "")
        elif item_line and key:
            values = [_unquoted(item_line["item"].strip())]
        else:
            key = ""  # what hangs below a line that is not understood is not either
            found.problems.append(
                f"{path}:{number}: {raw.strip()!r} is skipped (expected `module.path:` or "
                "`- name` below one)"
            )
            continue
        for value in values:
            _add(found, key, value, f"{path}:{number}")
    return found


def _without_comment(line: str) -> str:
    return re.sub(r"(^|\s)#.*$", "", line)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _values(text: str) -> list[str]:
    """Names of `a` or `[a, b]`."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    elif text:
        return [_unquoted(text)]
    return [_unquoted(part.strip()) for part in text.split(",") if part.strip()]


def _add(found: CustomOps, key: str, value: str, where: str) -> None:
    if key == _REMOVED:
        found.removed.add(value)
    elif len(key) > _LONGEST_PATH or not _MODULE_PATH.fullmatch(key):
        found.problems.append(f"{where}: {key!r} is no module path; {value!r} is not recorded")
    elif len(value) > _LONGEST_NAME or not _FUNCTION.fullmatch(value):
        found.problems.append(f"{where}: {value!r} is no name of a function; it is not recorded")
    else:
        found.functions.append((key, value))


class CustomOpsFile:
    """The functions of one file: registered as soon as their modules can be imported."""

    def __init__(self, config_path: str | None) -> None:
        """Reads the file beside `config_path`, if there is one; problems are logged once."""
        self._pending: list[tuple[str, str]] = []
        self._warned: set[str] = set()
        self._path = Path(config_path).with_name(FILE_NAME) if config_path else None
        _removed.clear()
        if self._path is None or not self._path.exists():
            return
        try:
            with self._path.open(encoding="utf-8") as file:
                text = file.read(_MOST_BYTES + 1)
        except (OSError, UnicodeDecodeError) as error:
            _core.log_warning(f"{self._path}: cannot be read: {error}. No custom API is recorded")
            return
        if len(text) > _MOST_BYTES:
            _core.log_warning(f"{self._path}: is larger than 1 MiB. No custom API is recorded")
            return
        found = parse(text, str(self._path))
        for problem in found.problems:
            _core.log_warning(problem)
        self._pending = list(dict.fromkeys(found.functions))
        _removed.update(found.removed)

    def register(self, recorder: _core.Recorder, apis: CustomApis) -> None:
        """Registers what can be found by now; the rest stays for the next call."""
        for function in list(self._pending):
            module_path, name = function
            try:
                apis.register(recorder, _resolve(module_path), name, module_path)
            except Exception as error:  # importing runs the user's code
                self._warn_once(
                    f"{self._path}: {module_path}.{name} is not recorded yet: {error}. It is tried "
                    "again at each start()"
                )
                continue
            self._pending.remove(function)

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _core.log_warning(text)


_removed: set[str] = set()


def is_removed(name: str) -> bool:
    """Whether the user's file says that the listed API `name` ("Tensor.add") is not recorded."""
    return name in _removed


def _resolve(path: str) -> Any:
    """The module, or the class in a module, of an import path."""
    if sys.modules.get(path) is not None:
        return sys.modules[path]
    first, *rest = path.split(".")
    found: Any = importlib.import_module(first)
    for index, part in enumerate(rest, 2):
        if not hasattr(found, part):
            importlib.import_module(".".join(path.split(".")[:index]))
        found = getattr(found, part)
    return found
