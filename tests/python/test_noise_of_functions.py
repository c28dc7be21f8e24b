"""Functions whose rounding is steep, behind products of another kernel: no alarm.
What is wrong beside it is named (docs/design/verdict.md).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from forked_runs import answer, record_all

TASKS = ("tensor", "statistics")
# The call that a gradient of one per cent more is named at.
MODELS = {"ctc": "Tensor.transpose.1.backward", "relu": "", "atan2": "", "angle": ""}

# "plain" and "other" round otherwise: two makes of the product. "fault": a gradient is too large.
TRAINING = """
kind, change = name.split("-")[1:]
torch.backends.mkldnn.enabled = change == "plain"
torch.set_num_threads(1 if change == "plain" else 2)

class Steep(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(20, 48, 5, padding=2), nn.Conv1d(48, 32, 5, padding=2)
    def forward(self, x):
        x = self.second(torch.tanh(self.first(x))).transpose(1, 2)
        if kind == "relu":  # little is left of what it reads
            return F.relu(-((x * 3).sum(-1) ** 4) + 0.1).sum()
        if kind == "atan2":
            return F.silu(torch.atan2(x[..., :16], x[..., 16:]) * 1.3 + 0.1).sum()
        if kind == "angle":
            return F.silu(torch.angle(torch.fft.rfft(x)) * 1.3 + 0.1).sum()
        logarithms = x.log_softmax(-1).transpose(0, 1)
        if change == "fault":
            def enlarge(gradient):  # where no recorder sees it
                gradient.numpy()[:] *= 1.01
            logarithms.register_hook(enlarge)
        lengths = torch.full((4,), 60), torch.full((4,), 15)
        return F.ctc_loss(logarithms, torch.randint(1, 32, (4, 15)), *lengths)

torch.manual_seed(1)
model = Steep()
debugger = PrecisionDebugger(config_path=path)
debugger.start(model=model)
model(torch.randn(4, 20, 60)).backward()
debugger.stop()
debugger.step()
"""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for each task, model and change."""
    root = tmp_path_factory.mktemp("steep")
    settings = {f"{task}-{model}-{change}": {"task": task, "level": "L1"}
                for task in TASKS for model in MODELS for change in ("plain", "other", "fault")
                if change != "fault" or MODELS[model]}
    return record_all(root, TRAINING, settings)


def answer_of(recordings: Path, case: str, change: str, output: Path) -> list[str]:
    """What `plumb compare` says of the change."""
    target, golden = (recordings / f"{case}-{each}" / "out" for each in (change, "plain"))
    return answer(target, golden, output)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("task", TASKS)
def test_rounding_of_steep_functions_is_noise(task: str, model: str, recordings: Path,
                                              tmp_path: Path) -> None:
    lines = answer_of(recordings, f"{task}-{model}", "other", tmp_path)
    assert lines[0].startswith("no wrong call"), lines


@pytest.mark.parametrize("model", [model for model, call in MODELS.items() if call])
@pytest.mark.parametrize("task", TASKS)
def test_wrong_gradient_of_a_steep_function_is_named(task: str, model: str, recordings: Path,
                                                     tmp_path: Path) -> None:
    lines = answer_of(recordings, f"{task}-{model}", "fault", tmp_path)
    assert MODELS[model] in lines[0], lines
