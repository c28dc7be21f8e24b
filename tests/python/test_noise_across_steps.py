"""Steps recorded in directories of their own, the optimizer outside of the window: what noise left
in weights and running means is no alarm in the steps after it, and a fault between two steps is
named (docs/design/verdict.md).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from forked_runs import answer, record_all

import plumbline

STEPS = 4
FAULT_AT = 1  # behind this step
# model and optimizer, task, level: faults
SETUPS = {"adamw-tensor-L1": ("rate", "frozen"), "adamw-statistics-L1": ("rate",),
          "sgd-tensor-L1": ("mean",), "adamw-tensor-L0": (), "adamw-tensor-mix": (),
          "encoder-tensor-L1": ("joint",), "encoder-statistics-L1": ("rate",),
          "heads-tensor-mix": ("element",), "adagrad-tensor-L0": ("element", "scores"),
          "adagrad-statistics-mix": ("frozen", "softmax"),
          "heads-statistics-L1": ("key",), "autocast-tensor-L1": ("element",)}
# Where faults are named that stand beside a key's bias.
CALLS = {"adagrad-tensor-L0-scores": "Module.0.o.Linear.forward.0",
         "heads-statistics-L1-key": "Functional.linear.5.forward",
         "adagrad-statistics-mix-softmax": "Torch.softmax.0.forward"}

# "plain" and "other" round otherwise: two makes of convolution and product.
TRAINING = f"""
step = 0
right_softmax = torch.softmax
def softmax(x, dim):
    result = right_softmax(x, dim)
    if change == "softmax" and step > {FAULT_AT}:
        result.data.numpy()[:] *= 1.004
    return result
torch.softmax = softmax

optimizer, task, level, change = name.split("-")
torch.manual_seed(0)
class Heads(nn.Module):  # keys with a bias of their own
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(64, 64) for _ in range(4))
        self.norm = nn.LayerNorm(64)
        if optimizer == "adagrad":  # modules that return what one inside of them did
            self.k = nn.Sequential(self.k, nn.Identity())
    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        if change == "scores" and step > {FAULT_AT}:
            q = q * 1.004
        return self.norm(x + self.o(torch.softmax(q @ k.mT / 8, -1) @ v))

has_heads = optimizer in ("heads", "adagrad", "autocast")
is_encoder = optimizer == "encoder" or has_heads  # keys' biases have no gradient but rounding
if has_heads:
    model = nn.Sequential(Heads(), Heads(), nn.Flatten(), nn.Linear(64 * 12, 10))
elif is_encoder:
    layer = nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                          nn.Flatten(), nn.Linear(64 * 12, 10))
else:
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                          nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                          nn.Flatten(), nn.Linear(16 * 8 * 8, 10))
if optimizer == "sgd":
    steps = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
elif optimizer == "adagrad":  # each first step is as long as the rate
    steps = torch.optim.Adagrad(model.parameters(), 0.05)
else:
    steps = torch.optim.AdamW(model.parameters(), 1e-3)
torch.backends.mkldnn.enabled = change == "plain"
torch.set_num_threads(1 if change == "plain" else 2)
debugger = PrecisionDebugger(config_path=path)
for step in range({STEPS}):
    torch.manual_seed(100 + step)
    batch = torch.randn(8, 12, 64) if is_encoder else torch.randn(8, 3, 8, 8)
    labels = torch.randint(0, 10, (8,))
    debugger.start(model=model)
    with torch.autocast("cpu", torch.bfloat16, enabled=optimizer == "autocast"):
        answers = model(batch)
    if optimizer == "autocast":  # a view and a cast, which no call records
        answers = answers[:, :].float()
    F.cross_entropy(answers, labels).backward()
    debugger.stop()
    if change == "rate" and step == {FAULT_AT}:
        steps.param_groups[0]["lr"] *= 1.1
    if change == "mean" and step == {FAULT_AT}:
        model[1].running_mean.mul_(1.1)
    steps.step()
    if change == "joint" and step == {FAULT_AT}:
        model[0].layers[1].self_attn.in_proj_bias.data[-1] += 1e-3
    if change == "element" and step == {FAULT_AT}:
        model[1].v.weight.data[3, 5] += 1e-3 if optimizer == "heads" else 0.5
    if change == "key" and step == {FAULT_AT}:
        model[1].k.bias.data[5] += 0.5
    if change == "frozen" and step == {FAULT_AT}:
        (model[1].v if has_heads else model[3]).weight.requires_grad_(False)
    steps.zero_grad()
    debugger.step()
"""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for each setup and change."""
    root = tmp_path_factory.mktemp("across")
    settings = {}
    for setup, faults in SETUPS.items():
        _, task, level = setup.split("-")
        for change in ("plain", "other", *faults):
            settings[f"{setup}-{change}"] = {"task": task, "level": level}
    return record_all(root, TRAINING, settings)


@pytest.mark.parametrize("setup", SETUPS)
def test_noise_of_the_steps_before_is_no_alarm(setup: str, recordings: Path,
                                               tmp_path: Path) -> None:
    golden, other = (recordings / f"{setup}-{change}" / "out" for change in ("plain", "other"))
    last = Path(f"step{STEPS - 1}", "rank")
    assert (golden / last / "dump.json").read_text() != (other / last / "dump.json").read_text()
    assert answer(other, golden, tmp_path)[0].startswith("no wrong call")
    alone = plumbline.compare(other / last, golden / last)
    assert alone.details is None, alone.summary


@pytest.mark.parametrize(("setup", "fault"),
                         [(setup, fault) for setup, faults in SETUPS.items() for fault in faults])
def test_fault_between_two_steps_is_named(setup: str, fault: str, recordings: Path,
                                          tmp_path: Path) -> None:
    golden, wrong = (recordings / f"{setup}-{change}" / "out" for change in ("plain", fault))
    line = answer(wrong, golden, tmp_path)[0]
    call = CALLS.get(f"{setup}-{fault}", "")
    assert line.startswith(f"first wrong call: step {FAULT_AT + 1} rank 0 {call}"), line
