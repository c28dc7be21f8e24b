"""Trains a small Llama twice, the second time with a wrong epsilon, and lets plumb find it.

    python examples/find_wrong_epsilon.py [DIRECTORY]

Both runs train two steps from the same seeds and are recorded call by call (level mix, statistics).
`plumb compare` must then name a call inside the module with the wrong epsilon; the exit status is
1 if it names another one. The last line shows the same in a page.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

STEPS = 2
MODULE = "model.layers.2.post_attention_layernorm"
RIGHT_EPSILON, WRONG_EPSILON = 1e-6, 1e-5


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
                         num_attention_heads=4, vocab_size=2000, rms_norm_eps=RIGHT_EPSILON,
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


def modules_around(recording: Path, call: str) -> list[str]:
    """Names of the modules that the call ran in, innermost first, from construct.json."""
    [construct] = recording.glob("*/construct.json")
    parents = json.loads(construct.read_text())
    found = [call]
    while found[-1] in parents and len(found) < 100:
        parent = parents[found[-1]]
        parent = parent[0] if isinstance(parent, list) else parent
        if not parent:
            break
        found.append(parent)
    return found


def main() -> int:
    if len(sys.argv) == 4 and sys.argv[1] == "--record":
        train_and_record(Path(sys.argv[2]), float(sys.argv[3]))
        return 0
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo").resolve()
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for name, epsilon in (("good", RIGHT_EPSILON), ("wrong", WRONG_EPSILON)):
        print(f"training {STEPS} steps of a 4-layer Llama, {MODULE}.epsilon = {epsilon:g}",
              flush=True)
        # A recorder is one per process, so each run has its own.
        subprocess.run([sys.executable, "-W", "ignore", __file__, "--record", root / name,
                        str(epsilon)], check=True)

    plumb = str(Path(sys.executable).with_name("plumb"))
    command = [plumb, "compare", str(root / "wrong/step0"),
               str(root / "good/step0"), "-o", str(root / "result")]
    print("\n$", " ".join(command), flush=True)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=False)
    print(done.stdout, flush=True)
    answer = re.match(r"first wrong call: (\S+)", done.stdout)
    named = answer.group(1).rstrip(",;:") if answer else "none"
    inside = any(f".{MODULE}." in name for name in modules_around(root / "wrong/step0", named))
    print(f"injected: {MODULE}.epsilon = {WRONG_EPSILON:g} instead of {RIGHT_EPSILON:g}")
    print(f"first wrong call: {named} ({'in' if inside else 'NOT in'} {MODULE})")
    print("\nsee it in a page:\n$", os.path.relpath(plumb), "view",
          *(os.path.relpath(root / name) for name in ("wrong", "good")))
    return 0 if inside and done.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
