"""Writes tests/data/upstream_<version>/<case>: small dumps made by the real upstream tool.

Run once per release in an environment that has it and PyTorch installed:

    python make_upstream_fixtures.py 1.2.2
    python make_upstream_fixtures.py 26.2.0

Only dump.json, stack.json, construct.json and, for the tensor case, the files of
dump_tensor_data are kept. Paths of the machine are cut from the stacks.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import torch
from torch import nn

HERE = pathlib.Path(__file__).parent
SEED = 20260103
CASES = {
    "mix_statistics": ("mix", "statistics", "statistics"),
    "mix_md5": ("mix", "statistics", "md5"),
    "l0_statistics": ("L0", "statistics", "statistics"),
    "l1_tensor": ("L1", "tensor", "statistics"),
}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 6)
        self.norm = nn.LayerNorm(6)
        self.fc2 = nn.Linear(6, 3, bias=False)

    def forward(self, x, options=None):
        h = torch.nn.functional.gelu(self.fc1(x))
        h = self.norm(h)[..., 1:].clone()
        h = torch.cat([h, torch.zeros(2, 1)], dim=1)
        h = torch.where(h > 0.5, h, torch.full_like(h, float("-inf")))
        h = torch.nan_to_num(h, neginf=-1e-7).to(torch.bfloat16).to(torch.float32)
        return self.fc2(h).sum() * torch.tensor(3, dtype=torch.int64)


def run(case: str, target: pathlib.Path) -> None:
    from msprobe.pytorch import PrecisionDebugger

    level, task, mode = CASES[case]
    with tempfile.TemporaryDirectory() as work:
        section = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": mode}
        config = {"task": task, "dump_path": f"{work}/out", "level": level, "rank": [], "step": []}
        config_path = pathlib.Path(work) / "config.json"
        config_path.write_text(json.dumps({**config, task: section}))
        torch.manual_seed(SEED)
        model = Net()
        x = torch.randn(2, 4)
        x[0, 0] = 0.1
        debugger = PrecisionDebugger(config_path=str(config_path))
        debugger.start(model=model) if level != "L1" else debugger.start()
        options = {"names": ["a\u00e9\U0001f600"], "big": 2**70, "slice": slice(1, None)}
        loss = model(x, options=options)
        loss.backward()
        debugger.stop()
        debugger.step()
        source = next(pathlib.Path(work, "out", "step0").iterdir())
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for file in sorted(source.glob("*.json")):
            text = file.read_text().replace(f"{work}/", "./").replace(str(HERE), "/src")
            text = text.replace(sys.prefix, "/venv")
            (target / file.name).write_text(text)
        if task == "tensor":
            shutil.copytree(source / "dump_tensor_data", target / "dump_tensor_data")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        # One process per case: the debugger is a singleton.
        import subprocess

        for name in CASES:
            subprocess.run([sys.executable, __file__, sys.argv[1], name], check=True)
    else:
        run(sys.argv[2], HERE / f"upstream_{sys.argv[1]}" / sys.argv[2])
