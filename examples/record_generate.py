"""Records the calls of a model that make the second to fourth token of a generation.

python examples/record_generate.py DIRECTORY|none
"""

from __future__ import annotations

import sys

import small_llama
import torch


def main() -> None:
    debugger = None
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
    model = small_llama.make().eval()
    prompt = torch.tensor([[1, 5, 9, 12]])
    if debugger is not None:
        debugger.start(model=model, token_range=[1, 3])  # call 0 is the prompt
    tokens = model.generate(prompt, max_new_tokens=8, do_sample=False, use_cache=True)
    if debugger is not None:
        debugger.stop()
        debugger.step()
    print("tokens", tokens[0].tolist())


if __name__ == "__main__":
    main()
