"""PyTorch's own samples of its operators, run on the CPU and on the test device."""

from __future__ import annotations

import itertools
import sys
import types
import unittest
import warnings
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map


def operators() -> list[Any]:
    """PyTorch's table of operators with samples; None of its test programs is run."""
    if "expecttest" not in sys.modules:  # its test library imports it, and the table needs it not
        stand_in = types.ModuleType("expecttest")
        stand_in.__dict__.update(TestCase=unittest.TestCase, __spec__=None)
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db
    return [op for op in op_db if not op.name.startswith("jiterator")]  # GPUs only


def _moved(value: Any, where: str) -> Any:
    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().to(where).requires_grad_(leaf.requires_grad)
        if isinstance(leaf, torch.device):
            return torch.device(where)
        return where if leaf == "cpu" else leaf
    return tree_map(move, value)


def _results(op: Any, sample: Any, where: str) -> list[Any]:
    """What the operator returns for a sample, then the gradients of its floating inputs."""
    torch.manual_seed(7)
    arguments = _moved((sample.input, sample.args, sample.kwargs), where)
    returned = list(tree_leaves(op(arguments[0], *arguments[1], **arguments[2])))
    outputs = [leaf for leaf in returned if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    inputs = [leaf for leaf in tree_leaves(arguments)
              if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if outputs and inputs:
        returned += torch.autograd.grad([leaf.sum() for leaf in outputs], inputs,
                                        allow_unused=True)
    return returned


def _is_same(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor):
        return bool(one == other or (one != one and other != other))
    left, right = (tensor.detach().cpu().resolve_conj().resolve_neg().clone(
        memory_format=torch.contiguous_format).flatten() for tensor in (one, other))
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return torch.equal(left.view(torch.uint8), right.view(torch.uint8))


def outcome(op: Any, dtype: torch.dtype, limit: int, where: str) -> str:
    """"same", "differs", the first line of an error, or "none" if the CPU runs no sample."""
    if dtype not in op.dtypes:
        return "none"
    wants_gradient = bool(op.supports_autograd and dtype.is_floating_point)
    seen = "none"
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, wants_gradient), limit):
        try:
            expected = _results(op, sample, "cpu")
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            continue  # a sample that is not for this dtype or not differentiable
        try:
            got = _results(op, sample, where)
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            return str(error).splitlines()[0]
        if len(got) != len(expected) or not all(map(_is_same, expected, got)):
            return "differs"
        seen = "same"
    return seen


def outcomes(dtype: torch.dtype, limit: int, where: str) -> dict[str, str]:
    """The outcome of every operator, by name and variant, with `limit` samples of each."""
    warnings.simplefilter("ignore")
    found = {}
    for op in operators():
        variant = f".{op.variant_test_name}" if op.variant_test_name else ""
        found[op.name + variant] = outcome(op, dtype, limit, where)
    return found
