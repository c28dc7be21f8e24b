"""A black box for the Trainer of Lightning."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def attach(trainer: Any, make: Callable[..., Any]) -> Any:
    """Adds a callback to `trainer`; its `box` is there while it trains."""
    package = importlib.import_module(type(trainer).__module__.split(".")[0])
    base: Any = package.pytorch.Callback if hasattr(package, "pytorch") else package.Callback

    class BlackBoxCallback(base):  # type: ignore[misc]
        box: Any = None

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.box = make(pl_module, trainer.optimizers[0])

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            if self.box is not None:
                self.box.stop("the training ended")

    callback = BlackBoxCallback()
    trainer.callbacks.append(callback)
    return callback
