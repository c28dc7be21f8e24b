"""A black box for `transformers.Trainer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback


class BlackBoxCallback(TrainerCallback):
    """Watches from the beginning of the training to its end."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self.box: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Model and optimizer are there."""
        optimizer = kwargs.get("optimizer")
        # What accelerate puts around an optimizer calls it.
        self.box = self._make(kwargs["model"], getattr(optimizer, "optimizer", optimizer))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The last step is over."""
        if self.box is not None:
            self.box.stop("the training ended")


def attach(trainer: Any, make: Callable[..., Any]) -> BlackBoxCallback:
    """Adds one to `trainer`."""
    callback = BlackBoxCallback(make)
    trainer.add_callback(callback)
    return callback
