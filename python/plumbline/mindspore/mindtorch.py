"""MindTorch (MSAdapter): PyTorch's functions on MindSpore's tensors, under PyTorch's names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms

from plumbline.api_list import present_apis, read_api_list

# What a script calls, and functions of devices that may be there besides: category, prefix.
_OWNERS = (
    ("functional", "Functional", "torch.nn.functional"),
    ("tensor", "Tensor", "torch.Tensor"),
    ("torch", "Torch", "torch"),
    ("torch_npu", "NPU", "torch_npu"),
)
_COMMUNICATION = (("distributed", "Distributed", "torch.distributed"),)


def is_there() -> bool:
    """Whether `torch` is MindTorch: its tensors are MindSpore's, whatever its class Tensor is."""
    torch: Any = sys.modules.get("torch")
    kind = getattr(torch, "Tensor", None)
    if isinstance(kind, type) and issubclass(kind, ms.Tensor):
        return True
    try:
        return isinstance(torch.tensor(0.0), ms.Tensor)
    except Exception:  # no torch, or half of one
        return False


def module_type() -> Any:
    """Its class of modules where they are PyTorch's and no cells; None: they are cells, or none."""
    kind = _find("torch.nn.Module") if is_there() else None
    return kind if isinstance(kind, type) and not issubclass(kind, ms.nn.Cell) else None


def apis() -> Iterator[tuple[str, str, object, str]]:
    """(prefix, name, owner, attribute) of each API in PyTorch's lists that it has."""
    return _present(_OWNERS)


def communication_apis() -> Iterator[tuple[str, str, object, str]]:
    """The same of communication, whose results are arguments."""
    return _present(_COMMUNICATION)


def handle_type() -> type | None:
    """Class of the handles of communication in the background, where there is one."""
    kind = getattr(_find("torch.distributed"), "Work", None)
    return kind if isinstance(kind, type) else None


def _present(owners: tuple[tuple[str, str, str], ...]) -> Iterator[tuple[str, str, object, str]]:
    lists = read_api_list(str(Path(__file__).parents[1] / "pytorch" / "apis.json"))
    found = [(category, prefix, _find(path)) for category, prefix, path in owners]
    yield from present_apis(lists, [one for one in found if one[2] is not None])


def _find(path: str) -> Any:
    """A module that is imported, or an attribute of it; None where it is not."""
    root, *names = path.split(".")
    value: Any = sys.modules.get(root)
    for name in names:
        value = getattr(value, name, None)
    return value
