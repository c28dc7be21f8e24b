"""`cc_distribution` of a monitor: which communication calls are looked at, and their stacks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from plumbline import _core
from plumbline.watch.call_stacks import frames
from plumbline.watch.monitor_parts import CommunicationHooks, Handle, MonitorParts

# Frames that say nothing of where a call comes from.
_UNTOLD = re.compile(r"site-packages/torch/nn/modules/module\.py|multiprocessing|debugpy"
                     r"|site-packages/torch/distributed/c10d_logger\.py")


def check_lines(path: str, config: _core.MonitorConfig) -> None:
    """ValueError if an entry of `cc_codeline` is no regular expression."""
    for line in config.code_lines:
        try:
            re.compile(line)
        except re.error as error:
            raise ValueError(f"{path}: cc_distribution.cc_codeline: is {line!r} (expected a "
                             f"regular expression: {error})") from None


def watched_call(
    hooks: CommunicationHooks, name: str, original: Callable[..., Any], masked: list[Any],
    new_tensors: Callable[[Any], tuple[Any, ...]] | None = None,
) -> Callable[..., Any]:
    """A communication function whose arguments are read around its calls.

    `masked`: arguments, by position or name, whose contents mean nothing before. `new_tensors`:
    what of a result is read after the call, in place of the arguments; nothing: the arguments.
    """
    watch = hooks.watch

    def probe(*args: Any, **kwargs: Any) -> Any:
        is_asked_for = not watch.is_inside and hooks.is_wanted(name)
        watch.begin(name, args, kwargs, masked, is_asked_for)
        try:
            result = original(*args, **kwargs)
        except BaseException:
            watch.fail()
            raise
        made = () if new_tensors is None else new_tensors(result)
        if made:
            watch.fail()  # nothing more of the arguments
            watch.begin(name, made, {}, list(range(len(made))), is_asked_for)
        watch.end(result)
        return result

    return probe


class Communication:
    """The communication calls of one monitor; hooks are there only while a step is collected."""

    def __init__(
        self, parts: MonitorParts, live: _core.LiveMonitor, config: _core.MonitorConfig
    ) -> None:
        self._lines = [re.compile(line) for line in config.code_lines]
        self._is_log_only = config.logs_communication
        self._stacks: dict[str, list[list[str]]] = {}
        self._hooks = parts.communication_hooks(live, config.before_communication, self._is_wanted)
        if self._hooks is None:
            _core.log_warning("cc_distribution: ignored, communication of this framework is not "
                              "watched")

    def watch(self) -> list[Handle]:
        """Hooks around all functions."""
        if self._hooks is None:
            return []
        self._hooks.apply()
        return [self._hooks]

    def end_step(self) -> None:
        """Adds the rows of the step."""
        if self._hooks is not None:
            self._hooks.watch.end_step()

    def forget(self) -> None:
        """Nothing is kept of a step that is not collected to its end."""
        if self._hooks is not None:
            self._hooks.watch.forget()

    def log(self) -> None:
        """What `cc_log_only` asks for."""
        _core.log_info("> Used communication ops and corresponding stack")
        _core.log_info("> " + json.dumps(self._stacks))

    def _is_wanted(self, name: str) -> bool:
        """Whether the values of the call under way are wanted; remembers it for log()."""
        if not self._lines and not self._is_log_only:
            return True
        try:
            return self._is_at_a_line(name)
        except Exception as error:  # a monitor never stops a training
            _core.log_warning(f"cc_distribution: {name}: {error}")
            return False

    def _is_at_a_line(self, name: str) -> bool:
        stack = [f"{path}[{line}]   {function}" for path, line, function in frames()
                 if not _UNTOLD.search(path)]
        if self._lines and not any(line.search(";".join(stack)) for line in self._lines):
            return False
        known = self._stacks.setdefault(name, [])
        if self._is_log_only and stack not in known:
            known.append(stack)
        return not self._is_log_only
