"""Records one step of a small model and finds the operator that a device computes wrong.

The device is a stand-in: the CPU, with a gelu that is off by two percent except in the raised
precision of the benchmark. On a real chip leave `python` out and name the chip: device="npu".

python examples/precheck_wrong_operator.py [DIRECTORY]
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from small_model import make

import plumbline
from plumbline.pytorch import PrecisionDebugger

WRONG_GELU = """
gelu = torch.nn.functional.gelu
def wrong(x, *args, **kwargs):
    return gelu(x, *args, **kwargs) * (1 if x.dtype == torch.float64 else 1.02)
torch.nn.functional.gelu = wrong
"""


def broken_device(path: Path) -> Path:
    """An interpreter whose operators are not those of PyTorch."""
    path.write_text(f"#!{sys.executable}\nimport runpy, sys\nimport torch\n{WRONG_GELU}\n"
                    "sys.argv = ['server']\n"
                    "runpy.run_module('plumbline.precheck_run.server', run_name='__main__')\n")
    path.chmod(0o755)
    return path


def record(out: Path) -> Path:
    """One step of the model; the directory that holds its dump.json."""
    debugger = PrecisionDebugger(task="statistics", level="L1", dump_path=str(out))
    model, inputs, target = make()
    debugger.start(model)
    torch.nn.functional.mse_loss(model(inputs), target).backward()
    debugger.stop()
    debugger.step()
    return out / "step0" / "rank"


def main() -> int:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/precheck").resolve()
    out.mkdir(parents=True, exist_ok=True)
    recording = record(out / "run")

    good = plumbline.precheck(recording, device="cpu")
    print("as it is:", good.answer)

    wrong = plumbline.precheck(recording, out / "result", device="cpu",
                               python=broken_device(out / "broken_device"))
    print("broken:  ", wrong.answer)
    for row in wrong.rows:
        if row["status"] == "error":
            print(f"  {row['name']}: largest error {row['max_abs_error']}")
    print("as a unit test:", wrong.worst[0]["as_test"] if wrong.worst else "not needed")
    print("files:", *wrong.files, sep="\n  ")
    return 0 if good.ok and not wrong.ok and "gelu" in wrong.answer else 1


if __name__ == "__main__":
    sys.exit(main())
