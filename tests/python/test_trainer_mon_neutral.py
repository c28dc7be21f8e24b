"""A watched training is bit for bit the training that nobody watches, and leaves nothing behind."""

from __future__ import annotations

import gc
import itertools
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor_training import EVERYTHING, directory_of, names_in, watched
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """Dropout, BatchNorm, ReLU in place, several users of one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.2)
        self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 8))

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> tuple[torch.Tensor, dict[str, Any]]:
        y = self.norm(x)
        x = x + self.drop(self.q(y) * self.k(y) * scale)
        y = self.mlp(x)
        y += x
        y.mul_(0.5)
        return y, {"aux": y.mean()}


class Net(nn.Module):
    """Two checkpointed blocks, one shared layer, a tied head, an unused parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.blocks = nn.ModuleList([Block(), Block(), Block()])
        self.shared = nn.Linear(8, 8)
        self.unused = nn.Parameter(torch.ones(3))
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.shared(self.embed(ids))
        x, _ = checkpoint(self.blocks[0], x, use_reentrant=True)
        x, _ = checkpoint(self.blocks[1], x, 0.5, use_reentrant=False)
        x, extra = self.blocks[2](self.shared(x), scale=0.25)
        return self.head(functional.dropout(x, 0.1, self.training)) + extra["aux"]


def state_of(net: nn.Module, optimizers: list[torch.optim.Optimizer]) -> list[Any]:
    """Everything that a monitor could have left on the objects."""
    found: list[Any] = [torch.optim.Adam.step, torch.optim.LBFGS.step, torch.Tensor.backward]
    for module in net.modules():
        found += [sorted(vars(module)), len(module._forward_hooks),
                  len(module._forward_pre_hooks), len(module._backward_hooks)]
    for parameter in net.parameters():
        found += [sorted(vars(parameter)), len(parameter._backward_hooks or {}),
                  len(parameter._post_accumulate_grad_hooks or {})]
    for optimizer in optimizers:
        found += [sorted(vars(optimizer)), len(optimizer._optimizer_step_pre_hooks),
                  len(optimizer._optimizer_step_post_hooks)]
    return found


Trained = tuple[nn.Module, Any]


def steps(main: Trained, other: Trained) -> list[bytes]:
    """The losses of all steps and the parameters at the end."""
    (net, adam), (critic, lbfgs) = main, other
    results = []
    for _ in range(4):
        for _ in range(2):  # gradients are accumulated
            ids = torch.randint(0, 16, (6,))
            loss = functional.cross_entropy(net(ids), ids)
            (loss / 2).backward()
            results.append(loss.detach().numpy().tobytes())
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
        data = net(ids).detach()

        def closure(data: torch.Tensor = data) -> torch.Tensor:
            lbfgs.zero_grad()
            loss = critic(data).square().mean()
            loss.backward()
            return loss
        results.append(lbfgs.step(closure).detach().numpy().tobytes())
    for parameter in itertools.chain(net.parameters(), critic.parameters()):
        results.append(parameter.detach().numpy().tobytes())
    return results


def trained(directory: Path | None) -> list[bytes]:
    """Losses and parameters of a training of two optimizers, watched or not."""
    torch.set_num_threads(1)
    torch.manual_seed(3)
    net, critic = Net(), nn.Linear(16, 1)
    adam = torch.optim.AdamW(net.parameters(), lr=1e-2)
    lbfgs = torch.optim.LBFGS(critic.parameters(), max_iter=3)
    before = state_of(net, [adam, lbfgs])
    if directory is None:
        return steps((net, adam), (critic, lbfgs))
    with watched(directory, **EVERYTHING) as monitor:
        monitor.set_monitor(net, grad_acc_steps=2, optimizer=adam)
        monitor.set_monitor(critic, optimizer=lbfgs)
        results = steps((net, adam), (critic, lbfgs))
    assert state_of(net, [adam, lbfgs]) == before
    held = weakref.ref(net)
    del net, adam, before
    gc.collect()
    assert held() is None
    return results


def test_bit_for_bit(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    assert trained(tmp_path) == trained(None)
    assert len(names_in(directory_of(tmp_path))) == 4 * 8 - 2  # no moments at the first step
    text = "".join(capfd.readouterr())
    assert "stops watching" not in text and "hooks_failed" not in text, text
    assert text.count("grad is None: unused") == 1


class Hostile(nn.Module):
    """Raises wherever somebody looks closer."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> Any:
        class Strange(torch.Tensor):
            @classmethod
            def __torch_function__(cls, *_: Any, **__: Any) -> Any:
                raise RuntimeError("do not look")
        strange = torch.ones(2).as_subclass(Strange)
        return {"sum": (x * self.w).sum(), "strange": strange}


class NoHooks:
    """An optimizer that is no torch.optim.Optimizer, as wrappers of frameworks are."""

    def __init__(self, parameters: Any) -> None:
        self.optimizer = torch.optim.Adam(parameters)

    def step(self) -> str:
        self.optimizer.step()
        return "stepped"


def test_errors_stay_inside(tmp_path: Path) -> None:
    model = Hostile()
    optimizer = NoHooks(model.parameters())
    with watched(tmp_path, **EVERYTHING, all_elements=True) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        assert "step" in vars(optimizer)
        for _ in range(3):
            model(torch.ones(2))["sum"].backward()
            assert optimizer.step() == "stepped"
    assert "step" not in vars(optimizer) and not model._forward_hooks
    assert {"exp_avg_1-1.csv", "actv_2-2.csv"} <= set(
        names_in(directory_of(tmp_path)))
    # A directory that is gone: the training goes on.
    with watched(tmp_path / "gone", **EVERYTHING) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        path = directory_of(tmp_path / "gone")
        for one in path.iterdir():
            one.unlink()
        path.rmdir()
        for _ in range(2):
            model(torch.ones(2))["sum"].backward()
            assert optimizer.step() == "stepped"
