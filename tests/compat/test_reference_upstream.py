"""Reference functions against those of upstream's tool, where these are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import run

torch = pytest.importorskip("torch")
pytest.importorskip("plumbline._reference")

from plumbline.precheck_run import reference  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("1.2.2", "26.2.0")
pytestmark = pytest.mark.upstream

# Runs [module, function, args, kwargs] of a file and saves what is returned.
RUN = """
import importlib, sys, torch
cases = torch.load(sys.argv[1], weights_only=False)
results = []
for module, name, args, kwargs in cases:
    found = importlib.import_module("msprobe.pytorch.bench_functions." + module)
    results.append(getattr(found, name)(*args, **kwargs))
torch.save(results, sys.argv[2])
"""


def randn(*shape: int, dtype: Any = torch.float64) -> Any:
    return torch.randn(*shape, dtype=dtype)


Case = tuple[str, str, tuple[Any, ...], dict[str, Any]]


def cases() -> list[Case]:
    torch.manual_seed(3)
    return small_cases() + attention_cases()


def small_cases() -> list[Case]:
    x, g = randn(2, 3, 4, 6), randn(2, 3, 4, 6)
    gamma, mask = randn(6), torch.rand(2, 1, 4, 6) < 0.3
    state = (randn(5), randn(5), torch.rand(5, dtype=torch.float64))
    powers = (0.9, 0.999, 1e-3)
    return [
        ("fast_gelu", "npu_fast_gelu", (x,), {}),
        ("fast_gelu", "npu_fast_gelu_backward", (g, x), {}),
        ("mish", "npu_mish", (x,), {}),
        ("confusion_transpose", "npu_confusion_transpose", (x, (0, 2, 1, 3), (2, 4, 18), True), {}),
        ("confusion_transpose", "npu_confusion_transpose_backward",
         (randn(2, 3, 20), (0, 2, 1), (2, 20, 3), False), {}),
        ("linear", "npu_linear", (randn(5, 6), randn(7, 6), randn(7)), {}),
        ("linear", "npu_linear_backward", (randn(5, 7), randn(5, 6), randn(7, 6)), {}),
        ("matmul_backward", "matmul_backward",
         (randn(2, 5, 7), randn(2, 5, 6), randn(2, 6, 7), [True, True]), {}),
        ("layer_norm_eval", "npu_layer_norm_eval", (x, [6]), {}),
        ("group_norm_silu", "npu_group_norm_silu", (x, randn(3), randn(3), 3, 1e-5), {}),
        ("rotary_mul", "npu_rotary_mul", (x, randn(1, 3, 1, 6), randn(1, 3, 1, 6)), {}),
        ("rotary_mul", "npu_rotary_mul_backward",
         (g, x, randn(1, 3, 1, 6), randn(1, 3, 1, 6)), {}),
        ("scaled_mask_softmax", "npu_scaled_masked_softmax", (x, mask, 0.5, False), {}),
        ("scaled_mask_softmax", "npu_scaled_masked_softmax_backward",
         (g, torch.softmax(x, -1), mask, 0.5, False), {}),
        ("sort_v2", "npu_sort_v2", (x,), {"dim": 1, "descending": True}),
        ("swiglu", "npu_swiglu", (x.float(),), {}),
        ("swiglu", "npu_swiglu_backward", (g[..., :3].contiguous(), x), {}),
        ("moe_gating_top_k_softmax", "npu_moe_gating_top_k_softmax",
         (randn(6, 5, dtype=torch.float32), torch.rand(6) < 0.5, 3), {}),
        ("rms_norm", "npu_rms_norm", (x, gamma, 1e-5), {}),
        ("apply_adam", "npu_apply_adam",
         (*powers, 0.9, 0.999, 1e-8, randn(5), False, False), {"out": state}),
        ("apply_adam", "npu_apply_adam",
         (*powers, 0.9, 0.999, 1e-8, randn(5), False, True), {"out": state}),
        ("apply_adam_w", "npu_apply_adam_w",
         (*powers, 0.1, 0.9, 0.999, 1e-8, randn(5), None, False, True), {"out": state}),
        # The device's types, which were not raised.
        ("swiglu", "npu_swiglu", (x.half(),), {}),
        ("swiglu", "npu_swiglu", (x.bfloat16(),), {}),
        ("swiglu", "npu_swiglu_backward", (g[..., :3].contiguous().bfloat16(), x.bfloat16()), {}),
        ("swiglu", "npu_swiglu_backward", (g[..., :3].contiguous().half(), x.half()), {}),
    ]


def attention_cases() -> list[Case]:
    q, k, v, dy = randn(2, 8, 5, 4), randn(2, 2, 7, 4), randn(2, 2, 7, 4), randn(2, 8, 5, 4)
    square = randn(2, 8, 5, 4), randn(2, 2, 5, 4), randn(2, 2, 5, 4)
    triangle = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
    flat = [t.transpose(1, 2).flatten(2) for t in (q, k, v)]
    found: list[Case] = []
    for mode, extra in ((0, {"pse": randn(2, 8, 5, 7)}), (0, {"atten_mask": None}), (1, {}),
                        (3, {"atten_mask": triangle})):
        # Without a mask upstream makes one of its own, which is empty in modes 0 and 1.
        options = {"scale": 0.4, "sparse_mode": mode, **extra}
        found.append(("npu_fusion_attention", "npu_fusion_attention", (q, k, v, 8, "BNSD"),
                      options))
    found.append(("npu_fusion_attention", "npu_fusion_attention", (*flat, 8, "BSH"),
                  {"scale": 0.4}))
    for mode in (2, 4):
        found.append(("npu_fusion_attention", "npu_fusion_attention", (*square, 8, "BNSD"),
                      {"scale": 0.4, "sparse_mode": mode, "atten_mask": triangle,
                       "pre_tockens": 2, "next_tockens": 1}))
    found.append(("npu_fusion_attention", "npu_fusion_attention_grad",
                  (q, k, v, dy, 8, "BNSD"),
                  {"scale_value": 0.4, "sparse_mode": 3, "atten_mask": triangle}))
    return found


def compare(case: str, got: Any, wanted: Any) -> None:
    if isinstance(wanted, (tuple, list)):
        for one, other in zip(got, wanted, strict=False):
            compare(case, one, other)
        return
    if wanted is None:
        return
    # float32 within, where upstream rounds a raised float32 call.
    precise = wanted.dtype == torch.float64 and "softmax" not in case
    rounded = wanted.dtype in (torch.float16, torch.bfloat16)
    tolerance = 1e-10 if precise else 2e-6
    if rounded:  # one unit in the last place of the device's type
        tolerance = 2 * torch.finfo(wanted.dtype).eps
    torch.testing.assert_close(got.to(wanted.dtype), wanted, rtol=tolerance, atol=tolerance,
                               msg=lambda text: f"{case}: {text}")


@pytest.mark.parametrize("version", VERSIONS)
def test_same_as_upstream(version: str, tmp_path: Path) -> None:
    python = ROOT / "build/upstream" / version / "bin/python"
    if not python.exists():
        pytest.skip(f"upstream {version} is not installed")
    torch.save(cases(), tmp_path / "cases.pt")
    run([python, "-c", RUN, tmp_path / "cases.pt", tmp_path / "out.pt"]).check_returncode()
    wanted = torch.load(tmp_path / "out.pt", weights_only=False)
    for (_, name, args, kwargs), expected in zip(cases(), wanted, strict=True):
        found = reference.find(name)
        assert found is not None
        compare(f"{name} {kwargs.keys()}", found(*args, **kwargs), expected)
