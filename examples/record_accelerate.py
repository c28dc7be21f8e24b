"""Records a training loop of accelerate, with gradient accumulation and clipping.

python examples/record_accelerate.py DIRECTORY|none
"""

from __future__ import annotations

import sys

import small_llama
import torch
from accelerate import Accelerator


def main() -> None:
    debugger = None
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    torch.manual_seed(1)
    model = small_llama.make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(small_llama.Texts(), batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        if debugger is not None:
            debugger.start(model=model)
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        if debugger is not None:
            debugger.stop()
            debugger.step()
    print("weights", small_llama.fingerprint(accelerator.unwrap_model(model)))


if __name__ == "__main__":
    main()
