"""Records training beside layers that TorchAO has quantised to 8-bit integers.

python examples/record_quantized.py DIRECTORY|none
"""

from __future__ import annotations

import sys

import small_llama
import torch
from torchao.quantization import Int8WeightOnlyConfig, quantize_


def main() -> None:
    debugger = None
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
    model = small_llama.make()
    quantize_(model.model, Int8WeightOnlyConfig())  # the head stays as it is, and is trained
    optimizer = torch.optim.AdamW(model.lm_head.parameters(), lr=1e-2)
    for batch in torch.utils.data.DataLoader(small_llama.Texts(), batch_size=8):
        if debugger is not None:
            debugger.start(model=model)
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if debugger is not None:
            debugger.stop()
            debugger.step()
    print("weights", small_llama.fingerprint(model.lm_head))


if __name__ == "__main__":
    main()
