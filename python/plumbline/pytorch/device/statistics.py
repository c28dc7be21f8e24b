"""Statistics and digest of one tensor, computed on its device by operators that every device has.

A row holds what the kernels on the host call moments (src/kernels/kernel_table.h): the numbers of
elements, NaN, Inf and zeros; the largest and smallest element but NaN, then of the finite ones; the
sum and the sum of squares. Complex elements count by modulus, bool as 0 and 1. Everything is
computed in float64. The digest is that of src/base/memory/digest.h, in int64, whose products
wrap around as unsigned ones do.
"""

from __future__ import annotations

import math

import torch

COLUMNS = 10
# Elements that are widened to float64 at a time: what a reduction allocates does not grow with the
# tensor.
_PIECE = 1 << 20
_INF = math.inf
_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# As int64 has them.
_WORD_FACTOR, _PLACE_FACTOR, _FIRST_FACTOR, _SECOND_FACTOR = (factor - (1 << 64) for factor in (
    0x9E3779B185EBCA87, 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_EMPTY = (0.0, 0.0, 0.0, 0.0, -_INF, _INF, -_INF, _INF, 0.0, 0.0)


def reduce_into(tensor: torch.Tensor, row: torch.Tensor) -> None:
    """Writes the statistics of `tensor` into `row`, float64 of COLUMNS elements on its device.

    Raises:
        RuntimeError: the device has no float64, or an operator is missing for this dtype.
    """
    rows = [_row_of(piece) for piece in _pieces(tensor)]
    if not rows:
        row.copy_(torch.tensor(_EMPTY, dtype=torch.float64), non_blocking=True)
    elif len(rows) == 1:
        torch.stack(rows[0], out=row)
    else:
        together = torch.stack([torch.stack(each) for each in rows])
        torch.stack(
            [*together[:, :4].sum(0), together[:, 4].max(), together[:, 5].min(),
             together[:, 6].max(), together[:, 7].min(), *together[:, 8:].sum(0)], out=row)


def digest_into(tensor: torch.Tensor, halves: torch.Tensor) -> None:
    """Writes the low and high half of the digest of `tensor` into `halves`, int64, on its device.

    Raises:
        RuntimeError: an operator is missing for this dtype.
    """
    sums = []
    words = words_of(tensor)
    strides = [1] * words.dim()  # of the row-major order
    for dimension in range(words.dim() - 2, -1, -1):
        strides[dimension] = strides[dimension + 1] * words.shape[dimension + 1]
    for piece, first in _placed_pieces(words, strides, 0):
        place = torch.full((), first + 1, dtype=torch.int64, device=piece.device)
        for dimension, stride in enumerate(strides):
            steps = torch.arange(piece.shape[dimension], device=piece.device)
            place = place.unsqueeze(-1) + steps * stride
        sums.append(_mixed_sums(piece, place))
    halves.copy_(torch.stack(sums).sum(0) if sums else torch.zeros_like(halves))


def words_of(tensor: torch.Tensor) -> torch.Tensor:
    """The elements as integers of their size; one of 16 bytes is two of 8, in a last dimension."""
    plain = tensor.resolve_conj().resolve_neg()
    if plain.dtype is torch.complex128:
        plain = torch.view_as_real(plain)
    return plain.view(_WORDS[plain.element_size()])


def _mixed_sums(words: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    wide = words.to(torch.int64)
    if words.element_size() < 8:
        wide = wide & ((1 << 8 * words.element_size()) - 1)
    mixed = wide * _WORD_FACTOR + place * _PLACE_FACTOR
    mixed = (mixed ^ _shifted(mixed, 32)) * _FIRST_FACTOR
    mixed = mixed ^ _shifted(mixed, 29)
    second = mixed * _SECOND_FACTOR
    return torch.stack((mixed.sum(), (second ^ _shifted(second, 32)).sum()))


def _shifted(values: torch.Tensor, bits: int) -> torch.Tensor:
    """To the right, zeros coming in."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def _placed_pieces(
    tensor: torch.Tensor, strides: list[int], first: int
) -> list[tuple[torch.Tensor, int]]:
    """The pieces, each with the number of its first element."""
    if tensor.numel() <= _PIECE:
        return [(tensor, first)] if tensor.numel() else []
    dimension, length = _cut(tensor)
    return [placed for index, part in enumerate(tensor.split(length, dimension))
            for placed in _placed_pieces(part, strides,
                                         first + index * length * strides[dimension])]


def _cut(tensor: torch.Tensor) -> tuple[int, int]:
    """Where a tensor is split, and the length of the parts there."""
    longest = max(range(tensor.dim()), key=lambda dimension: tensor.shape[dimension])
    slices = min(-(-tensor.numel() // _PIECE), tensor.shape[longest])
    return longest, -(-tensor.shape[longest] // slices)


def _pieces(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Parts of at most _PIECE elements that make up `tensor`; none of an empty one."""
    count = tensor.numel()
    if count <= _PIECE:
        return [tensor] if count else []
    dimension, length = _cut(tensor)
    return [piece for part in tensor.split(length, dimension) for piece in _pieces(part)]


def _row_of(piece: torch.Tensor) -> list[torch.Tensor]:
    if piece.is_complex():
        parts = torch.view_as_real(piece.resolve_conj()).to(torch.float64)
        values = torch.hypot(parts[..., 0], parts[..., 1])
    else:
        values = piece.to(torch.float64)
    finite, nan = torch.isfinite(values), torch.isnan(values)
    count = values.new_full((), values.numel())
    nan_count = nan.sum(dtype=torch.float64)
    return [
        count,
        nan_count,
        count - finite.sum(dtype=torch.float64) - nan_count,
        (values == 0).sum(dtype=torch.float64),
        values.masked_fill(nan, -_INF).max(),
        values.masked_fill(nan, _INF).min(),
        values.masked_fill(~finite, -_INF).max(),
        values.masked_fill(~finite, _INF).min(),
        values.sum(),
        (values * values).sum(),
    ]
