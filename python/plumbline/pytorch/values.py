"""What a value or a tensor is that the native recorder cannot read by itself.

Nothing here may run the training's own code more than it must, and a `describe` that raises only
costs the value: the recorder writes its type and counts a loss.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch
from torch.utils import _python_dispatch as dispatch  # 1.13 lacks _disable_current_modes

from plumbline import values
from plumbline.pytorch.distributed import describe_distributed

# A sparse tensor is made dense for a file or a digest up to this size.
_DENSE_LIMIT_BYTES = 1 << 30
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
# 4-bit floats, two to a byte: sign, two bits of exponent, one of fraction.
_FLOAT4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
_INTEGERS = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
)


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A plain CPU tensor with the values of `tensor`; lazy conjugation and negation carried out."""
    with torch._C._DisableTorchDispatch(), torch._C._DisableFuncTorch(), torch.no_grad():
        return tensor.detach().cpu().resolve_conj().resolve_neg()


def part_of(tensor: torch.Tensor, slices: tuple[slice, ...]) -> torch.Tensor:
    """That part of it, where it is."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), \
            torch._C._DisableFuncTorch(), torch.no_grad():
        return tensor.detach()[slices]


def read_together(tensors: list[torch.Tensor]) -> list[Any]:
    """Their values as Python has them; waits once for each device and type."""
    groups: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for index, tensor in enumerate(tensors):
        groups.setdefault((tensor.device, tensor.dtype), []).append(index)
    answers: list[Any] = [None] * len(tensors)
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), \
            torch._C._DisableFuncTorch(), torch.no_grad():
        for indices in groups.values():
            together = torch.stack([tensors[index] for index in indices]).tolist()
            for index, answer in zip(indices, together, strict=True):
                answers[index] = answer
    return answers


def describe_tensor(tensor: torch.Tensor, with_bytes: bool) -> values.TensorAnswer:
    """A tensor whose memory does not simply hold its values.

    Args:
        tensor: sparse, quantised, nested, wrapped, without memory, of a class that dispatches.
        with_bytes: a file or a digest is wanted, so the source should have every element.

    Returns:
        Type, dtype, shape of what is recorded, requires_grad; a tensor with the values or None;
        how many zeros it leaves out; further keys of the record; why values are missing that
        should be there.
    """
    with torch._C.DisableTorchFunction():
        kind = type(tensor)
        name = "torch.Tensor"
        if kind is not torch.Tensor and kind is not torch.nn.Parameter:
            name = values.qualified_name(kind)
        dtype = _attribute("dtype", tensor, torch.float32)
        shape = _shape_of(tensor)
        grad = bool(_attribute("requires_grad", tensor, False))
        source: torch.Tensor | None = None
        zeros, extra, problem = 0, None, None
        try:
            # Modes and transforms of the user must not see these operations.
            with dispatch._disable_current_modes(), torch._C._DisableFuncTorch(), torch.no_grad():
                name, source, zeros, extra = _values_of(tensor, name, with_bytes)
                if source is not None and not _is_sparse(tensor):
                    shape = _shape_of(source)
        except Exception as error:
            problem = f"the values of a {name}: {values.first_line(error)}"
        if zeros and with_bytes:
            problem = "a sparse tensor too large for a file or a digest"
        return name, str(dtype), shape, grad, source, zeros, extra, problem


def _values_of(
    tensor: torch.Tensor, name: str, with_bytes: bool
) -> tuple[str, torch.Tensor | None, int, dict[str, Any] | None]:
    """Type text, source, implicit zeros and further keys of describe_tensor()."""
    functorch = torch._C._functorch
    if functorch.is_batchedtensor(tensor) or functorch.is_gradtrackingtensor(tensor):
        name = "BatchedTensor" if functorch.is_batchedtensor(tensor) else "GradTrackingTensor"
        while functorch.is_functorch_wrapped_tensor(tensor):
            tensor = functorch.get_unwrapped(tensor)
        source, zeros = _source_of(tensor, with_bytes)
        return name, source, zeros, None
    if torch._is_functional_tensor(tensor):
        source, zeros = _source_of(torch._from_functional_tensor(tensor), with_bytes)
        return "FunctionalTensor", source, zeros, None
    if _is_instance(tensor, "torch._subclasses.fake_tensor", "FakeTensor"):
        return name, None, 0, None
    collectives = "torch.distributed._functional_collectives"
    if _is_instance(tensor, collectives, "AsyncCollectiveTensor"):
        return f"{collectives}.AsyncCollectiveTensor", None, 0, None  # not complete: do not wait
    if _is_instance(tensor, "torch.distributed.tensor", "DTensor"):
        return _values_of_dtensor(tensor, with_bytes)
    source, zeros = _source_of(tensor, with_bytes)
    return name, source, zeros, None


def _values_of_dtensor(
    tensor: Any, with_bytes: bool
) -> tuple[str, torch.Tensor | None, int, dict[str, Any]]:
    name = "torch.distributed.tensor.DTensor"
    extra = {
        "device_mesh": tensor.device_mesh.mesh.tolist(),
        "placements": [_placement(placement) for placement in tensor.placements],
        "full_shape": list(_shape_of(tensor)),
    }
    local = tensor._local_tensor
    _, source, zeros, _ = _values_of(local, name, with_bytes)
    return name, source, zeros, extra


def _placement(placement: Any) -> dict[str, Any]:
    if placement.is_replicate():
        return {"Replicate": {}}
    if placement.is_partial():
        return {"Partial": {"reduce_op": str(placement.reduce_op)}}
    return {type(placement).__name__.lstrip("_"): {"dim": placement.dim}}


def _source_of(tensor: torch.Tensor, with_bytes: bool) -> tuple[torch.Tensor | None, int]:
    """A tensor with plain memory that holds the values of `tensor`, and the zeros it leaves out."""
    if tensor.device.type == "meta":
        return None, 0
    if _is_sparse(tensor):
        return _source_of_sparse(tensor.detach(), with_bytes)
    if tensor.is_quantized:
        return tensor.detach().cpu().dequantize(), 0
    if tensor.is_mkldnn:
        return tensor.detach().to_dense(), 0
    if tensor.is_nested:
        return _source_of_nested(tensor), 0
    if tensor._is_zerotensor():
        return torch.zeros(tensor.shape, dtype=tensor.dtype), 0
    dtype = str(tensor.dtype).removeprefix("torch.")  # older versions lack some of these names
    if dtype == "complex32":
        return tensor.detach().cpu().resolve_conj().to(torch.complex64), 0
    if dtype == "float8_e8m0fnu":
        return tensor.detach().cpu().float(), 0
    if dtype == "float4_e2m1fn_x2":
        return _decode_float4(tensor.detach().cpu()), 0
    if not (tensor.is_floating_point() or tensor.is_complex() or dtype in _INTEGERS):
        return None, 0  # bits, and integers of other widths: containers without arithmetic
    if _dispatches(type(tensor)):
        if type(tensor).dequantize is not torch.Tensor.dequantize:  # TorchAO
            return tensor.detach().dequantize(), 0
        # A subclass of the user: what it gives when copied into a plain tensor.
        return torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor), 0
    if tensor.untyped_storage().nbytes() == 0 and tensor.numel() > 0:
        return None, 0  # storage emptied between uses
    return tensor, 0


def _is_sparse(tensor: torch.Tensor) -> bool:
    layout = _attribute("layout", tensor, None)
    return layout is torch.sparse_coo or layout in _COMPRESSED


def _source_of_sparse(tensor: torch.Tensor, with_bytes: bool) -> tuple[torch.Tensor, int]:
    size_bytes = math.prod(tensor.shape) * tensor.dtype.itemsize
    if with_bytes and size_bytes <= _DENSE_LIMIT_BYTES:
        return tensor.cpu().to_dense(), 0
    values = tensor.coalesce().values() if tensor.layout is torch.sparse_coo else tensor.values()
    return values, math.prod(tensor.shape) - values.numel()


def _source_of_nested(tensor: Any) -> torch.Tensor:
    """The values buffer; holes of a jagged tensor are left out."""
    if tensor.layout is torch.jagged and tensor.lengths() is None:
        values: torch.Tensor = tensor._values.detach()
        return values
    parts = [part.detach().reshape(-1) for part in tensor.unbind()]
    return torch.cat(parts) if parts else torch.empty(0, dtype=tensor.dtype)


def _decode_float4(tensor: torch.Tensor) -> torch.Tensor:
    table = torch.tensor(_FLOAT4)
    codes = tensor.contiguous().view(torch.uint8)
    low, high = table[(codes & 15).long()], table[(codes >> 4).long()]
    return torch.stack((low, high), dim=-1).flatten(start_dim=-2)


def _dispatches(kind: type) -> bool:
    return getattr(kind, "__torch_dispatch__", None) is not torch.Tensor.__torch_dispatch__


def _is_instance(value: object, module: str, name: str) -> bool:
    """isinstance() without importing `module`: what is not imported has no instances."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and issubclass(type(value), kind)


def _attribute(name: str, tensor: torch.Tensor, default: Any) -> Any:
    """An attribute of torch.Tensor itself: a subclass may have made it something else."""
    try:
        return getattr(torch.Tensor, name).__get__(tensor)
    except Exception:
        return default


def _shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Sizes; one that is symbolic is what it is known to be for now, else 0."""
    sizes = []
    for size in _attribute("shape", tensor, ()):
        hint = size if isinstance(size, int) else getattr(size.node, "hint", None)
        sizes.append(hint if isinstance(hint, int) else 0)
    return tuple(sizes)


def describe(value: Any) -> tuple[Any, ...]:
    """What a value is that is neither tensor nor plain scalar, list or dict.

    The answer has the forms of `plumbline.values.describe`.
    """
    described = values.describe(value, torch.from_numpy)
    if described is None:
        kind = values.qualified_name(type(value))
        if kind.startswith(("torch.", "plumbline.")):  # nobody else's isinstance() is asked
            described = describe_distributed(value)
    return described or values.unknown(value)
