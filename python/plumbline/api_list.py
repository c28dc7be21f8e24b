"""The lists of APIs to record: `apis.json` in the folder of each framework."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from plumbline.custom_ops_file import is_removed


@functools.cache
def read_api_list(module_file: str) -> dict[str, list[str]]:
    """Names per category, from beside a module; a name may have dots (`linalg.norm`)."""
    path = Path(module_file).with_name("apis.json")
    lists: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return lists


def present_apis(
    lists: dict[str, list[str]], owners: Iterable[tuple[str, str, object]]
) -> Iterator[tuple[str, str, object, str]]:
    """Yields (prefix, name, owner, attribute) for each listed API that the framework has.

    Args:
        lists: see `read_api_list`.
        owners: (category, prefix of the entries, where its names are looked up).
    """
    for category, prefix, root in owners:
        for name in lists[category]:
            owner: object = root
            *path, attribute = name.split(".")
            for part in path:
                owner = getattr(owner, part, None)
            if callable(getattr(owner, attribute, None)) and not is_removed(f"{prefix}.{name}"):
                yield prefix, name, owner, attribute
