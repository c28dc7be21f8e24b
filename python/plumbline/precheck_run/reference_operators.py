"""Reference functions of fused operators for PyTorch: names and defaults of the vendor's calls.

What they compute is native (`_reference`), in double, with explicit gradients that autograd uses.
Only what merely moves elements is made of PyTorch's own operators. Tensors are on the host.

Size caps: functions have the parameters of the operators that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils.dlpack

from plumbline import _reference as native

Tensor = torch.Tensor
# Gradients of the tensors of a call, from those of its results.
Backward = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], Sequence[Tensor | None]]
# "No limit" in the vendor's calls.
ALL_TOKENS = 2147483647
# The kernel computes scale (Q K^T + real_shift); MindSpore's page prints scale Q K^T + real_shift.
ADDS_REAL_SHIFT_AFTER_SCALE = False


@dataclass
class Recording:
    """What is known of the call that runs, apart from its arguments."""

    dtype: str | None = None  # that its tensors had on the device: "float16"


recording = Recording()


def plain(tensor: Tensor) -> Tensor:
    """The tensor as the native functions take it: without gradient, contiguous, on the host."""
    if tensor.device.type != "cpu":
        raise ValueError(f"a tensor lies on {tensor.device} (expected the cpu)")
    return tensor.detach().resolve_neg().contiguous()


def tensor_of(array: Any) -> Tensor:
    """A result of a native function."""
    return torch.utils.dlpack.from_dlpack(array)


def tensors_of(arrays: Any) -> tuple[Tensor, ...]:
    return tuple(tensor_of(array) for array in arrays)


def _optional(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else plain(tensor)


def _mask(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else plain(tensor.to(torch.bool))


class _Call(torch.autograd.Function):
    """Connects a function and its gradient with autograd."""

    @staticmethod
    def forward(ctx: Any, run: Callable[[], Any], backward: Backward | None, differentiable: int,
                *tensors: Tensor | None) -> Any:
        outputs = run()
        # Detached: an output that its own node holds would never be freed.
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        ctx.results = tuple(None if one is None else one.detach() for one in results)
        ctx.run_backward = backward
        ctx.inputs = len(tensors)
        ctx.mark_non_differentiable(*(
            one for index, one in enumerate(results)
            if one is not None and (index >= differentiable or not one.is_floating_point())
        ))
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        if ctx.run_backward is None:
            raise RuntimeError("this reference function has no gradient")
        found = ctx.run_backward(tuple(map(_optional, grads)), ctx.results)
        return (None, None, None, *found, *[None] * (ctx.inputs - len(found)))


def differentiable(run: Callable[[], Any], backward: Backward | None,
                   tensors: Sequence[Tensor | None], results: int = 1) -> Any:
    """run(), whose first `results` results have gradients by the tensors.

    `backward` gets the gradients of all results and the results, and returns the gradients of the
    first tensors.
    """
    return _Call.apply(run, backward, results, *tensors)  # type: ignore[no-untyped-call]


# ---- Activations


def npu_fast_gelu(self: Tensor) -> Any:
    x = plain(self)
    return differentiable(lambda: tensor_of(native.fast_gelu(x)),
                          lambda g, _: [tensor_of(native.fast_gelu_grad(g[0], x))], [self])


def npu_fast_gelu_backward(grad: Tensor, self: Tensor) -> Tensor:
    return tensor_of(native.fast_gelu_grad(plain(grad), plain(self)))


def npu_mish(self: Tensor) -> Any:
    x = plain(self)
    return differentiable(lambda: tensor_of(native.mish(x)),
                          lambda g, _: [tensor_of(native.mish_grad(g[0], x))], [self])


def npu_swiglu(self: Tensor, dim: int = -1) -> Any:
    x, recorded = plain(self), recording.dtype
    return differentiable(lambda: tensor_of(native.swiglu(x, dim, recorded)),
                          lambda g, _: [tensor_of(native.swiglu_grad(g[0], x, dim, recorded))],
                          [self])


def npu_swiglu_backward(grad: Tensor, self: Tensor, dim: int = -1) -> Tensor:
    return tensor_of(native.swiglu_grad(plain(grad), plain(self), dim, recording.dtype))


# ---- Optimisers


def _state(out: Sequence[Tensor], grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if len(out) != 3:
        raise ValueError(f"out: has {len(out)} members (expected var, m and v)")
    var, m, v = map(plain, out)
    return var, m, v, plain(grad)


def npu_apply_adam(beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
                   epsilon: Any, grad: Tensor, use_locking: bool, use_nesterov: bool,
                   out: Sequence[Tensor]) -> tuple[Tensor, ...]:
    numbers = tuple(map(float, (beta1_power, beta2_power, lr, beta1, beta2, epsilon)))
    return tensors_of(native.apply_adam(_state(out, grad), numbers, bool(use_nesterov)))


def npu_apply_adam_w(beta1_power: Any, beta2_power: Any, lr: Any, weight_decay: Any, beta1: Any,
                     beta2: Any, epsilon: Any, grad: Tensor, max_grad_norm: Tensor | None,
                     amsgrad: bool, maximize: bool, out: Sequence[Tensor]) -> tuple[Tensor, ...]:
    numbers = tuple(map(float, (beta1_power, beta2_power, lr, beta1, beta2, epsilon)))
    options = (float(weight_decay), bool(amsgrad), bool(maximize))
    limit = _optional(max_grad_norm) if amsgrad else None
    return tensors_of(native.apply_adam_w(_state(out, grad), numbers, options, limit))


# ---- What moves elements


def _checked_perm(perm: Sequence[int], rank: int) -> list[int]:
    """The permutation with indices from 0."""
    wanted = [index + rank if index < 0 else index for index in perm]
    for given, index in zip(perm, wanted, strict=True):
        if not 0 <= index < rank:
            raise ValueError(f"perm: {given} is no dimension of a tensor with {rank} of them")
    if sorted(wanted) != list(range(rank)):
        raise ValueError(f"perm: {list(perm)} is no permutation of {rank} dimensions")
    return wanted


def npu_confusion_transpose(self: Tensor, perm: Sequence[int], shape: Sequence[int],
                            transpose_first: bool) -> Tensor:
    if transpose_first:
        return self.permute(_checked_perm(perm, self.dim())).reshape(tuple(shape))
    return self.reshape(tuple(shape)).permute(_checked_perm(perm, len(shape)))


def npu_confusion_transpose_backward(grad: Tensor, perm: Sequence[int], shape: Sequence[int],
                                     transpose_first: bool) -> Tensor:
    """As the vendor calls it: `shape` is what its autograd has kept of the forward."""
    order = _checked_perm(perm, len(perm))
    inverse = [order.index(index) for index in range(len(order))]
    if transpose_first:
        return grad.permute(_checked_perm(inverse, grad.dim())).reshape(tuple(shape))
    return grad.reshape([shape[index] for index in order]).permute(inverse)


def npu_sort_v2(self: Tensor, dim: int = -1, descending: bool = False,
                out: Tensor | None = None) -> Tensor:
    return torch.sort(self, dim=dim, descending=descending, stable=True).values


# ---- Normalisation


def npu_rms_norm(self: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> Any:
    x, weight, recorded = plain(self), plain(gamma), recording.dtype

    def backward(grads: tuple[Tensor, ...], results: tuple[Tensor, ...]) -> Sequence[Tensor]:
        return tensors_of(native.rms_norm_grad(grads[0], x, weight, results[1]))

    return differentiable(lambda: tensors_of(native.rms_norm(x, weight, epsilon, recorded)),
                          backward, [self, gamma])


def npu_rms_norm_backward(grad: Tensor, self: Tensor, gamma: Tensor,
                          rstd: Tensor) -> tuple[Tensor, ...]:
    return tensors_of(native.rms_norm_grad(plain(grad), plain(self), plain(gamma), plain(rstd)))


def npu_layer_norm_eval(input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
                        bias: Tensor | None = None, eps: float = 1e-5) -> Any:
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    x, w, b = plain(input), _optional(weight), _optional(bias)

    def backward(grads: tuple[Tensor, ...], _: Any) -> Sequence[Tensor | None]:
        dx, dw, db = tensors_of(native.layer_norm_grad(grads[0], x, shape, w, eps))
        return (dx, None if weight is None else dw,
                None if bias is None else db.to(bias.dtype))

    return differentiable(lambda: tensor_of(native.layer_norm(x, shape, w, b, eps)), backward,
                          [input, weight, bias])


def npu_group_norm_silu(input: Tensor, weight: Tensor | None, bias: Tensor | None, group: int,
                        eps: float = 1e-5) -> Any:
    x, w, b = plain(input), _optional(weight), _optional(bias)

    def backward(grads: tuple[Tensor, ...], _: Any) -> Sequence[Tensor | None]:
        dx, dw, db = tensors_of(native.group_norm_silu_grad(grads[0], x, w, b, group, eps))
        return dx, None if weight is None else dw, None if bias is None else db

    return differentiable(lambda: tensors_of(native.group_norm_silu(x, w, b, group, eps)),
                          backward, [input, weight, bias])


# ---- Softmax


def npu_scaled_masked_softmax(x: Tensor, mask: Tensor | None, scale: float = 1.0,
                              fixed_triu_mask: bool = False) -> Any:
    scores, hidden = plain(x), _mask(mask)
    recorded, is_triangle = recording.dtype, bool(fixed_triu_mask)

    def backward(grads: tuple[Tensor, ...], results: tuple[Tensor, ...]) -> Sequence[Tensor]:
        return [tensor_of(native.scaled_masked_softmax_grad(
            grads[0], results[0], hidden, scale, is_triangle))]

    return differentiable(lambda: tensor_of(native.scaled_masked_softmax(
        scores, hidden, scale, is_triangle, recorded)), backward, [x])


def npu_scaled_masked_softmax_backward(y_grad: Tensor, y: Tensor, mask: Tensor | None,
                                       scale: float = 1.0,
                                       fixed_triu_mask: bool = False) -> Tensor:
    return tensor_of(native.scaled_masked_softmax_grad(
        plain(y_grad), plain(y), _mask(mask), scale, bool(fixed_triu_mask)))


def npu_moe_gating_top_k_softmax(x: Tensor, finished: Tensor | None = None, k: int = 1) -> Any:
    scores, ended, recorded = plain(x), _mask(finished), recording.dtype
    return differentiable(
        lambda: tensors_of(native.moe_gating_top_k_softmax(scores, ended, k, recorded)),
        lambda g, _: [tensor_of(native.moe_gating_top_k_softmax_grad(g[0], scores, k, recorded))],
        [x])


# ---- Products


_MODES = {"half": False, 0: False, "interleave": True, 1: True}


def npu_rotary_mul(input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: Any = "half") -> Any:
    if rotary_mode not in _MODES:
        raise ValueError(f"rotary_mode: {rotary_mode!r} is no mode (expected half or interleave)")
    mode = _MODES[rotary_mode]
    x, first, second = plain(input), plain(r1), plain(r2)
    return differentiable(
        lambda: tensor_of(native.rotary_mul(x, first, second, mode)),
        lambda g, _: tensors_of(native.rotary_mul_grad(g[0], x, first, second, mode)),
        [input, r1, r2])


def npu_rotary_mul_backward(grad: Tensor, self: Tensor, r1: Tensor, r2: Tensor,
                            rotary_mode: Any = "half") -> tuple[Tensor, ...]:
    if rotary_mode not in _MODES:
        raise ValueError(f"rotary_mode: {rotary_mode!r} is no mode (expected half or interleave)")
    return tensors_of(native.rotary_mul_grad(plain(grad), plain(self), plain(r1), plain(r2),
                                             _MODES[rotary_mode]))


def npu_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    x, w, b = plain(input), plain(weight), _optional(bias)

    def backward(grads: tuple[Tensor, ...], _: Any) -> Sequence[Tensor | None]:
        dx, dw, db = tensors_of(native.linear_grad(grads[0], x, w))
        return dx, dw, None if bias is None else db.to(bias.dtype)

    return differentiable(lambda: tensor_of(native.linear(x, w, b)), backward,
                          [input, weight, bias])


def npu_linear_backward(grad: Tensor, input: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    found: Any = native.linear_grad(plain(grad), plain(input), plain(weight))
    return tensors_of(found[:2])  # none of the bias


def matmul_backward(grad: Tensor, self: Tensor, other: Tensor,
                    mask: Sequence[bool]) -> tuple[Tensor | None, ...]:
    if len(mask) < 2:
        raise ValueError(f"mask: has {len(mask)} members (expected 2)")
    found: Any = native.matmul_grad(plain(grad), plain(self), plain(other),
                               (bool(mask[0]), bool(mask[1])))
    return tuple(None if array is None else tensor_of(array) for array in found)


# ---- Attention


def _numbers(values: Any) -> list[int]:
    if values is None:
        return []
    return [int(value) for value in values]


def _attention(query: Tensor, key: Tensor, value: Tensor, head_num: int, layout: str,
               **options: Any) -> Any:
    """The native call; options are its own, None where not given."""
    call = native.Attention(plain(query), plain(key), plain(value), int(head_num), str(layout))
    for name in ("pse", "atten_mask"):
        tensor = options.pop(name)
        if tensor is not None:
            getattr(call, name)(_mask(tensor) if name == "atten_mask" else plain(tensor))
    for name in ("prefix", "actual_seq_qlen", "actual_seq_kvlen"):
        getattr(call, name)(_numbers(options.pop(name)))
    for name, value_of in options.items():
        getattr(call, name)(value_of)
    return call


def _attend(call: Any, tensors: Sequence[Tensor]) -> Any:
    return differentiable(lambda: tensors_of(call.forward()),
                          lambda g, _: tensors_of(call.backward(g[0])), tensors)


def npu_fusion_attention(  # the vendor's parameters, in its order
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str,
    pse: Tensor | None = None, padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None, scale: float = 1.0, keep_prob: float = 1.0,
    pre_tockens: int = ALL_TOKENS, next_tockens: int = ALL_TOKENS, inner_precise: int = 0,
    prefix: Any = None, actual_seq_qlen: Any = None, actual_seq_kvlen: Any = None,
    sparse_mode: int = 0, gen_mask_parallel: bool = True, sync: bool = False,
) -> Any:
    """Without dropout, whatever keep_prob says: no two devices drop the same elements."""
    call = _attention(
        query, key, value, head_num, input_layout, pse=pse, atten_mask=atten_mask, scale=scale,
        pre_tokens=pre_tockens, next_tokens=next_tockens, prefix=prefix,
        actual_seq_qlen=actual_seq_qlen, actual_seq_kvlen=actual_seq_kvlen,
        sparse_mode=sparse_mode)
    return _attend(call, [query, key, value])


def npu_fusion_attention_grad(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, head_num: int, input_layout: str, *,
    pse: Tensor | None = None, padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None, softmax_max: Tensor | None = None,
    softmax_sum: Tensor | None = None, softmax_in: Tensor | None = None,
    attention_in: Tensor | None = None, scale_value: float = 1.0, keep_prob: float = 1.0,
    pre_tockens: int = ALL_TOKENS, next_tockens: int = ALL_TOKENS, inner_precise: int = 0,
    seed: int = 0, offset: int = 0, numels: int = 0, prefix: Any = None,
    actual_seq_qlen: Any = None, actual_seq_kvlen: Any = None, sparse_mode: int = 0,
    gen_mask_parallel: bool = True, sync: bool = False,
) -> tuple[Tensor, ...]:
    """Probabilities are computed anew from query and key, not from softmax_max and softmax_sum."""
    call = _attention(
        query, key, value, head_num, input_layout, pse=pse, atten_mask=atten_mask,
        scale=scale_value, pre_tokens=pre_tockens, next_tokens=next_tockens, prefix=prefix,
        actual_seq_qlen=actual_seq_qlen, actual_seq_kvlen=actual_seq_kvlen,
        sparse_mode=sparse_mode)
    return tensors_of(call.backward(plain(dy)))


def gpu_fusion_attention(*args: Any, **kwargs: Any) -> tuple[Tensor, None, None]:
    """What stands for npu_fusion_attention where there is none: its attention alone."""
    return npu_fusion_attention(*args, **kwargs)[0], None, None


def flash_attention_score(  # mindspore.ops.flash_attention_score
    query: Tensor, key: Tensor, value: Tensor, head_num: int, real_shift: Tensor | None = None,
    drop_mask: Tensor | None = None, padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None, prefix: Any = None, actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None, keep_prob: float = 1.0, scalar_value: float = 1.0,
    pre_tokens: int = ALL_TOKENS, next_tokens: int = ALL_TOKENS, inner_precise: int = 0,
    input_layout: str = "BSH", sparse_mode: int = 0,
) -> Any:
    call = _attention(
        query, key, value, head_num, input_layout, pse=real_shift, atten_mask=attn_mask,
        scale=scalar_value, pre_tokens=pre_tokens, next_tokens=next_tokens, prefix=prefix,
        actual_seq_qlen=actual_seq_qlen, actual_seq_kvlen=actual_seq_kvlen,
        sparse_mode=sparse_mode, adds_pse_after_scale=ADDS_REAL_SHIFT_AFTER_SCALE)
    return _attend(call, [query, key, value])
