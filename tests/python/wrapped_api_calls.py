"""One call of every wrapped API, with arguments made from torch's own operator samples.

Torch's test suite describes most operators together with sample inputs (OpInfo); the others stand
in BY_HAND. `find_calls()` tries each outside of any recording and keeps what worked.
"""

from __future__ import annotations

import copy
import itertools
import random
import sys
import types
import unittest
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

SAMPLES = 24  # tried of each operator
PREFERRED = (torch.float32, torch.int64, torch.bool, torch.complex64)

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass
class Call:
    """An API and arguments that it accepts."""

    name: str  # "Tensor.add_"
    owner: Any
    attribute: str
    arguments: Arguments


def vectors(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Values 1, 2, 3, ... of a shape."""
    size = torch.Size(shape)
    return torch.arange(1, size.numel() + 1).reshape(size).to(dtype)


def with_arguments(*args: Any, **kwargs: Any) -> Callable[[], Arguments]:
    """A maker that returns copies of these."""
    return lambda: (copy.deepcopy(args), copy.deepcopy(kwargs))


def sparse() -> torch.Tensor:
    """A sparse 2 x 2 matrix."""
    return torch.eye(2).to_sparse()


def recurrent(gates: int) -> list[torch.Tensor]:
    """Weights of one layer of 2 hidden and 3 input features."""
    return [vectors(gates * 2, 3), vectors(gates * 2, 2), vectors(gates * 2), vectors(gates * 2)]


def _pooled(dimensions: int) -> Callable[[], Arguments]:
    return with_arguments(vectors(1, 1, *[4] * dimensions), 2)


_images = vectors(1, 2, 4, 4)
_layer = [vectors(2, 1, 2), vectors(1, 1, 2)]
_theta = vectors(1, 2, 3)
_channel = [vectors(2), vectors(2)]
_seq = vectors(4, 2, 3)

BY_HAND: dict[str, Callable[[], Arguments]] = {
    **{f"Functional.adaptive_max_pool{d}d_with_indices": _pooled(d) for d in (1, 2, 3)},
    **{f"Functional.max_pool{d}d_with_indices": _pooled(d) for d in (1, 2, 3)},
    **{f"Functional.fractional_max_pool{d}d_with_indices":
       with_arguments(vectors(1, 1, *[6] * d), 2, output_size=[3] * d) for d in (2, 3)},
    **{f"Functional.lp_pool{d}d": with_arguments(vectors(1, 1, *[4] * d), 2.0, 2)
       for d in (1, 2, 3)},
    "Functional.affine_grid": with_arguments(_theta, [1, 1, 2, 2], align_corners=False),
    "Functional.conv_tbc": with_arguments(_seq, vectors(2, 3, 2), vectors(2)),
    "Functional.dropout1d": with_arguments(vectors(2, 3, 4)),
    "Functional.fold": with_arguments(vectors(1, 4, 1), (2, 2), (2, 2)),
    "Functional.gumbel_softmax": with_arguments(vectors(2, 3)),
    "Functional.upsample": with_arguments(_images, scale_factor=2),
    "Functional.threshold_": with_arguments(vectors(3), 1.0, 0.0),
    "Tensor.__setitem__": with_arguments(vectors(3), 1, 2.0),
    "Tensor.fill_diagonal_": with_arguments(vectors(3, 3), 0.0),
    "Tensor.type_as": with_arguments(vectors(3), vectors(1, dtype=torch.float64)),
    "Tensor.map_": lambda: ((vectors(3), vectors(3), lambda a, b: a + b), {}),
    "Tensor.map2_": lambda: ((vectors(3), vectors(3), vectors(3), lambda a, b, c: a + b + c), {}),
    "Tensor.sspaddmm": with_arguments(sparse(), sparse(), vectors(2, 2)),
    "Tensor.unsafe_split_with_sizes": with_arguments(vectors(4), [1, 3]),
    "Tensor.q_zero_point": lambda: ((torch.quantize_per_tensor(
        vectors(3), 0.1, 0, torch.qint8),), {}),
    "Torch._adaptive_avg_pool2d": with_arguments(_images, (2, 2)),
    "Torch._batch_norm_impl_index": with_arguments(
        _images, *_channel, vectors(2), vectors(2), True, 0.1, 1e-5, False),
    "Torch._convolution": with_arguments(
        _images, vectors(1, 2, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False,
        False, False),
    "Torch._foreach_norm": with_arguments([vectors(3), vectors(2)]),
    "Torch.affine_grid_generator": with_arguments(_theta, [1, 1, 2, 2], False),
    "Torch.alpha_dropout_": with_arguments(vectors(3), 0.5, True),
    "Torch.batch_norm_update_stats": with_arguments(_images, vectors(2), vectors(2), 0.1),
    "Torch.binomial": with_arguments(vectors(3), torch.full((3,), 0.5)),
    "Torch.chain_matmul": with_arguments(vectors(2, 3), vectors(3, 2)),
    "Torch.choose_qparams_optimized": with_arguments(vectors(8), 8, 10, 0.16, 8),
    "Torch.conv_tbc": with_arguments(_seq, vectors(2, 3, 2), vectors(2)),
    "Torch.convolution": with_arguments(
        _images, vectors(1, 2, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    "Torch.dropout_": with_arguments(vectors(3), 0.5, True),
    "Torch.dsmm": with_arguments(vectors(2, 2), vectors(2, 2)),
    "Torch.embedding_renorm_": with_arguments(vectors(3, 2), torch.tensor([0, 1]), 1.0, 2.0),
    "Torch.feature_alpha_dropout_": with_arguments(vectors(2, 3), 0.5, True),
    "Torch.feature_dropout": with_arguments(vectors(2, 3, 2), 0.5, True),
    "Torch.feature_dropout_": with_arguments(vectors(2, 3, 2), 0.5, True),
    "Torch.frobenius_norm": with_arguments(vectors(2, 2), [0, 1]),
    "Torch.grid_sampler": with_arguments(_images, torch.zeros(1, 2, 2, 2), 0, 0, False),
    "Torch.gru": lambda: ((_seq, vectors(1, 2, 2), recurrent(3), True, 1, 0.0, False, False,
                           False), {}),
    "Torch.gru_cell": lambda: ((vectors(2, 3), vectors(2, 2), *recurrent(3)), {}),
    "Torch.lstm": lambda: ((_seq, [vectors(1, 2, 2)] * 2, recurrent(4), True, 1, 0.0, False,
                            False, False), {}),
    "Torch.lstm_cell": lambda: ((vectors(2, 3), [vectors(2, 2)] * 2, *recurrent(4)), {}),
    "VF.lstm": lambda: ((_seq, [vectors(1, 2, 2)] * 2, recurrent(4), True, 1, 0.0, False,
                         False, False), {}),
    "Torch.hsmm": with_arguments(sparse(), vectors(2, 2)),
    "Torch.hspmm": with_arguments(sparse(), vectors(2, 2)),
    "Torch.max_pool1d_with_indices": with_arguments(vectors(1, 1, 4), 2),
    "Torch.native_norm": with_arguments(sparse()),
    "Torch.norm_except_dim": with_arguments(vectors(2, 2), 2, 0),
    "Torch.nuclear_norm": with_arguments(vectors(2, 2)),
    "Torch.poisson": with_arguments(vectors(3)),
    "Torch.range": with_arguments(1, 3),
    "Torch.sparse_coo_tensor": with_arguments(torch.tensor([[0, 1]]), vectors(2), (2,)),
    "Torch.spmm": with_arguments(sparse(), vectors(2, 2)),
    "Torch.sspaddmm": with_arguments(sparse(), sparse(), vectors(2, 2)),
    "Torch.threshold_": with_arguments(vectors(3), 1.0, 0.0),
    "Torch.unsafe_split_with_sizes": with_arguments(vectors(4), [1, 3]),
    **{f"Torch.{name}_window": with_arguments(5)
       for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")},
    **{f"{prefix}.{name}_": with_arguments(vectors(3))
       for prefix in ("Functional", "Torch", "Tensor")
       for name in ("celu", "hardtanh", "leaky_relu", "relu", "rrelu", "selu")},
    **{f"Tensor.__{kind}{name}__": with_arguments(vectors(3, dtype=torch.int64), 1)
       for kind in ("", "i")
       for name in ("and", "or", "xor", "lshift", "rshift", "mod", "floordiv")},
    "Functional.embedding": with_arguments(torch.tensor([0, 2]), vectors(3, 2)),
    "Tensor.__nonzero__": with_arguments(torch.tensor(True)),
    "Tensor.float_power_": with_arguments(vectors(3, dtype=torch.float64), 2.0),
    "Tensor.smm": with_arguments(sparse(), vectors(2, 2)),
    "Torch._add_relu": with_arguments(vectors(3), vectors(3)),
    "Torch._add_relu_": with_arguments(vectors(3), vectors(3)),
    "Torch.adaptive_max_pool1d": with_arguments(vectors(1, 1, 4), 2),
    "Torch.alpha_dropout": with_arguments(vectors(3), 0.5, True),
    "Torch.cosine_embedding_loss": with_arguments(vectors(2, 3), vectors(2, 3), torch.ones(2)),
    "Torch.ctc_loss": with_arguments(
        vectors(5, 1, 3).log_softmax(-1), torch.tensor([[1, 2]]), torch.tensor([5]),
        torch.tensor([2])),
    "Torch.dropout": with_arguments(vectors(3), 0.5, True),
    "Torch.einsum": with_arguments("ij,jk->ik", vectors(2, 3), vectors(3, 2)),
    "Torch.embedding_bag": with_arguments(
        vectors(3, 2), torch.tensor([0, 2]), torch.tensor([0, 1])),
    "Torch.feature_alpha_dropout": with_arguments(vectors(2, 3), 0.5, True),
    "Torch.instance_norm": with_arguments(
        _images, *_channel, None, None, True, 0.1, 1e-5, False),
    "Torch.kl_div": with_arguments(vectors(3), vectors(3)),
    "Torch.margin_ranking_loss": with_arguments(vectors(3), vectors(3), torch.ones(3)),
    **{f"Torch.max_pool{d}d": _pooled(d) for d in (1, 2, 3)},
    "Torch.poisson_nll_loss": with_arguments(vectors(3), vectors(3), True, False, 1e-8, 1),
    "Torch.polygamma": with_arguments(1, vectors(3)),
    "Torch.saddmm": with_arguments(sparse(), sparse(), vectors(2, 2)),
    "Torch.smm": with_arguments(sparse(), vectors(2, 2)),
    "Torch.where": with_arguments(torch.tensor([True, False]), vectors(2), vectors(2)),
    "Tensor.__truediv__": with_arguments(vectors(3), 2.0),
}


def operators() -> dict[str, list[Any]]:
    """Torch's operator descriptions by name and alias."""
    # Its test suite asks for a package that only its own assertions use.
    sys.modules.setdefault("expecttest", types.SimpleNamespace(  # type: ignore[arg-type]
        TestCase=unittest.TestCase))
    from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, list[Any]] = {}
    for operator in op_db:
        for name in [operator.name, *(alias.name for alias in operator.aliases or [])]:
            found.setdefault(name, []).append(operator)
    return found


def names_of_operator(prefix: str, name: str) -> list[str]:
    """Under which names an API may be described, the likeliest first."""
    base = name.rstrip("_")
    bare = name.strip("_")
    names = [name, base, bare, bare[1:], f"special.{base}", f"linalg.{base}",
             base.replace("fft_", "fft.").replace("linalg_", "linalg."), f"masked.{base}"]
    functional = [f"nn.functional.{base}", f"nn.functional.{base.removesuffix('_with_indices')}"]
    return functional + names if prefix == "Functional" else names + functional


def samples(operator: Any) -> Iterator[Arguments]:
    """Arguments of the first sample inputs."""
    supported = operator.supported_dtypes("cpu")
    dtype = next((one for one in PREFERRED if one in supported), None)
    if dtype is None:
        return
    for sample in itertools.islice(
            operator.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES):
        yield (sample.input, *sample.args), dict(sample.kwargs)


def candidates(described: dict[str, list[Any]], prefix: str, name: str) -> Iterator[Arguments]:
    """Arguments worth trying."""
    maker = BY_HAND.get(f"{prefix}.{name}")
    if maker is not None:
        yield maker()
    for known in names_of_operator(prefix, name):
        for operator in described.get(known, []):
            yield from samples(operator)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in a value of tuples, lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def try_call(owner: Any, attribute: str, arguments: Arguments) -> int:
    """Calls with copies of the arguments.

    0: it raised; 1: it worked; 2: it worked and no tensor of the result is empty.
    """
    args, kwargs = copy.deepcopy(arguments)
    try:
        result = getattr(owner, attribute)(*args, **kwargs)
        return 2 if all(tensor.numel() > 0 for tensor in tensors_in(result)) else 1
    except Exception:
        return 0


def find_arguments(owner: Any, attribute: str, tried: Iterator[Arguments]) -> Arguments | None:
    """The first arguments with a result that is not empty, else the first that work."""
    second_best = None
    for arguments in tried:
        if owner is torch.Tensor and not isinstance(arguments[0][0], torch.Tensor):
            continue
        outcome = try_call(owner, attribute, arguments)
        if outcome == 2:
            return arguments
        if outcome == 1 and second_best is None:
            second_best = arguments
    return second_best


def find_calls(apis: Iterator[tuple[str, str, Any, str]]) -> tuple[list[Call], list[str]]:
    """The calls, and the names of the APIs for which no arguments worked."""
    described = operators()
    calls, left = [], []
    for prefix, name, owner, attribute in apis:
        random.seed(0)
        torch.manual_seed(0)
        arguments = find_arguments(owner, attribute, candidates(described, prefix, name))
        if arguments is None:
            left.append(f"{prefix}.{name}")
        else:
            calls.append(Call(f"{prefix}.{name}", owner, attribute, arguments))
    return calls, left
