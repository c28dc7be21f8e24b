"""The Triton kernels of statistics, in Triton's interpreter, against NumPy float64."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "triton" / "bin" / "python"  # tools/bootstrap.sh triton


def wanted(tensor: torch.Tensor) -> list[float]:
    wide = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64).numpy()
    values = np.abs(wide) if tensor.is_complex() else wide
    if tensor.is_complex():  # C's hypot(): infinite where a part is
        values = np.where(np.isinf(wide.real) | np.isinf(wide.imag), np.inf, values)
    known, finite = values[~np.isnan(values)], values[np.isfinite(values)]
    return [values.size, np.isnan(values).sum(), np.isinf(values).sum(), (values == 0).sum(),
            known.max(initial=-np.inf), known.min(initial=np.inf), finite.max(initial=-np.inf),
            finite.min(initial=np.inf), values.sum(), np.square(values).sum()]


def compare_all() -> None:
    """Runs in the interpreter of Triton."""
    from test_device_values import COMPLEX, FLOATS, INTEGERS, samples

    from plumbline.pytorch.device import triton_statistics
    reducer = triton_statistics.TritonStatistics(torch.device("cpu"))

    def compare(tensor: torch.Tensor) -> None:
        row = torch.empty(10, dtype=torch.float64)
        assert reducer.reduce_into(tensor, row)
        exact = 4 if tensor.is_complex() else 8  # a modulus may differ in its last bit
        expected = wanted(tensor)
        assert np.array_equal(row[:exact].numpy(), expected[:exact]), (tensor, row, expected)
        assert np.allclose(row.numpy(), expected, rtol=1e-12, atol=0, equal_nan=True), (
            tensor, row, expected)

    for dtype in (*FLOATS, *INTEGERS, *COMPLEX, torch.bool):
        for tensor in samples(dtype):
            compare(tensor)
    holes = torch.arange(2.0 * 3 * 5 * 7).reshape(2, 3, 5, 7)
    for tensor in (holes[:, :2, ::2, 1:], holes.permute(3, 1, 0, 2)[::3], holes.expand(2, 3, 5, 7),
                   torch.ones(1).expand(4, 3), holes[0, 0, 0, 0]):
        compare(tensor)
    deep = torch.zeros(2, 4, 2, 4, 2, 4, 2, 4, 2, 4)[:, ::2, :, ::2, :, ::2, :, ::2, :, ::2]
    assert not reducer.reduce_into(deep, torch.empty(10, dtype=torch.float64))
    triton_statistics._ALONE = triton_statistics._BLOCK  # several programs
    compare(torch.randn(5 * triton_statistics._BLOCK + 3).to(torch.bfloat16))


def test_kernels_agree_with_numpy() -> None:
    assert PYTHON.is_file(), "build/triton is missing; run tools/bootstrap.sh triton"
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1",
                   "PYTHONPATH": str(ROOT / "tests" / "python")}
    ended = subprocess.run(
        [str(PYTHON), "-W", "ignore", "-c",
         "import test_triton_statistics as tests; tests.compare_all()"],
        check=False, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
