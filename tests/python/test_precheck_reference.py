"""Reference functions of fused operators against autograd of plain PyTorch in float64."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("plumbline._reference")

from plumbline.precheck_run import reference  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def _clean() -> Any:
    torch.manual_seed(7)
    yield
    reference.set_recorded(None)
    reference._references.cache_clear()


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    found = reference.find(name)
    assert found is not None, name
    return found(*args, **kwargs)


def randn(*shape: int, dtype: Any = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=dtype)


def first(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def agree(ours: Callable[..., Any], plain: Callable[..., Any], tensors: Sequence[Tensor],
          tolerance: float = 1e-11) -> None:
    """Same values, and same gradients of all tensors by the first output."""
    results = []
    for function in (ours, plain):
        leaves = [tensor.clone().requires_grad_(tensor.is_floating_point()) for tensor in tensors]
        output = first(function(*leaves))
        grad = torch.linspace(-1, 2, output.numel(), dtype=output.dtype).reshape(output.shape)
        output.backward(grad)
        results.append([output.detach(), *[leaf.grad for leaf in leaves]])
    for got, wanted in zip(*results, strict=True):
        if wanted is None:
            assert got is None
        else:
            torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


# ---- Every operator against autograd


def test_activations() -> None:
    x = randn(3, 4, 6)
    agree(reference.find("fast_gelu"), lambda x: x * torch.sigmoid(1.702 * x), [x])
    agree(reference.find("npu_mish"), torch.nn.functional.mish, [x])
    for dim in (-1, 1, 2):
        agree(lambda x, dim=dim: call("npu_swiglu", x, dim),
              lambda x, dim=dim: (lambda a, b: torch.nn.functional.silu(a) * b)(
                  *x.chunk(2, dim)), [x])


def rms(x: Tensor, gamma: Tensor, eps: float = 1e-6) -> Tensor:
    dims = tuple(range(-gamma.dim(), 0))
    return x * torch.rsqrt(x.pow(2).mean(dims, keepdim=True) + eps) * gamma


@pytest.mark.parametrize("shape", [(5,), (4, 5)])
def test_rms_norm(shape: tuple[int, ...]) -> None:
    agree(reference.find("npu_rms_norm"), rms, [randn(3, 4, 5), randn(*shape)])
    x, gamma, grad = randn(3, 4, 5), randn(*shape), randn(3, 4, 5)
    rstd = call("npu_rms_norm", x, gamma)[1]
    leaves = [x.clone().requires_grad_(), gamma.clone().requires_grad_()]
    rms(*leaves).backward(grad)
    for got, leaf in zip(call("npu_rms_norm_backward", grad, x, gamma, rstd), leaves, strict=True):
        torch.testing.assert_close(got, leaf.grad)


def test_layer_norm_eval() -> None:
    x, weight, bias = randn(3, 4, 5), randn(4, 5), randn(4, 5)
    plain = torch.nn.functional.layer_norm
    agree(lambda x, w, b: call("npu_layer_norm_eval", x, [4, 5], w, b, 1e-2),
          lambda x, w, b: plain(x, [4, 5], w, b, 1e-2), [x, weight, bias])
    agree(lambda x: call("npu_layer_norm_eval", x, 5), lambda x: plain(x, [5]), [x])


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 3), (2, 6, 3, 2), (1, 6, 2, 2, 2)])
def test_group_norm_silu(shape: tuple[int, ...]) -> None:
    agree(lambda x, w, b: call("npu_group_norm_silu", x, w, b, 3, 1e-3),
          lambda x, w, b: torch.nn.functional.silu(
              torch.nn.functional.group_norm(x, 3, w, b, 1e-3)),
          [randn(*shape), randn(6), randn(6)])
    x = randn(*shape)
    _, mean, rstd = call("npu_group_norm_silu", x, None, None, 3, eps=1e-3)
    groups = x.reshape(shape[0], 3, -1)
    torch.testing.assert_close(mean, groups.mean(-1))
    torch.testing.assert_close(rstd, torch.rsqrt(groups.var(-1, unbiased=False) + 1e-3))


@pytest.mark.parametrize("mask_shape", [(2, 3, 4, 5), (2, 1, 4, 5), (1, 1, 4, 5), (4, 5), None])
def test_scaled_masked_softmax(mask_shape: tuple[int, ...] | None) -> None:
    x = randn(2, 3, 4, 5)
    mask = None if mask_shape is None else torch.rand(mask_shape) < 0.4
    hidden = torch.zeros(1, dtype=torch.bool) if mask is None else mask
    agree(lambda x: call("npu_scaled_masked_softmax", x, mask, 0.3),
          lambda x: torch.softmax((x * 0.3).masked_fill(hidden, -10000.0), -1), [x])
    triangle = torch.ones(4, 5, dtype=torch.bool).triu(1)
    agree(lambda x: call("npu_scaled_masked_softmax", x, mask, 0.3, True),
          lambda x: torch.softmax((x * 0.3).masked_fill(triangle, -10000.0), -1), [x])


def test_moe_gating() -> None:
    agree(lambda x: call("npu_moe_gating_top_k_softmax", x, None, 3),
          lambda x: torch.softmax(x, -1).topk(3, -1).values, [randn(4, 7)])
    y, experts, rows = call("npu_moe_gating_top_k_softmax", randn(2, 4, 7), k=3)
    assert y.shape == experts.shape == rows.shape == (2, 4, 3)
    assert rows.reshape(8, 3)[:, 1].tolist() == list(range(8, 16))
    assert not experts.requires_grad


BROADCASTS = [(1, 5, 1, 4), (1, 1, 5, 4), (2, 1, 1, 4), (4,), (2, 5, 3, 4), (5, 1, 1)]


@pytest.mark.parametrize("mode", ["half", "interleave"])
@pytest.mark.parametrize("shape", BROADCASTS)
def test_rotary_mul(shape: tuple[int, ...], mode: str) -> None:
    def plain(x: Tensor, r1: Tensor, r2: Tensor) -> Tensor:
        if mode == "half":
            a, b = x.chunk(2, -1)
            turned = torch.cat([-b, a], -1)
        else:
            turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        return r1 * x + r2 * turned

    x = randn(2, 5, 5, 4) if shape == (1, 1, 5, 4) else randn(2, 5, 3, 4)
    agree(lambda x, r1, r2: call("npu_rotary_mul", x, r1, r2, mode), plain,
          [x, randn(*shape), randn(*shape)])


def test_linear() -> None:
    agree(reference.find("npu_linear"), torch.nn.functional.linear,
          [randn(2, 3, 130), randn(140, 130), randn(140)])
    agree(reference.find("npu_linear"), torch.nn.functional.linear, [randn(3, 4), randn(5, 4)])
    assert len(call("npu_linear_backward", randn(3, 5), randn(3, 4), randn(5, 4))) == 2


MATMULS = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)),
           ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)),
           ((6, 1, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((6, 5, 2, 3), (1, 5, 3, 4))]


@pytest.mark.parametrize(("left", "right"), MATMULS)
def test_matmul_backward(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = randn(*left).requires_grad_(), randn(*right).requires_grad_()
    out = a @ b
    grad = torch.randn_like(out)
    out.backward(grad)
    da, db = call("matmul_backward", grad, a, b, [True, True])
    torch.testing.assert_close(da, a.grad)
    torch.testing.assert_close(db, b.grad)
    assert call("matmul_backward", grad, a, b, [False, True])[0] is None


def test_confusion_transpose() -> None:
    x = randn(3, 2, 5, 4)
    y = call("npu_confusion_transpose", x, (0, 2, 1, 3), (3, 5, 8), True)
    assert y.shape == (3, 5, 8)
    torch.testing.assert_close(y, x.permute(0, 2, 1, 3).reshape(3, 5, 8))
    y = call("npu_confusion_transpose", x, (0, 2, 1), (3, 10, 4), False)
    torch.testing.assert_close(y, x.reshape(3, 10, 4).permute(0, 2, 1))
    agree(lambda x: call("npu_confusion_transpose", x, (0, 2, 1, 3), (3, 5, 8), True),
          lambda x: x.permute(0, 2, 1, 3).reshape(3, 5, 8), [x])
    agree(lambda x: call("npu_confusion_transpose", x, (0, 2, 1), (3, 10, 4), False),
          lambda x: x.reshape(3, 10, 4).permute(0, 2, 1), [x])
    back = call("npu_confusion_transpose_backward", randn(3, 4, 10), (0, 2, 1), (3, 10, 4), False)
    assert back.shape == (3, 10, 4)


def test_sort_v2() -> None:
    agree(lambda x: call("npu_sort_v2", x, 1, True),
          lambda x: torch.sort(x, 1, descending=True).values, [randn(3, 6)])
    assert call("npu_sort_v2", torch.tensor([3, 1, 2])).tolist() == [1, 2, 3]


def test_adam_against_torch() -> None:
    var, grad = randn(3, 5), randn(3, 5)
    parameter = var.clone().requires_grad_()
    optimizer = torch.optim.AdamW([parameter], lr=0.01, weight_decay=0.1)
    m, v, power1, power2 = torch.zeros_like(var), torch.zeros_like(var), 1.0, 1.0
    for _ in range(3):
        parameter.grad = grad.clone()
        optimizer.step()
        var, m, v = call("npu_apply_adam_w", power1, power2, 0.01, 0.1, 0.9, 0.999, eps=1e-8,
                         grad=grad, max_grad_norm=None, amsgrad=False, maximize=False,
                         out=(var, m, v))
        power1, power2 = power1 * 0.9, power2 * 0.999
    torch.testing.assert_close(var, parameter.detach())


# ---- Attention


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None,
              **options: Any) -> Tensor:
    pse, scale = options.get("pse"), options.get("scale", 1.0)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.mT
    scores = (scores if pse is None else scores + pse) * scale
    if mask is not None:
        scores = scores - 40000.0 * mask
    return torch.softmax(scores, -1) @ v


TRIANGLE = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
DIFFERENCE = torch.arange(7)[None, :] - torch.arange(5)[:, None]  # column - row; S1 = 5, S2 = 7


@pytest.mark.parametrize(("options", "mask"), [
    ({}, None),
    ({"scale": 0.25}, None),
    ({"sparse_mode": 3}, None),
    ({"sparse_mode": 2, "atten_mask": TRIANGLE}, DIFFERENCE >= 1),
    ({"sparse_mode": 3, "atten_mask": TRIANGLE}, DIFFERENCE >= 3),
    ({"sparse_mode": 4, "atten_mask": TRIANGLE, "pre_tockens": 1, "next_tockens": 0},
     (DIFFERENCE >= 3) | (DIFFERENCE < 1)),
    ({"atten_mask": DIFFERENCE == 2}, DIFFERENCE == 2),
    ({"sparse_mode": 1, "atten_mask": (DIFFERENCE > 0).expand(2, 1, 5, 7)}, DIFFERENCE > 0),
    ({"sparse_mode": 5, "atten_mask": (DIFFERENCE > 1).to(torch.uint8).expand(2, 8, 5, 7)},
     DIFFERENCE > 1),
])
def test_attention_of_grouped_heads(options: dict[str, Any], mask: Tensor | None) -> None:
    q, k, v = randn(2, 8, 5, 4), randn(2, 2, 7, 4), randn(2, 2, 7, 4)
    agree(lambda q, k, v: call("npu_fusion_attention", q, k, v, 8, "BNSD", **options),
          lambda q, k, v: attention(q, k, v, mask, scale=options.get("scale", 1.0)), [q, k, v])


def to_layout(x: Tensor, layout: str) -> Tensor:
    if layout == "BNSD":
        return x
    if layout == "TND":
        return x.transpose(1, 2).flatten(0, 1)
    x = x.transpose(1, 2)
    if layout == "BSND":
        return x.contiguous()
    return x.flatten(2) if layout == "BSH" else x.flatten(2).transpose(0, 1)


@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BSH", "SBH", "TND"])
def test_attention_of_every_layout(layout: str) -> None:
    q, k, v = randn(2, 8, 5, 4), randn(2, 2, 7, 4), randn(2, 2, 7, 4)
    lengths = {}
    if layout == "TND":
        lengths = {"actual_seq_qlen": [5, 10], "actual_seq_kvlen": torch.tensor([7, 14])}
    agree(lambda q, k, v: call("npu_fusion_attention", *(to_layout(x, layout) for x in (q, k, v)),
                               8, layout, scale=0.5, **lengths),
          lambda q, k, v: to_layout(attention(q, k, v, scale=0.5), layout), [q, k, v])


def test_explicit_gradient_of_attention() -> None:
    q, k, v = (x.requires_grad_() for x in (randn(2, 8, 5, 4), randn(2, 2, 7, 4),
                                            randn(2, 2, 7, 4)))
    pse, dy = randn(2, 8, 5, 7), randn(2, 8, 5, 4)
    attention(q, k, v, pse=pse, scale=0.5).backward(dy)
    grads = call("npu_fusion_attention_grad", q, k, v, dy, 8, "BNSD", pse=pse, scale_value=0.5)
    for got, tensor in zip(grads, (q, k, v), strict=True):
        torch.testing.assert_close(got, tensor.grad)


def test_attention_of_mindspore() -> None:
    q, k, v, shift = randn(2, 8, 5, 4), randn(2, 2, 7, 4), randn(2, 2, 7, 4), randn(1, 8, 1, 7)
    agree(lambda q, k, v: call("flash_attention_score", *(to_layout(x, "BSH") for x in (q, k, v)),
                               8, shift, attn_mask=TRIANGLE, sparse_mode=4, pre_tokens=1,
                               next_tokens=0, scalar_value=0.5)[0],
          lambda q, k, v: to_layout(attention(q, k, v, (DIFFERENCE >= 3) | (DIFFERENCE < 1),
                                              pse=shift, scale=0.5), "BSH"), [q, k, v])


def test_results_of_raised_calls_are_rounded_once() -> None:
    q, k, v = (randn(1, 4, 6, 8, dtype=torch.float32) for _ in range(3))
    out, largest, total = call("npu_fusion_attention", q, k, v, 4, "BNSD")
    assert out.dtype == largest.dtype == total.dtype == torch.float64
    assert largest.shape == total.shape == (1, 4, 6, 8)
    exact = attention(q.double(), k.double(), v.double())
    torch.testing.assert_close(out, exact, rtol=0, atol=1e-13)
    x, gamma = randn(4, 64, dtype=torch.float32), randn(64, dtype=torch.float32)
    y, rstd = call("npu_rms_norm", x, gamma)
    assert rstd.dtype == torch.float32
    assert torch.equal(y, rms(x.double(), gamma.double()).float())


# ---- Recorded in 16 bits


def test_device_rounds_where_16_bits_were_recorded() -> None:
    x = randn(64, 32, dtype=torch.float32)
    exact = call("npu_swiglu", x)
    reference.set_recorded("bfloat16")
    rounded = call("npu_swiglu", x)
    a, b = x.chunk(2, -1)
    silu = torch.nn.functional.silu(a.double()).float().bfloat16().float()
    assert torch.equal(rounded, silu * b)
    assert not torch.equal(rounded, exact)
    reference.set_recorded("float32")
    assert torch.equal(call("npu_swiglu", x), exact)


# ---- How they are called


def test_names_of_upstream_are_known() -> None:
    x = randn(2, 4)
    torch.testing.assert_close(call("npu_rms_norm", x=x, gama=torch.ones(4, dtype=x.dtype)),
                               call("npu_rms_norm", self=x, gamma=torch.ones(4, dtype=x.dtype)))
    torch.testing.assert_close(call("npu_fast_gelu", input0=x), call("fast_gelu", x))
    y, _, _ = call("npu_moe_gating_top_k_softmax", x, finished_optional=None, k=2)
    assert y.shape == (2, 2)


@pytest.mark.parametrize(("name", "args", "kwargs", "message"), [
    ("npu_swiglu", (torch.ones(2, 3),), {}, r"x: dimension 1 of shape \(2, 3\)"),
    ("npu_swiglu", (torch.ones(2, 4),), {"axis": 1}, r"unknown keyword axis \(expected self, dim"),
    ("npu_swiglu", (torch.ones(2, 4, dtype=torch.int64),), {}, "expected float16"),
    ("matmul_backward", (torch.ones(2, 2),) * 3 + ([True],), {}, "mask: has 1 members"),
    ("npu_confusion_transpose", (torch.ones(2, 2), (0, 2), (4,), True), {}, "perm: 2"),
    ("npu_rotary_mul", (torch.ones(2, 2),) * 3 + ("full",), {}, "rotary_mode: 'full'"),
    ("npu_fusion_attention", (torch.ones(1, 2, 3, 4),) * 3 + (2, "XYZ"), {}, 'input_layout: "XYZ"'),
    ("npu_fusion_attention", (torch.ones(3, 2, 4),) * 3 + (2, "TND"), {}, "actual_seq_qlen: is mi"),
    ("npu_fusion_attention", (torch.ones(1, 6, 3, 4), *(torch.ones(1, 4, 3, 4),) * 2, 6, "BNSD"),
     {}, "head_num: 6 heads"),
    ("npu_apply_adam", (1, 1, 1, 1, 1, 1, torch.ones(2), False, False), {"out": ()}, "out: has 0"),
])
def test_errors_name_the_argument(name: str, args: tuple[Any, ...], kwargs: dict[str, Any],
                                  message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call(name, *args, **kwargs)


def test_unknown_operators_have_none() -> None:
    assert reference.find("npu_nothing") is None


def test_results_are_freed() -> None:
    x = randn(2, 4).requires_grad_()
    gc.disable()
    try:
        y = call("npu_swiglu", x)
        alive = weakref.ref(y)
        y.sum().backward()
        del y
        assert alive() is None  # without the collector of cycles
    finally:
        gc.enable()


def test_threads_do_not_matter() -> None:
    q, k, v = (randn(1, 4, 130, 16).requires_grad_() for _ in range(3))
    results = []
    for threads in (1, 3):
        reference.set_threads(threads)
        out = call("npu_fusion_attention", q, k, v, 4, "BNSD")[0]
        results.append([out.detach(), *torch.autograd.grad(out.sum(), (q, k, v))])
    reference.set_threads(0)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


# ---- References of users


def test_functions_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                             caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "mine.py").write_text(
        "def twice(x):\n    return 2 * x\ndef twice_backward(grad, x):\n    return 2 * grad\n")
    (tmp_path / "mine.yaml").write_text(
        "operators:\n"
        "  npu_twice: {forward: twice, backward: 'mine.py:twice_backward', description: x}\n"
        "  npu_mish: {forward: 'mine.py:twice'}\n"
        "  npu_gelu: {forward: npu_fast_gelu_of_nobody}\n"
        "  npu_broken: {forward: 'absent.py:f'}\n")
    monkeypatch.setenv("MSPROBE_BENCH_PATH", str(tmp_path / "mine.yaml"))
    monkeypatch.setenv("PLUMBLINE_REFERENCES", str(tmp_path / "absent"))
    x = randn(3).requires_grad_()
    y = call("npu_twice", x)
    y.sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2))
    assert torch.equal(call("twice_backward", x, x), 2 * x)
    assert torch.equal(call("npu_mish", x), 2 * x)
    assert reference.find("npu_broken") is None
    assert reference.find("npu_gelu") is None
    said = caplog.text
    assert "npu_mish takes the place of" in said
    assert "npu_broken is not used: there is no Python file" in said
    assert "npu_gelu is not used: mine.py has no function" in said
    assert f"there is no {tmp_path / 'absent'}" in said


def test_wrong_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                               caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.yaml").write_text("operators: {npu_a: {foward: f}}")
    monkeypatch.setenv("PLUMBLINE_REFERENCES", str(tmp_path))
    assert reference.find("npu_mish") is not None
    assert 'a.yaml: line 1: "foward" is no key' in caplog.text


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample of the C++ tests, built against the C header alone."""
    path = tmp_path_factory.mktemp("library") / "sample.so"
    source = ROOT / "src/precheck/reference/sample_library_for_test.cc"
    subprocess.run(["g++", "-shared", "-fPIC", "-std=c++20", f"-I{ROOT / 'include'}", str(source),
                    "-o", str(path)], check=True)
    return path


def test_functions_of_a_library(library: Path, monkeypatch: pytest.MonkeyPatch,
                                caplog: pytest.LogCaptureFixture) -> None:
    (library.parent / "ops.yaml").write_text(
        "operators:\n  npu_scale: {forward: sample.so, backward: sample.so}\n"
        "  npu_fail: {forward: 'sample.so:npu_fail', backward: 'sample.so:npu_fail'}\n")
    monkeypatch.setenv("PLUMBLINE_REFERENCES", str(library.parent / "ops.yaml"))
    x = randn(3).requires_grad_()
    y = call("npu_scale", x, factor=3.0)
    torch.testing.assert_close(y, 3 * x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 3))
    torch.testing.assert_close(call("npu_scale_backward", x.detach()), 2 * x.detach())
    with pytest.raises(ValueError, match=r"npu_fail: the function of .* failed with 7"):
        call("npu_fail", x)
    with pytest.raises(ValueError, match="x: only float64 is known"):
        call("npu_scale", x.detach().float())
    assert "backward of npu_fail is not used: the library has no backward" in caplog.text


# ---- Outputs before they are compared


def test_rows_behind_the_groups_become_zeros() -> None:
    outputs = (torch.ones(5, 2), torch.ones(5))
    groups = torch.tensor([1, 2])
    rows, flat = reference.post_process("NPU.npu_grouped_matmul", outputs, {"group_list": groups})
    assert rows.sum() == 6
    assert flat.tolist() == [1, 1, 1, 0, 0]
    assert outputs[1].sum() == 5  # of the caller
    kept = reference.post_process("npu_dequant_swiglu_quant", outputs, {"group_index": [2]})
    assert kept[1].tolist() == [1, 1, 0, 0, 0]
    assert reference.post_process("npu_mish", outputs, {"group_list": groups}) is outputs


# ---- Speed and memory

MEMORY = """
import time, torch
from pathlib import Path
from plumbline.precheck_run import reference

def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

torch.set_num_threads(1)
q, k, v, dy = (torch.randn(1, 8, 2048, 64) for _ in range(4))
find = reference.find
warm = [x[:, :, :64] for x in (q, k, v, dy)]
find("npu_fusion_attention")(*warm[:3], 8, "BNSD")
find("npu_fusion_attention_grad")(*warm, 8, "BNSD")
Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
before = memory("VmRSS")
start = time.perf_counter()
out = find("npu_fusion_attention")(q, k, v, 8, "BNSD", scale=0.125)[0]
grads = find("npu_fusion_attention_grad")(q, k, v, dy, 8, "BNSD", scale_value=0.125)
print(time.perf_counter() - start, memory("VmHWM") - before)
print(sum(x.numel() * x.element_size() for x in (q, k, v, dy)))
"""


def test_attention_needs_no_square_buffer() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True,
                          check=True)
    seconds, used, inputs = map(float, done.stdout.split())
    print(f"{seconds:.2f} s, {used / inputs:.2f} x inputs")
    assert 0 < used <= 3 * inputs  # the results alone are 1.4 x
