"""Dropout that keeps everything, so that two runs are comparable."""

from __future__ import annotations

from typing import Any

from mindspore import mint, nn, ops


def remove_dropout() -> None:
    """Replaces MindSpore's dropout by versions that keep everything, from now on.

    `ops.Dropout`, `Dropout2D` and `Dropout3D` keep with probability 1; `mint.nn.Dropout` drops with
    probability 0; `ops.dropout` and `mint.nn.functional.dropout` give their input back. Instances
    that exist keep their behaviour.
    """
    for name in ("Dropout", "Dropout2D", "Dropout3D"):
        _replace(ops, name, _keeping_all(getattr(ops, name)))
    _replace(mint.nn, "Dropout", _dropping_none(mint.nn.Dropout))
    _replace(mint.nn.functional, "dropout", _identity)
    _replace(ops, "dropout", _identity)
    _replace(nn, "Dropout", _dropping_none(nn.Dropout))


def _replace(owner: Any, name: str, replacement: Any) -> None:
    if getattr(getattr(owner, name), "__module__", "") != __name__:  # not replaced yet
        setattr(owner, name, replacement)


def _identity(input: Any, *_: Any, **__: Any) -> Any:
    return input


def _keeping_all(original: Any) -> Any:
    def make(keep_prob: float = 0.5, *args: Any, **kwargs: Any) -> Any:
        return original(1.0, *args, **kwargs)

    make.__name__ = original.__name__
    make.__doc__ = original.__doc__
    return make


def _dropping_none(original: Any) -> Any:
    class Dropout(original):  # type: ignore[misc]
        def construct(self, x: Any) -> Any:
            return x

    Dropout.__doc__ = original.__doc__
    return Dropout
