"""Aliases of plumbline under the names of upstream's package, for scripts written for that one."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from msprobe.missing import explain

__all__ = ["GradComparator"]


class _NotBuilt(MetaPathFinder):
    """Asked last: says of upstream's modules that have no alias what to use instead."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Raises ModuleNotFoundError for sub-modules of this package only."""
        if fullname.startswith(f"{__name__}."):
            raise ModuleNotFoundError(explain(fullname), name=fullname)
        return None


sys.meta_path.append(_NotBuilt())


def __getattr__(name: str) -> Any:
    """Loads the comparison when it is asked for: a training needs none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import plumbline

    return plumbline.GradComparator
