"""Statistics of one tensor in one Triton kernel: it is read once, and nothing of its size is made.

The rows are those of plumbline.pytorch.device.statistics. Memory without holes is read as it lies,
since no number depends on the order of elements; other tensors through up to four strides. A tensor
of more than one block is shared out, and a second kernel adds up what the first has written. The
sums are float64.

Size caps: a kernel is one function, with one parameter per number that the launch tells it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from plumbline.pytorch.device.statistics import COLUMNS, words_of

_MOST_PROGRAMS = 1024
_MOST_STRIDES = 4
_INTERPRETED = triton.knobs.runtime.interpret
_BLOCK = 65536 if _INTERPRETED else 2048
_ALONE = 32 * _BLOCK  # elements that one program reads

_FLOAT, _INTEGER, _COMPLEX, _FLOAT8 = 0, 1, 2, 3
# Bits of the mantissa, bias of the exponent, and how NaN and Inf are written: by the largest
# exponent as in IEEE 754 (1), NaN alone by all bits set (2) or by the pattern of -0 (3).
_FLOAT8_FORMATS = {
    torch.float8_e5m2: (2, 15, 1), torch.float8_e4m3fn: (3, 7, 2),
    torch.float8_e5m2fnuz: (2, 16, 3), torch.float8_e4m3fnuz: (3, 8, 3),
}
_NARROW = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def _widen_float8(bits, MANTISSA: tl.constexpr, BIAS: tl.constexpr, NAN: tl.constexpr):  # type: ignore[no-untyped-def]
    """float32 values of 8-bit floats."""
    exponent = (bits & 0x7F) >> MANTISSA
    fraction = bits & ((1 << MANTISSA) - 1)
    normal = ((exponent - BIAS + 127) << 23) | (fraction << (23 - MANTISSA))
    value = normal.to(tl.float32, bitcast=True)
    tiny = fraction.to(tl.float32) * (2.0 ** (1 - BIAS - MANTISSA))
    value = tl.where(exponent == 0, tiny, value)
    if NAN == 1:
        top = exponent == (0x7F >> MANTISSA)
        value = tl.where(top, float("inf"), value)
        value = tl.where(top & (fraction != 0), float("nan"), value)
    if NAN == 2:
        value = tl.where((bits & 0x7F) == 0x7F, float("nan"), value)
    value = tl.where((bits & 0x80) != 0, -value, value)
    if NAN == 3:
        value = tl.where(bits == 0x80, float("nan"), value)
    return value


@triton.jit
def _modulus(real, imaginary):  # type: ignore[no-untyped-def]
    """Without overflow in between; Inf where a part is, as C's hypot()."""
    one, other = tl.abs(real), tl.abs(imaginary)
    large, small = tl.maximum(one, other), tl.minimum(one, other)
    ratio = small / tl.where(large == 0, 1.0, large)
    value = large * tl.sqrt(1.0 + ratio * ratio)
    value = tl.where((real != real) | (imaginary != imaginary), float("nan"), value)
    return tl.where((one == float("inf")) | (other == float("inf")), float("inf"), value)


@triton.jit
def _offset_of(index, size1, size2, size3, stride0, stride1, stride2, stride3):  # type: ignore[no-untyped-def]
    """Where the elements of these numbers, in the order of four dimensions, lie."""
    rest = index // size3
    offset = (index % size3) * stride3 + (rest % size2) * stride2
    rest = rest // size2
    return offset + (rest % size1) * stride1 + (rest // size1) * stride0


@triton.jit
def _reduce(data, out, count, size1, size2, size3, stride0, stride1, stride2, stride3,  # type: ignore[no-untyped-def]
            KIND: tl.constexpr, IS_DENSE: tl.constexpr, WIDE: tl.constexpr,
            MANTISSA: tl.constexpr, BIAS: tl.constexpr, NAN: tl.constexpr,
            BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    """One row per program, of every num_programs-th block."""
    program = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK).to(tl.int64)
    infinity = float("inf")
    seen = tl.zeros([BLOCK], tl.int32)
    nans = tl.zeros([BLOCK], tl.int32)
    infs = tl.zeros([BLOCK], tl.int32)
    zeros = tl.zeros([BLOCK], tl.int32)
    high = tl.full([BLOCK], -infinity, WIDE)
    low = tl.full([BLOCK], infinity, WIDE)
    finite_high = tl.full([BLOCK], -infinity, WIDE)
    finite_low = tl.full([BLOCK], infinity, WIDE)
    total = tl.zeros([BLOCK], tl.float64)
    squares = tl.zeros([BLOCK], tl.float64)
    for start in range(program * BLOCK, count, tl.num_programs(0).to(tl.int64) * BLOCK):
        index = start + lanes
        inside = index < count
        offset = index
        if not IS_DENSE:
            offset = _offset_of(index, size1, size2, size3, stride0, stride1, stride2, stride3)
        if KIND == 2:
            real = tl.load(data + 2 * offset, mask=inside, other=0).to(tl.float64)
            imaginary = tl.load(data + 2 * offset + 1, mask=inside, other=0).to(tl.float64)
            value = _modulus(real, imaginary)
        elif KIND == 3:
            bits = tl.load(data + offset, mask=inside, other=0).to(tl.int32)
            value = _widen_float8(bits, MANTISSA, BIAS, NAN)
        else:
            value = tl.load(data + offset, mask=inside, other=0).to(WIDE)
        nan = (value != value) & inside
        infinite = (tl.abs(value) == infinity) & inside
        finite = inside & (value == value) & (tl.abs(value) != infinity)
        seen += inside.to(tl.int32)
        nans += nan.to(tl.int32)
        infs += infinite.to(tl.int32)
        zeros += ((value == 0) & inside).to(tl.int32)
        known = inside & (value == value)
        high = tl.maximum(high, tl.where(known, value, -infinity))
        low = tl.minimum(low, tl.where(known, value, infinity))
        finite_high = tl.maximum(finite_high, tl.where(finite, value, -infinity))
        finite_low = tl.minimum(finite_low, tl.where(finite, value, infinity))
        wide = tl.where(inside, value, 0.0).to(tl.float64)
        total += wide
        squares += wide * wide
    row = out + program * COLUMNS
    tl.store(row, tl.sum(seen.to(tl.float64)))
    tl.store(row + 1, tl.sum(nans.to(tl.float64)))
    tl.store(row + 2, tl.sum(infs.to(tl.float64)))
    tl.store(row + 3, tl.sum(zeros.to(tl.float64)))
    tl.store(row + 4, tl.max(high).to(tl.float64))
    tl.store(row + 5, tl.min(low).to(tl.float64))
    tl.store(row + 6, tl.max(finite_high).to(tl.float64))
    tl.store(row + 7, tl.min(finite_low).to(tl.float64))
    tl.store(row + 8, tl.sum(total))
    tl.store(row + 9, tl.sum(squares))


@triton.jit
def _digest(data, out, count, size1, size2, size3, stride0, stride1, stride2, stride3,  # type: ignore[no-untyped-def]
            IS_DENSE: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    """The halves of a digest per program (src/base/memory/digest.h)."""
    program = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK).to(tl.int64)
    low = tl.zeros([BLOCK], tl.uint64)
    high = tl.zeros([BLOCK], tl.uint64)
    for start in range(program * BLOCK, count, tl.num_programs(0).to(tl.int64) * BLOCK):
        index = start + lanes
        inside = index < count
        offset = index
        if not IS_DENSE:
            offset = _offset_of(index, size1, size2, size3, stride0, stride1, stride2, stride3)
        word = tl.load(data + offset, mask=inside, other=0).to(tl.int64)
        if BITS < 64:
            word = word & ((1 << BITS) - 1)
        place = (index + 1).to(tl.uint64, bitcast=True)
        mixed = word.to(tl.uint64, bitcast=True) * 0x9E3779B185EBCA87 + place * 0x9E3779B97F4A7C15
        mixed = (mixed ^ (mixed >> 32)) * 0xBF58476D1CE4E5B9
        mixed = mixed ^ (mixed >> 29)
        second = mixed * 0x94D049BB133111EB
        second = second ^ (second >> 32)
        nothing = tl.zeros([BLOCK], tl.uint64)
        low += tl.where(inside, mixed, nothing)
        high += tl.where(inside, second, nothing)
    tl.store(out + program * 2, tl.sum(low).to(tl.int64, bitcast=True))
    tl.store(out + program * 2 + 1, tl.sum(high).to(tl.int64, bitcast=True))


@triton.jit
def _add_digests(rows, out, count, PROGRAMS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The halves of all programs in one pair."""
    lanes = tl.arange(0, PROGRAMS)
    for half in tl.static_range(2):
        value = tl.load(rows + lanes * 2 + half, mask=lanes < count, other=0)
        tl.store(out + half, tl.sum(value))


@triton.jit
def _combine(rows, out, count, PROGRAMS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The rows of all programs in one."""
    lanes = tl.arange(0, PROGRAMS)
    inside = lanes < count
    infinity = float("inf")
    for column in tl.static_range(COLUMNS):
        at = rows + lanes * COLUMNS + column
        if column == 4 or column == 6:
            value = tl.max(tl.load(at, mask=inside, other=-infinity))
        elif column == 5 or column == 7:
            value = tl.min(tl.load(at, mask=inside, other=infinity))
        else:
            value = tl.sum(tl.load(at, mask=inside, other=0.0))
        tl.store(out + column, value)


class TritonStatistics:
    """Reduces the tensors of one stream of a device."""

    def __init__(self, device: torch.device) -> None:
        self._rows = torch.empty((_MOST_PROGRAMS, COLUMNS), dtype=torch.float64, device=device)
        self._halves = torch.empty((_MOST_PROGRAMS, 2), dtype=torch.int64, device=device)

    def reduce_into(self, tensor: torch.Tensor, row: torch.Tensor) -> bool:
        """Writes the statistics into `row`, float64; False: no kernel takes such a tensor."""
        layout = _layout_of(tensor)
        if layout is None or tensor.is_neg():
            return False
        kind, data, wide, float8 = _data_of(tensor)
        count = tensor.numel()
        programs = _programs_for(count)
        out = row if programs == 1 else self._rows
        sizes, strides, is_dense = layout
        _reduce[(programs,)](
            data, out, count, *sizes, *strides, KIND=kind, IS_DENSE=is_dense, WIDE=wide,
            MANTISSA=float8[0], BIAS=float8[1], NAN=float8[2], BLOCK=_BLOCK, COLUMNS=COLUMNS)
        if programs > 1:
            _combine[(1,)](self._rows, row, programs, PROGRAMS=_MOST_PROGRAMS, COLUMNS=COLUMNS)
        return True

    def digest_into(self, tensor: torch.Tensor, halves: torch.Tensor) -> bool:
        """Writes the halves of the digest into `halves`, int64; False: no kernel takes it."""
        words = words_of(tensor)
        layout = _layout_of(words, in_order=True)
        if layout is None:
            return False
        count = words.numel()
        programs = _programs_for(count)
        out = halves if programs == 1 else self._halves
        sizes, strides, is_dense = layout
        _digest[(programs,)](words, out, count, *sizes, *strides, IS_DENSE=is_dense,
                             BITS=8 * words.element_size(), BLOCK=_BLOCK)
        if programs > 1:
            _add_digests[(1,)](self._halves, halves, programs, PROGRAMS=_MOST_PROGRAMS)
        return True


def _programs_for(count: int) -> int:
    return min(_MOST_PROGRAMS, triton.cdiv(count, _BLOCK)) if count > _ALONE else 1


def _data_of(tensor: torch.Tensor) -> tuple[int, torch.Tensor, tl.dtype, tuple[int, int, int]]:
    """How a kernel reads the elements: kind, memory, type to widen to, float8 format."""
    nothing = (0, 0, 0)
    if tensor.dtype in _FLOAT8_FORMATS:
        return _FLOAT8, tensor.view(torch.uint8), tl.float32, _FLOAT8_FORMATS[tensor.dtype]
    if tensor.is_complex():
        return _COMPLEX, torch.view_as_real(tensor.resolve_conj()), tl.float64, nothing
    if tensor.dtype is torch.bool:
        return _INTEGER, tensor.view(torch.uint8), tl.float64, nothing
    if not tensor.is_floating_point():
        return _INTEGER, tensor, tl.float64, nothing
    return _FLOAT, tensor, tl.float32 if tensor.dtype in _NARROW else tl.float64, nothing


def _layout_of(
    tensor: torch.Tensor, in_order: bool = False
) -> tuple[list[int], list[int], bool] | None:
    """The last three of four sizes, four strides, and whether the memory has no holes.

    The dimensions are those of the memory, or `in_order` those of the tensor. None: too many.
    """
    pairs = [(stride, size) for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
             if size != 1][::-1]
    merged: list[list[int]] = []  # [stride, size], the innermost first
    for stride, size in pairs if in_order else sorted(pairs):
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1][1] *= size
        else:
            merged.append([stride, size])
    if tensor.numel() == 0 or not merged or (len(merged) == 1 and merged[0][0] == 1):
        return [1, 1, 1], [0, 0, 0, 1], True
    if len(merged) > _MOST_STRIDES:
        return None
    merged += [[0, 1]] * (_MOST_STRIDES - len(merged))
    outer_first = merged[::-1]
    return [size for _, size in outer_first[1:]], [stride for stride, _ in outer_first], False
