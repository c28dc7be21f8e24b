"""Other ways to compute the same, for cases of many models."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from fault_cases import Setup
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel


def each(kind: type[nn.Module], forward: Callable[..., torch.Tensor], only: str = ""
         ) -> Callable[[Setup], None]:
    """Another forward(module, values) for modules of a kind that have `only` in their path."""
    def change(s: Setup) -> None:
        for path, module in s.model.named_modules():
            if isinstance(module, kind) and only in path:
                module.forward = functools.partial(forward, module)
    return change


def in_two(m: Any, x: torch.Tensor) -> torch.Tensor:
    """The sum of the products of two halves, as two devices would have them."""
    cut = m.in_features // 2
    result = functional.linear(x[..., :cut], m.weight[:, :cut]) \
        + functional.linear(x[..., cut:], m.weight[:, cut:])
    return result if m.bias is None else result + m.bias


def side_by_side(m: Any, x: torch.Tensor) -> torch.Tensor:
    """Each half of the outputs for itself."""
    biases = (None, None) if m.bias is None else m.bias.chunk(2)
    return torch.cat([functional.linear(x, w, b)
                      for w, b in zip(m.weight.chunk(2), biases, strict=True)], dim=-1)


def by_error_function(_: Any, x: torch.Tensor) -> torch.Tensor:
    """GELU written out."""
    return 0.5 * x * (1.0 + torch.erf(x * 0.7071067811865476))


def by_one_hot(m: Any, x: torch.Tensor) -> torch.Tensor:
    """A row of a table as a product."""
    return functional.one_hot(x, m.num_embeddings).to(m.weight.dtype) @ m.weight


def by_windows(m: Any, x: torch.Tensor) -> torch.Tensor:
    """A convolution as a product of windows."""
    height, width = (
        (x.shape[d + 2] + 2 * m.padding[d] - m.dilation[d] * (m.kernel_size[d] - 1) - 1)
        // m.stride[d] + 1 for d in range(2))
    windows = functional.unfold(x, m.kernel_size, m.dilation, m.padding, m.stride)
    result = torch.matmul(m.weight.flatten(1), windows).unflatten(2, (height, width))
    return result if m.bias is None else result + m.bias[:, None, None]


def by_moments(m: Any, x: torch.Tensor) -> torch.Tensor:
    """Batch norm of a training written out."""
    axes = [0, *range(2, x.dim())]
    shape = (1, -1, *[1] * (x.dim() - 2))
    mean, spread = x.mean(axes), x.var(axes, unbiased=False)
    factor = m.weight * torch.rsqrt(spread + m.eps)
    return x * factor.view(shape) + (m.bias - mean * factor).view(shape)


def root_norm(m: Any, x: torch.Tensor) -> torch.Tensor:
    """The library's single call."""
    return functional.rms_norm(x, m.weight.shape, m.weight, m.variance_epsilon)


def math_attention(s: Setup) -> None:
    s.stack.enter_context(sdpa_kernel(SDPBackend.MATH))


def own_products_off(s: Setup) -> None:
    s.stack.enter_context(torch.backends.mkldnn.flags(enabled=False))


def deterministic(s: Setup) -> None:
    torch.use_deterministic_algorithms(True)
    s.stack.callback(torch.use_deterministic_algorithms, False)


def under_autocast(s: Setup) -> None:
    right = s.subject.loss

    def loss() -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return right()
    s.subject.loss = loss


def channels_last(s: Setup) -> None:
    s.model.to(memory_format=torch.channels_last)
    s.model.pictures = s.model.pictures.to(memory_format=torch.channels_last)


def joined(parts: list[Any]) -> None:
    """Several projections of one input as one product: the first makes it, the others take."""
    kept: list[torch.Tensor] = []

    def first(x: torch.Tensor) -> torch.Tensor:
        biases = [p.bias for p in parts]
        both = functional.linear(x, torch.cat([p.weight for p in parts]),
                                 None if biases[0] is None else torch.cat(biases))
        kept[:] = both.split([p.out_features for p in parts], dim=-1)
        return kept[0]

    parts[0].forward = first
    for number, part in enumerate(parts[1:], 1):
        part.forward = lambda x, number=number: kept[number]


def by_heads(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Causal attention in steps."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.shape[-1] ** 0.5
    count = scores.shape[-1]
    hidden = torch.ones(count, count, dtype=torch.bool).triu(1)
    return torch.matmul(torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1), value)
