"""Records LoRA training with PEFT: frozen weights, and adapters that a fused optimizer updates.

python examples/record_lora.py DIRECTORY|none
"""

from __future__ import annotations

import sys

import small_llama
import torch
from peft import LoraConfig, get_peft_model


def main() -> None:
    debugger = None
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
    torch.manual_seed(1)
    adapters = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.0)
    model = get_peft_model(small_llama.make(), adapters)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    for batch in torch.utils.data.DataLoader(small_llama.Texts(), batch_size=8):
        if debugger is not None:
            debugger.start(model=model)
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if debugger is not None:
            debugger.stop()
            debugger.step()
    print("weights", small_llama.fingerprint(model))


if __name__ == "__main__":
    main()
