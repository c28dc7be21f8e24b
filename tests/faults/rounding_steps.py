"""Trainings in which some gradients are rounding alone: a softmax forgets the bias of its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from torch.optim import (
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    NAdam,
    Optimizer,
    RMSprop,
    Rprop,
)

WIDTH = 16
RATE = 1e-3


class Lion(Optimizer):
    """The sign of a mean of gradients."""

    def __init__(self, params: Iterable[nn.Parameter]) -> None:
        super().__init__(params, {})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            kept = self.state[p].setdefault("kept", torch.zeros_like(p))
            p.add_(kept.lerp(p.grad, 0.1).sign_(), alpha=-RATE)
            kept.lerp_(p.grad, 0.01)


class Averaged(Optimizer):
    """Weights that follow others, which SGD moves."""

    def __init__(self, params: Iterable[nn.Parameter]) -> None:
        super().__init__(params, {})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            fast = self.state[p].setdefault("fast", p.clone())
            fast.sub_(p.grad, alpha=0.5)
            p.lerp_(fast, 0.5)


class Keyed(nn.Module):
    """One attention, a scaled mixture and a classifier of the means."""

    def __init__(self, is_joint: bool) -> None:
        super().__init__()
        self.enter = nn.Linear(WIDTH, WIDTH)
        self.joint = nn.Linear(WIDTH, 3 * WIDTH) if is_joint else None
        if not is_joint:
            self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.leave = nn.Linear(WIDTH, 4)
        self.parts, self.skipped = 1, ""

    def shares(self, scores: torch.Tensor) -> torch.Tensor:
        """How much each place takes from each."""
        return functional.softmax(scores, dim=-1)

    def scaled(self, values: torch.Tensor) -> torch.Tensor:
        """A product that a case may commute."""
        return values * 2.0

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        values = self.enter(values)
        if self.joint is None:
            query, key, value = self.query(values), self.key(values), self.value(values)
        else:
            query, key, value = self.joint(values).chunk(3, dim=-1)
        shares = self.shares(query @ key.transpose(-1, -2) / 4)
        return self.leave(self.scaled(shares @ value)).mean(1)

    def gradients(self, number: int) -> None:
        """A place for faults: gradients are ready, step `number` follows."""

    def learn(self, number: int, optimizer: Optimizer, values: torch.Tensor,
              classes: torch.Tensor) -> None:
        """One step."""
        self.zero_grad()
        for x, y in zip(values.chunk(self.parts), classes.chunk(self.parts), strict=True):
            (functional.cross_entropy(self(x), y) / self.parts).backward()
        self.gradients(number)
        for name, p in self.named_parameters():
            if name == self.skipped:
                p.grad = None
        optimizer.step()


def _training(rule: Callable[[Iterable[nn.Parameter]], Optimizer], steps: int = 2,
              is_joint: bool = False) -> Subject:
    model = Keyed(is_joint).train()
    values, classes = torch.randn(8, 10, WIDTH), torch.randint(0, 4, (8,))

    def loss() -> torch.Tensor:
        optimizer = rule(model.parameters())
        for number in range(steps):
            model.learn(number, optimizer, values, classes)
        model.zero_grad()
        return functional.cross_entropy(model(values), classes)

    return Subject(model, loss)


RULES: dict[str, Callable[[Iterable[nn.Parameter]], Optimizer]] = {
    "keyadam": lambda p: Adam(p, lr=RATE, foreach=False),
    "keyamsgrad": lambda p: Adam(p, lr=RATE, amsgrad=True, foreach=False),
    "keylion": Lion,
    "keysgd": lambda p: SGD(p, lr=0.1, momentum=0.9, foreach=False),
    "keyaverage": Averaged,
    "keyrprop": lambda p: Rprop(p, lr=RATE, foreach=False),
    "keyadagrad": lambda p: Adagrad(p, lr=RATE, foreach=False),
    "keyadadelta": lambda p: Adadelta(p, lr=0.1, foreach=False),
    "keyrms": lambda p: RMSprop(p, lr=RATE, centered=True, momentum=0.9, foreach=False),
    "keyadamax": lambda p: Adamax(p, lr=RATE, foreach=False),
    "keynadam": lambda p: NAdam(p, lr=RATE, foreach=False),
    "keyfactor": lambda p: Adafactor(p, lr=RATE, foreach=False),
}
JOINT = ("keyadam", "keylion", "keysgd")

MODELS: dict[str, Callable[[], Subject]] = {
    **{name: (lambda rule=rule: _training(rule)) for name, rule in RULES.items()},
    **{name.replace("key", "joint"): (lambda rule=RULES[name]: _training(rule, is_joint=True))
       for name in JOINT},
}
