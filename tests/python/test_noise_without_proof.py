"""Recordings of results alone, or of forward calls alone: a key's bias, whose gradient is rounding,
moves otherwise behind an optimizer step. Nothing proves that it is no fault, so that the answer is
incomplete; no call is named for it, and a fault beside it is (docs/design/verdict.md).
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from forked_runs import answer, record_all

STEPS = 4
FAULT_AT = 2  # behind this step
# task, level, data_mode: the call that the fault is named at
SETUPS = {"tensor-L1-output": "Functional.linear.6.forward",
          "tensor-L0-output": "Module.1.v.Linear.forward.0",
          # Four numbers do not tell the values' weight from the keys' bias before the softmax.
          "statistics-L1-output": "Tensor.__matmul__.3.forward",
          "tensor-L1-forward": "Functional.linear.6.forward",
          "tensor-L0-forward": "Module.1.v.Linear.forward.0",
          "statistics-mix-forward": "Functional.linear.6.forward"}

# Where products are rounded as without AVX-512 (docs/design/verdict.md).
NAMED_LATE_WITHOUT_AVX512 = {"statistics-L1-output"}

# "plain" and "other" round otherwise; "fault" does so as well.
TRAINING = f"""
change = name.split("-")[-1]
torch.manual_seed(0)
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(64, 64) for _ in range(4))
        self.norm = nn.LayerNorm(64)
    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        return self.norm(x + self.o(torch.softmax(q @ k.mT / 8, -1) @ v))

model = nn.Sequential(Heads(), Heads(), nn.Flatten(), nn.Linear(64 * 12, 10))
steps = torch.optim.Adam(model.parameters(), 1e-3)
torch.backends.mkldnn.enabled = change == "plain"
torch.set_num_threads(1 if change == "plain" else 2)
debugger = PrecisionDebugger(config_path=path)
for step in range({STEPS}):
    torch.manual_seed(100 + step)
    debugger.start(model=model)
    F.cross_entropy(model(torch.randn(8, 12, 64)), torch.randint(0, 10, (8,))).backward()
    debugger.stop()
    steps.step()
    if change == "fault" and step == {FAULT_AT}:
        model[1].v.weight.data[3] += 0.05
    steps.zero_grad()
    debugger.step()
"""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for each setup and change."""
    root = tmp_path_factory.mktemp("unproven")
    settings = {}
    for setup in SETUPS:
        task, level, mode = setup.split("-")
        for change in ("plain", "other", "fault"):
            settings[f"{setup}-{change}"] = {"task": task, "level": level,
                                             "data_mode": [mode]}
    return record_all(root, TRAINING, settings)


def answer_of(recordings: Path, setup: str, change: str, output: Path) -> list[str]:
    """What `plumb compare` says of the change."""
    target, golden = (recordings / f"{setup}-{each}" / "out" for each in (change, "plain"))
    return answer(target, golden, output)


@pytest.mark.parametrize("setup", SETUPS)
def test_what_is_not_proven_is_neither_named_nor_passed(setup: str, recordings: Path,
                                                        tmp_path: Path) -> None:
    lines = answer_of(recordings, setup, "other", tmp_path)
    assert lines[0].startswith("not judged completely"), lines
    assert any("0 suspicious, 0 broken" in line for line in lines), lines
    assert any("what would prove that it is rounding was not recorded" in line
               for line in lines), lines


@pytest.mark.parametrize("setup", SETUPS)
def test_fault_beside_it_is_named(setup: str, recordings: Path, tmp_path: Path) -> None:
    if setup in NAMED_LATE_WITHOUT_AVX512 and torch.backends.cpu.get_cpu_capability() == "AVX2":
        pytest.skip("known: without AVX-512 a later call of the step is named")
    lines = answer_of(recordings, setup, "fault", tmp_path)
    named = f"first wrong call: step {FAULT_AT + 1} rank 0 {SETUPS[setup]}"
    assert lines[0].startswith(named), lines
