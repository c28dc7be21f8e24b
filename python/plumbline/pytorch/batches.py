"""enable_dataloader: every batch that a DataLoader hands out begins a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.utils.data.dataloader as dataloader

from plumbline import _core


class BatchHooks:
    """Runs callables around the fetching of a batch."""

    def __init__(self) -> None:
        self._patches = _core.PatchSet()

    def install(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        """`before` a batch is fetched the last one is done; `after` it is there."""
        if self._patches.is_applied:
            return
        original = dataloader._BaseDataLoaderIter.__next__

        def fetch(iterator: Any) -> Any:
            before()
            batch = original(iterator)
            after()
            return batch

        self._patches = _core.PatchSet()
        self._patches.add(dataloader._BaseDataLoaderIter, "__next__", fetch)
        self._patches.apply()

    def uninstall(self) -> None:
        """Restores the DataLoader; idempotent."""
        self._patches.restore()
