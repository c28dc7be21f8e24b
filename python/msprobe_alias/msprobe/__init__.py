"""Aliases of plumbline under the names of upstream's package, for scripts written for that one."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from msprobe.missing import explain


class _NotBuilt(MetaPathFinder):
    """Asked last: says of upstream's modules that have no alias what to use instead."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Raises ModuleNotFoundError for sub-modules of this package only."""
        if fullname.startswith(f"{__name__}."):
            raise ModuleNotFoundError(explain(fullname), name=fullname)
        return None


sys.meta_path.append(_NotBuilt())
