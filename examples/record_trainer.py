"""Records the steps of a Hugging Face Trainer, by a callback.

python examples/record_trainer.py DIRECTORY|none
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import small_llama
from transformers import Trainer, TrainerCallback, TrainingArguments


class RecordSteps(TrainerCallback):
    """Opens the window for each optimizer step, with all its micro-batches."""

    def __init__(self, debugger: Any) -> None:
        self._debugger = debugger

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._debugger.start(model=kwargs["model"])

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._debugger.stop()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._debugger.step()


def main() -> None:
    callbacks = []
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
        callbacks.append(RecordSteps(debugger))
    model = small_llama.make()
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(
            output_dir=directory, max_steps=3, per_device_train_batch_size=2,
            gradient_accumulation_steps=2, report_to=[], save_strategy="no", use_cpu=True,
            disable_tqdm=True, logging_strategy="no", seed=1,
        )
        Trainer(
            model=model, args=arguments, train_dataset=small_llama.Texts(), callbacks=callbacks
        ).train()
    print("weights", small_llama.fingerprint(model))


if __name__ == "__main__":
    main()
