"""Functions of the user that are recorded like the framework's own APIs."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from plumbline import _core


@dataclass
class _Registration:
    owner: Any
    attribute: str
    prefix: str
    original: Any  # what stood in the owner's own namespace; _MISSING when it was inherited


_MISSING = object()


class CustomApis:
    """The registered functions of one process.

    Unlike the framework's APIs they stay replaced while the window is closed: a registration is a
    request of the user, and `from module import function` after it must be seen. The replacement
    then only passes the call through.
    """

    def __init__(self) -> None:
        self._registrations: list[_Registration] = []

    def register(self, recorder: _core.Recorder, owner: Any, attribute: str, prefix: Any) -> None:
        """Replaces `owner.attribute`.

        Raises:
            ValueError: no such attribute, it cannot be called, or the prefix is not a string.
        """
        prefix = prefix or getattr(owner, "__name__", "Custom")
        if not isinstance(prefix, str):
            raise ValueError(
                f"register_custom_api: api_prefix is {prefix!r} (expected a string)"
            )
        _check_attribute("register_custom_api", owner, attribute)
        if not callable(getattr(owner, attribute)):
            raise ValueError(
                f"register_custom_api: {attribute} of {owner!r} cannot be called (expected a "
                "function)"
            )
        if self._find(owner, attribute) is not None:
            _core.log_warning(f"register_custom_api: {prefix}.{attribute} is registered already")
            return
        original = vars(owner).get(attribute, _MISSING) if hasattr(owner, "__dict__") else _MISSING
        registration = _Registration(owner, attribute, prefix, original)
        self._replace(recorder, registration)
        self._registrations.append(registration)

    def restore(self, owner: Any, attribute: str) -> None:
        """Puts the original back; without a registration nothing is done.

        Raises:
            ValueError: no such attribute.
        """
        _check_attribute("restore_custom_api", owner, attribute)
        registration = self._find(owner, attribute)
        if registration is None:
            _core.log_warning(f"restore_custom_api: {attribute} is not registered; nothing is done")
            return
        self._registrations.remove(registration)
        self._put_back(registration)

    def move_to(self, recorder: _core.Recorder) -> None:
        """Lets another recorder see the calls (the configuration has changed)."""
        for registration in self._registrations:
            self._put_back(registration)
            self._replace(recorder, registration)

    def _find(self, owner: Any, attribute: str) -> _Registration | None:
        for registration in self._registrations:
            if registration.owner is owner and registration.attribute == attribute:
                return registration
        return None

    def _replace(self, recorder: _core.Recorder, registration: _Registration) -> None:
        owner, attribute = registration.owner, registration.attribute
        name = f"{registration.prefix}.{attribute}"
        static: Any = inspect.getattr_static(owner, attribute)
        if inspect.isclass(owner) and isinstance(static, (staticmethod, classmethod)):
            # The binding stays outside, so that the probe sees what the function is called with.
            bind: Any = type(static)
            probe = bind(recorder.probe(static.__func__, name, False))
        else:
            probe = recorder.probe(getattr(owner, attribute), name, False)
        setattr(owner, attribute, probe)

    def _put_back(self, registration: _Registration) -> None:
        if registration.original is _MISSING:
            delattr(registration.owner, registration.attribute)
        else:
            setattr(registration.owner, registration.attribute, registration.original)


def _check_attribute(function: str, owner: Any, attribute: Any) -> None:
    if not isinstance(attribute, str) or not hasattr(owner, attribute):
        raise ValueError(
            f"{function}: {owner!r} has no attribute {attribute!r} (expected a function's name)"
        )
