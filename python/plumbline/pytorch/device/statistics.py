"""Statistics of one tensor, computed on its device by operators that every device has.

A row holds what the kernels on the host call moments (src/kernels/kernel_table.h): the numbers of
elements, NaN, Inf and zeros; the largest and smallest element but NaN, then of the finite ones; the
sum and the sum of squares. Complex elements count by modulus, bool as 0 and 1. Everything is
computed in float64.
"""

from __future__ import annotations

import math

import torch

COLUMNS = 10
# Elements that are widened to float64 at a time: what a reduction allocates does not grow with the
# tensor.
_PIECE = 1 << 20
_INF = math.inf
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


def _pieces(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Parts of at most _PIECE elements that make up `tensor`; none of an empty one."""
    count = tensor.numel()
    if count <= _PIECE:
        return [tensor] if count else []
    longest = max(range(tensor.dim()), key=lambda dimension: tensor.shape[dimension])
    slices = -(-count // _PIECE)
    length = -(-tensor.shape[longest] // min(slices, tensor.shape[longest]))
    return [piece for part in tensor.split(length, longest) for piece in _pieces(part)]


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
