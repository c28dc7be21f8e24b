"""black_box() and `plumb explain`: faults are named, healthy trainings are left in peace."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ranks import PROLOGUE, run_ranks
from recording import PLUMB, run_script
from training_faults import FAULT_STEP, FAULTS, HEALTHY, OTHER_FAULTS

HERE = Path(__file__).parent


def explain(directory: Path, *words: str) -> str:
    """What the command prints."""
    done = subprocess.run([PLUMB, "explain", str(directory), *words], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_cases(directory: Path, *names: str) -> dict[str, dict[str, Any]]:
    """What the boxes of several trainings found."""
    done = run_script(HERE / "training_faults.py", directory, *names)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["name"]: one for one in found}


def test_every_fault_is_named_with_its_step_and_module(tmp_path: Path) -> None:
    found = run_cases(tmp_path, *FAULTS, *OTHER_FAULTS)
    modules = {name: module for name, (_, module) in {**FAULTS, **OTHER_FAULTS}.items()}
    for name, module in modules.items():
        one = found[name]
        assert one["step"] is not None, name
        assert abs(one["step"] - FAULT_STEP) <= 1, one
        assert one["module"] == module, one
    # The command reads the files and gives the same answer.
    for name in ("frozen_layer", "nan_in_one_lane"):
        text = explain(tmp_path / name)
        assert text.splitlines()[0] == found[name]["finding"].replace("step 50:", "step: 50:"), text
        assert "  where: module middle\n" in text
        assert "PrecisionDebugger(step=[\"49-51\"]" in text
        assert len(text.splitlines()) <= 10


def test_healthy_trainings_of_other_models_give_no_alarm(tmp_path: Path) -> None:
    found = run_cases(tmp_path, *HEALTHY)
    assert {name: one["finding"] for name, one in found.items()} == dict.fromkeys(HEALTHY)
    assert explain(tmp_path / "transformer").startswith("nothing went wrong in steps ")


TWO_RANKS = PROLOGUE + """
from plumbline.pytorch import black_box
from torch.nn.parallel import DistributedDataParallel
join()
def train(case, combines):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    wrapped = DistributedDataParallel(model) if combines else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    box = black_box(wrapped, optimizer, sys.argv[4] + "/" + case, budget=None)
    own = torch.Generator().manual_seed(100 + rank)   # data of this rank
    same = torch.Generator().manual_seed(7)           # data that all ranks share
    for step in range(100):
        is_late = step >= 50
        source = (same if is_late else own) if combines else (own if is_late and rank else same)
        x = torch.randn(16, 8, generator=source)
        loss = (wrapped(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert box.finding is None, box.finding
    box.stop()
train("shared_seed", True)
train("other_order", False)
leave()
"""


def test_faults_between_ranks_are_seen_where_the_files_of_all_are_read(tmp_path: Path) -> None:
    run_ranks(tmp_path, TWO_RANKS, tmp_path)
    first = explain(tmp_path / "shared_seed").splitlines()[0]
    assert first.startswith("first bad step: 50, rank 1: ranks 0 and 1 get the same input"), first
    first = explain(tmp_path / "other_order").splitlines()[0]
    assert first.startswith(
        "first bad step: 50, rank 1: ranks 0 and 1 had the same parameters in 51 steps"), first
    answer = json.loads(explain(tmp_path / "other_order", "--json"))
    assert answer["findings"][0]["fault"] == "ranks-diverged"
    assert [one["rank"] for one in answer["ranks"]] == [0, 1]


KILLED = """
import sys, time, torch
from plumbline.pytorch import black_box
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
box = black_box(model, optimizer, sys.argv[1], steps=16, budget=None)
step = 0
while True:
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, flush=True)
    step += 1
    if sys.argv[2] == "raise" and step == 40:
        raise RuntimeError("the data ended")
"""


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "raise"])
def test_the_last_steps_outlast_the_end_of_the_job(tmp_path: Path, how: str) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, tmp_path, how], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        last = -1
        for line in child.stdout:
            last = int(line) if line.strip().isdigit() else last
            if last == 45 and how != "raise":
                child.send_signal(getattr(signal, how))
        child.wait(timeout=60)
        expected = {"SIGKILL": -signal.SIGKILL, "SIGTERM": -signal.SIGTERM, "raise": 1}[how]
        assert child.returncode == expected
    answer = json.loads(explain(tmp_path, "--json"))
    [rank] = answer["ranks"]
    ended = {"SIGKILL": None, "SIGTERM": "SIGTERM", "raise": "RuntimeError: the data ended"}[how]
    assert rank["ended"] == ended
    assert rank["interrupted"] == (ended is not None)
    first = explain(tmp_path).splitlines()[0]
    assert first.startswith(f"ended by {ended}; before, nothing went wrong in steps " if ended
                            else "nothing went wrong in steps "), first
    assert first.endswith("killed, or still running") == (ended is None), first
    # At most the step in flight and the one that is being written are missing.
    assert rank["last_step"] >= last - 2
    assert rank["last_step"] - rank["first_step"] >= 15
    assert answer["findings"] == []


LIBRARIES = """
import sys, warnings
warnings.simplefilter("ignore")
import torch, lightning
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from plumbline.pytorch import black_box
data = [{"input_ids": torch.randint(0, 30, (6,)), "labels": torch.tensor(i % 2)} for i in range(8)]
model = BertForSequenceClassification(BertConfig(
    vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=16))
trainer = Trainer(model, TrainingArguments(
    sys.argv[1] + "/out", max_steps=6, per_device_train_batch_size=2, report_to=[],
    use_cpu=True, disable_tqdm=True), train_dataset=data)
added = black_box(trainer, path=sys.argv[1] + "/transformers", budget=None)
trainer.train()
assert added.box.finding is None

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        return self.inner(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
trainer = lightning.Trainer(max_steps=6, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, accelerator="cpu")
added = black_box(trainer, path=sys.argv[1] + "/lightning", budget=None)
trainer.fit(Module(), torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=2))
assert added.box.finding is None
before = torch.Tensor.backward
try:
    black_box(model)
except ValueError as error:
    print(error)
assert torch.Tensor.backward is before
"""


def test_one_line_with_the_trainers_of_libraries(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIBRARIES, tmp_path], text=True,
                          capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "black_box: optimizer is None" in done.stdout
    for name in ("transformers", "lightning"):
        [rank] = json.loads(explain(tmp_path / name, "--json"))["ranks"]
        assert rank["last_step"] == 5, name
        assert rank["ended"] == "the training ended"


def test_what_is_no_black_box_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "Dec03_21-34-40-rank0-3f9c1a2b"
    directory.mkdir()
    # What a monitor writes is none: its statistics say less, and it ends in another way.
    (directory / "grad_reduced_0-1.csv").write_text(
        "vpp_stage,name,step,norm\n0,fc.weight,0,1.5\n0,fc.weight,1,nan\n")
    done = subprocess.run([PLUMB, "explain", str(tmp_path)], text=True, capture_output=True,
                          check=False)
    assert done.returncode == 3
    assert "no directory in it is one of a black box" in done.stderr
    assert "plumb trend" in done.stderr


HABITS = """
import sys, torch
from plumbline.pytorch import black_box
torch.set_num_threads(1)
out = sys.argv[1]

class Training:
    def __init__(self, name, budget=None):
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01)
        self.called = self.model
        self.box = black_box(self.model, self.optimizer, f"{out}/{name}", budget=budget)
    def run(self, steps, scale=1.0, stepping=True):
        for _ in range(steps):
            self.optimizer.zero_grad()
            (self.called(torch.randn(8, 4)).square().mean() * scale).backward()
            if stepping:
                self.optimizer.step()

def replaced():
    one = Training("replaced")
    one.run(40)
    one.optimizer = torch.optim.Adam(one.model.parameters(), 0.01)
    one.run(20)
    one.run(10, float("nan"))
    return one
def unstepped():
    one = Training("unstepped")
    one.run(40)
    one.run(70, float("nan"), stepping=False)
    return one
def skipped():
    one = Training("skipped", budget=1e-6)
    one.run(60)
    return one
def runs():
    for scale in (1.0, float("nan"), 1.0):
        one = Training("runs")
        one.run(30)
        one.run(5, scale)
        one.box.stop()
    return one
def nowhere():
    open(f"{out}/file", "w").close()
    one = Training("file")
    one.run(30)
    one.run(10, float("nan"))
    assert one.box.directory == "" and one.box.first_bad_step == 30, one.box.finding
    return one
def compiled():
    one = Training("compiled")
    one.called = torch.compile(one.model, backend="eager")
    one.run(20)
    return one
for case in (replaced, unstepped, skipped, runs, nowhere, compiled):
    one = case()
    one.box.stop()
    assert not one.model._forward_pre_hooks and not one.optimizer._optimizer_step_pre_hooks
assert not sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
"""


def test_what_was_not_seen_is_never_said_to_be_fine(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", HABITS, tmp_path], text=True,
                          capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    said = done.stdout + done.stderr
    first = {name: explain(tmp_path / name).splitlines()[0]
             for name in ("replaced", "unstepped", "skipped", "runs", "compiled")}
    assert first["replaced"] == "first bad step: 60: the loss holds NaN (non-finite)"
    assert "it is followed from step 42 on, steps 40 to 41 were not seen" in said
    assert first["unstepped"].startswith(
        "not certain: nothing went wrong in steps 0 to 39; but the optimizer made no step any more "
        "after step 39, while the model was called 70 more times"), first
    assert said.count("the optimizer made no step after step 39") == 1
    assert "of 60 steps that were looked at (0 to " in first["skipped"], first
    # The newest of three runs has no fault, the one before has.
    assert first["runs"] == "first bad step: 30: the loss holds NaN (non-finite)", first
    assert "3 runs of one rank" in explain(tmp_path / "runs")
    assert first["compiled"] == "nothing went wrong in steps 0 to 19"
    assert "file: cannot create directory" in said
