"""Compares two dump.json trees the way docs/formats/differences.md promises."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from known_differences import KNOWN_DIFFERENCES

# Half the distance of neighbouring numbers around 1. Upstream sums in the tensor's own dtype.
ROUNDING = {"torch.float16": 2.0**-11, "torch.bfloat16": 2.0**-8, "torch.float32": 2.0**-24,
            "torch.float64": 2.0**-24}
EXACT = ("type", "dtype", "shape", "requires_grad", "md5", "data_name")
STATISTICS = ("Max", "Min", "Mean", "Norm", "Max_except_inf_nan", "Min_except_inf_nan")

Difference = tuple[str, Any, Any]


def is_tensor(node: Any) -> bool:
    """Whether a node of dump.json describes a tensor."""
    return isinstance(node, dict) and "dtype" in node and "shape" in node


def same_number(ours: Any, theirs: Any) -> bool:
    """Equal, both NaN, or both null; an int and a float of equal value are the same number."""
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(theirs):
        return math.isnan(ours)
    if isinstance(ours, bool) != isinstance(theirs, bool):
        return False
    return ours == theirs


def close_enough(field: str, ours: Any, theirs: Any, tensor: dict[str, Any]) -> bool:
    """Whether a Mean or Norm agrees up to upstream's rounding in the tensor's dtype."""
    unit = ROUNDING.get(tensor["dtype"])
    numbers = isinstance(ours, int | float) and isinstance(theirs, int | float)
    if unit is None or not numbers or not math.isfinite(theirs) or not math.isfinite(ours):
        return False
    elements = math.prod(tensor["shape"]) or 1
    if field == "Norm":
        scale = abs(theirs)
    else:
        # The mean may cancel: its error is relative to the mean of the magnitudes, which is at
        # most Norm / sqrt(elements).
        scale = max(abs(theirs), abs(tensor.get("Norm") or 0.0) / math.sqrt(elements))
    # torch sums pairwise in blocks: the error grows like the logarithm of the length.
    return abs(ours - theirs) <= 2 * unit * (2 + math.log2(elements + 1)) * scale


def differences(ours: Any, theirs: Any, path: str) -> Iterator[Difference]:
    """Every place where the trees differ beyond rounding."""
    if is_tensor(theirs) and is_tensor(ours):
        yield from tensor_differences(ours, theirs, path)
    elif isinstance(theirs, dict) and isinstance(ours, dict) and theirs:
        if list(ours) != list(theirs):
            yield f"{path}/keys", list(ours), list(theirs)
        for key in theirs:
            if key in ours:
                yield from differences(ours[key], theirs[key], f"{path}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list):
        if len(ours) != len(theirs):
            yield f"{path}/length", len(ours), len(theirs)
        for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from differences(one, other, f"{path}/{index}")
    elif not same_number(ours, theirs):
        yield path, ours, theirs


def tensor_differences(ours: dict, theirs: dict, path: str) -> Iterator[Difference]:
    """Differences of two tensor objects; keys that only plumbline writes are ignored."""
    for field in EXACT:
        if ours.get(field) != theirs.get(field):
            yield f"{path}/{field}", ours.get(field), theirs.get(field)
    for field in STATISTICS:
        one, other = ours.get(field), theirs.get(field)
        if same_number(one, other):
            continue
        if field in ("Mean", "Norm") and close_enough(field, one, other, theirs):
            continue
        yield f"{path}/{field}[{theirs['dtype']}]", one, other


def unexplained(where: str, ours: dict, theirs: dict, used: set[str]) -> list[Difference]:
    """Differences of two `data` objects that KNOWN_DIFFERENCES does not cover.

    `where` is MODEL/LEVEL/MODE/stepN. The keys of the lines that were needed are added to `used`.
    """
    found: list[Difference] = []
    for name in theirs:
        if name not in ours:
            continue  # the test of names reports it
        for path, one, other in differences(ours[name], theirs[name], f"{where}:{name}"):
            covering = [line for line in KNOWN_DIFFERENCES if line.covers(path, one, other)]
            if covering:
                used.add(covering[0].key)
            else:
                found.append((path, one, other))
    return found
