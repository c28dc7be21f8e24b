"""TrainerMon's features of single layers against NumPy in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from monitor_training import cells, directory_of, names_in, watched
from torch import nn

HEADERS = {
    "attention_hook": "vpp_stage,name,step,micro_step,entropy,softmax_max",
    "linear_hook": "vpp_stage,name,step,sr,kernel_norm",
    "moe_router_weight_hook": "vpp_stage,name,step,router_weight_similarity",
    "moe_router_logit_hook": "vpp_stage,name,step,micro_step,per_token_expert_entropy"}


class Core(nn.Module):
    """Takes Q and K."""

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return torch.einsum("sbhd,tbhd->sbht", q, k)


class Model(nn.Module):
    """Attention whose keys are longer than its queries, and a router."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.fc = nn.Embedding(7, 8), nn.Linear(8, 8)
        self.core, self.router = Core(), nn.Linear(8, 4, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.fc(self.embed(tokens))
        heads = x.reshape(*x.shape[:2], 2, 4)
        return self.core(heads[:3], heads).square().sum() + self.router(x).square().sum()


TARGETS = {"attention_hook": ["0:core"], "linear_hook": [], "moe_router_weight_hook": ["router"],
           "moe_router_logit_hook": ["0:router"]}


def softmax_facts(rows: list[np.ndarray]) -> list[float]:
    """Means over the rows of entropy and largest element of their softmax."""
    entropies, largest = [], []
    for row in rows:
        p = np.exp(row - row.max())
        p /= p.sum()
        entropies.append(-(p[p > 0] * np.log(p[p > 0])).sum())
        largest.append(p.max())
    return [float(np.mean(entropies)), float(np.mean(largest))]


def attention(q: np.ndarray, k: np.ndarray) -> list[float]:
    """Of the first head of the first batch."""
    products = q[:, 0, 0] @ k[:, 0, 0].T / np.sqrt(q.shape[-1])
    return softmax_facts([row[:i + 1] for i, row in enumerate(products)])


def similarity(weight: np.ndarray) -> float:
    """Mean cosine of the pairs of rows."""
    unit = weight / np.linalg.norm(weight, axis=1, keepdims=True)
    return float((unit @ unit.T)[np.triu_indices(len(unit), 1)].mean())


def trained(tmp_path: Path, **options: Any) -> tuple[dict[str, Any], Path]:
    """Two steps of two micro-batches; what must be there, and the directory."""
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    truth: dict[str, Any] = {kind: [] for kind in HEADERS}

    def wide(value: torch.Tensor) -> np.ndarray:
        return value.detach().double().numpy().copy()

    model.core.register_forward_pre_hook(
        lambda _, args: truth["attention_hook"].append(attention(*map(wide, args))))
    model.router.register_forward_hook(
        lambda _, __, out: truth["moe_router_logit_hook"].append(
            softmax_facts(list(wide(out).reshape(-1, 4)))[:1]))

    def look(*_: Any) -> None:
        truth["moe_router_weight_hook"].append([similarity(wide(model.router.weight))])
        for layer in (model.fc, model.router):
            matrix = wide(layer.weight)
            truth["linear_hook"].append((np.linalg.norm(matrix), np.linalg.norm(matrix, 2)))

    optimizer.register_step_pre_hook(look)
    with watched(tmp_path, recording_l2_features=True, l2_targets=TARGETS, ndigits=15,
                 step_count_per_record=2, **options) as monitor:
        monitor.set_monitor(model, optimizer=optimizer, grad_acc_steps=2)
        for batch in range(4):
            model(torch.randint(0, 7, (5, 3))).backward()
            if batch % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()
    return truth, directory_of(tmp_path)


@pytest.mark.parametrize("options", [{}, {"xy_distribution": True}])
def test_every_value_is_numpys(tmp_path: Path, options: dict[str, Any]) -> None:
    truth, path = trained(tmp_path, **options)
    kinds = sorted([*HEADERS, *(["actv", "actv_grad"] if options else [])])
    assert names_in(path) == [f"{kind}_0-1.csv" for kind in kinds]
    for kind, header in HEADERS.items():
        first, *rows = cells(path / f"{kind}_0-1.csv")
        assert ",".join(first) == header
        assert len(rows) == len(truth[kind]) == (2 if kind == "moe_router_weight_hook" else 4)
        has_micro = "micro_step" in first
        names = [row[1] for row in rows]
        assert names == {"attention_hook": ["core.attention"] * 4,
                         "linear_hook": ["fc.linear", "router.linear"] * 2}.get(
                             kind, ["router.moe_router"] * len(rows))
        for at, (row, expected) in enumerate(zip(rows, truth[kind], strict=True)):
            values = [float(cell) for cell in row[3 + has_micro:]]
            if has_micro:
                assert row[2:4] == [str(at // 2), str(at % 2)]
            if kind != "linear_hook":
                assert values == pytest.approx(expected, rel=1e-6)
                continue
            frobenius, sigma = expected
            ratio, found = values
            assert 0.6 * sigma < found <= sigma * (1 + 1e-9)  # after three iterations
            assert ratio * found == pytest.approx(frobenius, rel=1e-9)


def test_the_same_training_has_the_same_values(tmp_path: Path) -> None:
    texts = [(trained(tmp_path / name)[1] / "linear_hook_0-1.csv").read_text()
             for name in ("one", "other")]
    assert texts[0] == texts[1]


def test_bad_shapes_are_told(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watched(tmp_path, recording_l2_features=True, l2_targets={
            "attention_hook": ["0:0"], "moe_router_logit_hook": ["0:1"]}) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        for _ in range(2):
            model(torch.ones(4)).sum().backward()
            optimizer.step()
    text = "".join(capfd.readouterr())
    assert text.count("attention_hook: 0.attention has no tensors of the expected form") == 1
    assert text.count("moe_router_logit_hook: 1.moe_router has no tensors of the expected") == 1
    assert cells(directory_of(tmp_path) / "attention_hook_1-1.csv")[1] == [
        "0", "0.attention", "1", "0", "0.0", "0.0"]
    assert names_in(directory_of(tmp_path)) == ["attention_hook_0-0.csv", "attention_hook_1-1.csv"]


def test_faults_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error, watched(
            tmp_path, recording_l2_features=1, l2_targets={"hook": [], "linear_hook": "fc"},
            sa_order="h,b,s,d"):
        pass
    for part in ("4 faults", "recording_l2_features: is 1", "l2_targets.hook", "sa_order: is",
                 'l2_targets.linear_hook: is "fc"'):
        assert part in str(error.value)
