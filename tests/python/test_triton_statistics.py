"""The Triton kernels of statistics, in Triton's interpreter, against NumPy float64."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import torch
from recording import PLUMB

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "optional" / "bin" / "python"  # tools/bootstrap.sh optional


def wanted(tensor: torch.Tensor) -> list[float]:
    wide = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64).numpy()
    values = np.abs(wide) if tensor.is_complex() else wide
    if tensor.is_complex():  # C's hypot(): infinite where a part is
        values = np.where(np.isinf(wide.real) | np.isinf(wide.imag), np.inf, values)
    known, finite = values[~np.isnan(values)], values[np.isfinite(values)]
    return [values.size, np.isnan(values).sum(), np.isinf(values).sum(), (values == 0).sum(),
            known.max(initial=-np.inf), known.min(initial=np.inf), finite.max(initial=-np.inf),
            finite.min(initial=np.inf), values.sum(), np.square(values).sum()]


_MASK = (1 << 64) - 1


def wanted_digest(tensor: torch.Tensor) -> list[int]:
    """By the definition, with NumPy's unsigned integers."""
    plain = tensor.resolve_conj().contiguous().reshape(-1)
    size = min(plain.element_size(), 8)
    words = np.frombuffer(plain.view(torch.uint8).numpy().tobytes(), f"<u{size}").astype(np.uint64)
    place = np.arange(1, words.size + 1, dtype=np.uint64)
    mixed = words * np.uint64(0x9E3779B185EBCA87) + place * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(29)
    second = mixed * np.uint64(0x94D049BB133111EB)
    second ^= second >> np.uint64(32)
    return [int(mixed.sum(dtype=np.uint64)), int(second.sum(dtype=np.uint64))]


def compare_all() -> None:
    """Runs in the interpreter of Triton."""
    from test_device_values import COMPLEX, FLOATS, INTEGERS, samples

    from plumbline.pytorch.device import statistics, triton_statistics
    reducer = triton_statistics.TritonStatistics(torch.device("cpu"))

    def compare(tensor: torch.Tensor) -> None:
        row = torch.empty(10, dtype=torch.float64)
        assert reducer.reduce_into(tensor, row)
        exact = 4 if tensor.is_complex() else 8  # a modulus may differ in its last bit
        expected = wanted(tensor)
        assert np.array_equal(row[:exact].numpy(), expected[:exact]), (tensor, row, expected)
        assert np.allclose(row.numpy(), expected, rtol=1e-12, atol=0, equal_nan=True), (
            tensor, row, expected)
        compare_digest(tensor)

    def compare_digest(tensor: torch.Tensor) -> None:
        halves = torch.zeros(2, dtype=torch.int64)
        statistics.digest_into(tensor, halves)
        assert [half & _MASK for half in halves.tolist()] == wanted_digest(tensor), tensor
        assert reducer.digest_into(tensor, halves.zero_())
        assert [half & _MASK for half in halves.tolist()] == wanted_digest(tensor), tensor

    for dtype in (*FLOATS, *INTEGERS, *COMPLEX, torch.bool):
        for tensor in samples(dtype):
            compare(tensor)
    holes = torch.arange(2.0 * 3 * 5 * 7).reshape(2, 3, 5, 7)
    for tensor in (holes[:, :2, ::2, 1:], holes.permute(3, 1, 0, 2)[::3], holes.expand(2, 3, 5, 7),
                   torch.ones(1).expand(4, 3), holes[0, 0, 0, 0]):
        compare(tensor)
    deep = torch.zeros(2, 4, 2, 4, 2, 4, 2, 4, 2, 4)[:, ::2, :, ::2, :, ::2, :, ::2, :, ::2]
    assert not reducer.reduce_into(deep, torch.empty(10, dtype=torch.float64))
    statistics._PIECE = 50
    compare_digest(torch.randn(7, 11, 13).transpose(0, 2))
    statistics._PIECE = 1 << 20
    triton_statistics._ALONE = triton_statistics._BLOCK  # several programs
    compare(torch.randn(5 * triton_statistics._BLOCK + 3).to(torch.bfloat16))


def test_kernels_agree_with_numpy() -> None:
    assert PYTHON.is_file(), "build/optional is missing; run tools/bootstrap.sh optional"
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PLUMB": PLUMB,
                   "PYTHONPATH": str(ROOT / "tests" / "python")}
    ended = subprocess.run(
        [str(PYTHON), "-W", "ignore", "-c",
         "import test_triton_statistics as tests; tests.compare_all()"],
        check=False, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
