"""Records the steps of a Hugging Face Trainer whose script takes no callback.

python examples/record_trainer_without_callback.py DIRECTORY|none
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import small_llama
from transformers import Trainer, TrainingArguments


class RecordingTrainer(Trainer):
    """Each micro-batch is a step: forward and backward are in the window, the optimizer is not."""

    debugger: Any = None

    def training_step(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        self.debugger.start(model=model)
        try:
            return super().training_step(model, *args, **kwargs)
        finally:
            self.debugger.stop()
            self.debugger.step()


def main() -> None:
    trainer_class = Trainer
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        RecordingTrainer.debugger = PrecisionDebugger(
            task="statistics", level="mix", dump_path=sys.argv[1]
        )
        trainer_class = RecordingTrainer
    model = small_llama.make()
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(
            output_dir=directory, max_steps=3, per_device_train_batch_size=2, report_to=[],
            save_strategy="no", use_cpu=True, disable_tqdm=True, logging_strategy="no", seed=1,
            dataloader_num_workers=2,
        )
        trainer_class(model=model, args=arguments, train_dataset=small_llama.Texts()).train()
    print("weights", small_llama.fingerprint(model))


if __name__ == "__main__":
    main()
