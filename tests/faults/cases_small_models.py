"""More cases of the models in small_models.py, written after the rules of the engine were fixed.

docs/design/verdict.md says what their first evaluation found.
"""

from __future__ import annotations

import cases_conv
import cases_library
import cases_plain
import torch
from below_calls import afterwards, all_products, in_parts, rounded_to, through, with_inputs
from cases_plain import both, put
from changes import kernel
from fault_cases import Case, Setup
from groups import held_out, held_out_noise


def dropped_bias(s: Setup) -> None:
    s.model.blocks[2].up.bias.data = torch.zeros_like(s.model.blocks[2].up.bias)


CASES: list[Case] = [
    held_out("plain-key-sign", "linear.7", "sign", kernel("addmm:7", afterwards(torch.neg))),
    held_out("plain-value-shifted", "linear.8", "shifted",
             kernel("addmm:8", afterwards(lambda y: y.roll(1, 0)))),
    held_out("plain-dropped-bias", "linear.16", "", dropped_bias),
    held_out("plain_half-offset", "linear.10", "offset",
             both(cases_plain.half_partial_sums,
                  kernel("addmm:10", afterwards(lambda y: y + 0.5)))),
    held_out("gpt2-half-softmax", "softmax.2", "narrowed",
             kernel("_softmax:2", through(torch.float16))),
    held_out("gpt2-scaled-mix", "matmul.5", "scale",
             both(cases_plain.split_products, kernel("bmm:5", afterwards(lambda y: y * 1.1)))),
    held_out("gpt2-backward-twice", "layer_norm.4<", "scale",
             kernel("native_layer_norm_backward:2", afterwards(lambda y: y * 2))),
    held_out("llama-clamped-silu", "silu.2", "saturated",
             kernel("silu:2", afterwards(lambda y: y.clamp(max=0.02)))),
    held_out("llama-last-token-zero", "linear.3", "zeroed-block",
             both(cases_plain.tf32_products,
                  kernel("mm:3", afterwards(lambda y: put(y, slice(47, 48), 0.0))))),
    held_out("conv-relu-threshold", "relu.2", "zeroed-block",
             kernel("relu:2", afterwards(lambda y: torch.where(y > 0.1, y, 0.0)))),
    held_out("conv-rolled-channels", "conv2d.5", "permuted shifted",
             both(cases_conv.all_wide,
                  kernel("convolution:5", afterwards(lambda y: y.roll(1, 1))))),
    held_out_noise("plain-reversed-sums", cases_library.reversed_sums),
    held_out_noise("plain_half-unfused-norm", cases_plain.unfused_norm),
    held_out_noise("gpt2-everything-wide", lambda s: s.changes.update(dict.fromkeys(
        ("mm", "addmm", "bmm", "_softmax", "native_layer_norm", "tanh", "pow"),
        through(torch.float64)))),
    held_out_noise("llama-tf32-and-fused", both(cases_plain.tf32_products,
                                                cases_library.fused_attention)),
    held_out_noise("llama-many-parts", lambda s: s.changes.update(all_products(in_parts(16)))),
    held_out_noise("conv-tf32", lambda s: s.changes.update(
        convolution=with_inputs(rounded_to(10)))),
]
