"""Trains a Llama of transformers twice, once with a wrong epsilon, and lets plumb find it.

    python examples/find_wrong_epsilon.py [DIRECTORY]

Both runs train two steps from the same seeds and are recorded call by call (level mix, statistics).
`plumb compare` must then name a call inside the module with the wrong epsilon; the exit status is
1 if it names another one. The last line shows the same in a page. `plumb demo` does the same with a
model that needs PyTorch alone, and has the comparison.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from plumbline import demo

STEPS = 2
MODULE = "model.layers.2.post_attention_layernorm"


def train_and_record(directory: Path, epsilon: float) -> None:
    """Trains STEPS steps and leaves the recording in `directory`."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from plumbline.pytorch import PrecisionDebugger, seed_all

    # MKL's vector functions may give wrong values when two threads are the first to call them
    # (pytorch/pytorch#188792): one element, one thread, once.
    for function in (torch.cos, torch.sin, torch.exp, torch.log, torch.sqrt):
        function(torch.ones(1))

    seed_all(1234)
    config = LlamaConfig(hidden_size=256, intermediate_size=688, num_hidden_layers=4,
                         num_attention_heads=4, vocab_size=2000, rms_norm_eps=demo.RIGHT_EPSILON,
                         attn_implementation="eager")
    model = LlamaForCausalLM(config)
    model.get_submodule(MODULE).variance_epsilon = epsilon
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 2000, (2, 64))

    settings = directory.parent / f"{directory.name}.json"
    settings.write_text(json.dumps({"task": "statistics", "level": "mix",
                                    "dump_path": str(directory)}))
    debugger = PrecisionDebugger(config_path=str(settings))
    for step in range(STEPS):
        debugger.start(model)
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        debugger.stop()
        optimizer.step()
        optimizer.zero_grad()
        debugger.step()
        print(f"  step {step}: loss {loss.item():.6f}", flush=True)


def main() -> int:
    if len(sys.argv) == 4 and sys.argv[1] == "--record":
        train_and_record(Path(sys.argv[2]), float(sys.argv[3]))
        return 0
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo")
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    record = [sys.executable, "-W", "ignore", __file__, "--record"]
    plumb = os.path.relpath(Path(sys.executable).with_name("plumb"))
    return demo.find_defect(root, MODULE, record, plumb)


if __name__ == "__main__":
    sys.exit(main())
