"""Records the steps of a Lightning Trainer, by a callback.

python examples/record_lightning.py DIRECTORY|none
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import lightning
import small_llama
import torch


class RecordSteps(lightning.Callback):
    """Forward and backward of each batch are in the window."""

    def __init__(self, debugger: Any) -> None:
        self._debugger = debugger

    def on_train_batch_start(self, trainer: Any, module: Any, *_: Any) -> None:
        self._debugger.start(model=module)

    def on_after_backward(self, trainer: Any, module: Any) -> None:
        self._debugger.stop()

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        self._debugger.step()


class Training(lightning.LightningModule):
    """The small model and its optimizer."""

    def __init__(self) -> None:
        super().__init__()
        self.model = small_llama.make()

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        return self.model(**batch).loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main() -> None:
    warnings.filterwarnings("ignore")
    callbacks = []
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
        callbacks.append(RecordSteps(debugger))
    training = Training()
    trainer = lightning.Trainer(
        max_steps=3, accelerator="cpu", callbacks=callbacks, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(training, torch.utils.data.DataLoader(small_llama.Texts(), batch_size=4))
    print("weights", small_llama.fingerprint(training))


if __name__ == "__main__":
    main()
