"""Recorded arguments in the place of those of a running call."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.grad_mode import _unsafe_preserve_version_counter

from plumbline import _hdf5
from plumbline.pytorch.operator_dump.call_arguments import CallArguments


class Replay:
    """An operator dump whose values running calls take."""

    def __init__(self, path: str) -> None:
        self._native = _hdf5.OperatorReplay(path)

    def match(self, operation: str, inputs: CallArguments) -> _hdf5.Match | None:
        """The recorded call that stands for this one, which no other call takes then."""
        return self._native.match(operation, inputs.native)

    def apply(
        self,
        match: _hdf5.Match,
        inputs: CallArguments,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Copies the recorded tensors into the arguments, in place; returns them with the recorded
        scalars instead of theirs."""
        # Everything is read before anything is changed.
        sources = [self._read(match, index) for index in range(len(match.tensors))]
        for source, (argument, member, _, _) in zip(sources, match.tensors, strict=True):
            place = inputs.places[argument]
            target: Any = args[place] if isinstance(place, int) else kwargs[place]
            _copy_into(target if member is None else target[member], source)
        new_args, new_kwargs = list(args), dict(kwargs)
        for argument, number in match.scalars:
            place = inputs.places[argument]
            if isinstance(place, int):
                new_args[place] = number
            else:
                new_kwargs[place] = number
        return tuple(new_args), new_kwargs

    def _read(self, match: _hdf5.Match, index: int) -> torch.Tensor:
        _, _, dtype, sizes = match.tensors[index]
        source = torch.empty(sizes, dtype=getattr(torch, dtype))
        match.read_into(index, source.data_ptr(), source.numel() * source.element_size())
        return source


def _copy_into(target: torch.Tensor, source: torch.Tensor) -> None:
    """The version of `target` stays: the backward pass of what used it before still fits."""
    for dim, (size, stride) in enumerate(zip(target.shape, target.stride(), strict=True)):
        if size > 1 and stride == 0:  # one element stands for all
            target, source = target.narrow(dim, 0, 1), source.narrow(dim, 0, 1)
    with torch.no_grad(), _unsafe_preserve_version_counter(target):
        target.copy_(source)
