"""Writes tests/data/upstream_1.2.2/filtered_runs.json: entries under every level and filter.

    python make_filtered_runs.py OUT.json {upstream|plumbline}

records one step of a model with a block that runs twice, once per setting, each in a process of its
own. The stored file comes from release 1.2.2; tests/python/test_levels_and_filters.py runs this
file with plumbline.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

import torch
from torch import nn

B = "Module.b.Blk.forward.0"
NORM = "Module.norm.LayerNorm"
SETTINGS = {
    "L0": {"level": "L0"},
    "L1": {"level": "L1"},
    "mix": {"level": "mix"},
    "forwards": {"scope": ["Functional.linear.1.forward", "Functional.layer_norm.0.forward"]},
    "to_backward": {"scope": ["Functional.linear.1.forward", "Functional.linear.1.backward"]},
    "backwards": {"scope": ["Functional.linear.3.backward", "Functional.linear.1.backward"]},
    "module_twice": {"level": "L0", "scope": [B, B]},
    "second_call": {"level": "L0", "scope": ["Module.b.Blk.forward.1"] * 2},
    "module_backwards": {
        "level": "L0", "scope": ["Module.c.Linear.backward.0", f"{NORM}.backward.0"]},
    "no_backward": {"level": "L0", "scope": ["Module.a.Blk.forward.0"] * 2},
    "mix_range": {"level": "mix", "scope": ["Module.a.Blk.forward.0", f"{NORM}.backward.0"]},
    "list": {"list": ["relu"]},
    "list_and_scope": {
        "list": ["relu"],
        "scope": ["Functional.linear.1.forward", "Functional.layer_norm.0.forward"]},
    "list_of_nothing": {"list": ["no such call"]},
    "module_list": {"level": "L0", "list": ["norm"]},
    "module_forward_list": {"level": "L0", "list": [f"{NORM}.forward.0"]},
    "mix_list": {"level": "mix", "list": [B]},
    "mix_list_of_backward": {"level": "mix", "list": ["Module.c.Linear.backward.0"]},
    "mix_list_of_both": {"level": "mix", "list": ["Module.a.fc"]},
}


class Blk(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return torch.relu(self.fc(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Blk(), Blk()
        self.norm, self.c = nn.LayerNorm(3), nn.Linear(3, 2)

    def forward(self, x):
        return self.c(self.norm(self.b(self.b(self.a(x)))))


def record(name: str, debugger_class: type, work: pathlib.Path) -> None:
    options = dict(SETTINGS[name])
    config = work / f"{name}.json"
    config.write_text(json.dumps({
        "task": "statistics", "dump_path": str(work / name), "rank": [], "step": [],
        "level": options.pop("level", "L1"), "statistics": options}))
    config.chmod(0o640)
    debugger = debugger_class(config_path=str(config))
    net = Net()
    debugger.start(model=net)
    loss = net(torch.ones(2, 3, requires_grad=True)).sum()
    if name != "no_backward":
        loss.backward()
    debugger.stop()
    debugger.step()


def members(entry: dict) -> list[str]:
    """The keys of an entry, those with nothing in them marked."""
    return [key if value not in ([], {}, [None]) else f"{key} empty"
            for key, value in entry.items() if key != "is_recompute"]


def main() -> None:
    if sys.argv[2] == "upstream":
        from msprobe.pytorch import PrecisionDebugger
    else:
        from plumbline.pytorch import PrecisionDebugger
    torch.set_num_threads(1)
    found = {}
    work = pathlib.Path(tempfile.mkdtemp())
    for name in SETTINGS:
        child = os.fork()
        if child == 0:
            record(name, PrecisionDebugger, work)
            sys.stdout.flush()
            sys.exit(0)  # the recorder finishes when the interpreter ends
        assert os.waitpid(child, 0)[1] == 0, name
        rank = work / name / "step0" / "rank"
        data = json.loads((rank / "dump.json").read_text())["data"]
        found[name] = {
            "entries": {entry: members(value) for entry, value in data.items()},
            "construct": json.loads((rank / "construct.json").read_text()),
        }
    shutil.rmtree(work)
    pathlib.Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
