"""Trainings with a fault from step 50 of 100 on, and healthy ones, each under a black box.

python training_faults.py DIRECTORY CASE ...

Prints one line of JSON per case: its name and what the box found.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from real_trainings import REAL
from torch import nn

from plumbline.pytorch import black_box

FAULT_STEP, STEPS = 50, 100


class Model(nn.Module):
    """Three layers with a normalisation; `narrow` computes in float16 with a scale of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.act = nn.Linear(32, 64), nn.ReLU()
        self.middle, self.act2 = nn.Linear(64, 64), nn.ReLU()
        self.norm, self.narrow = nn.LayerNorm(64), Half()
        self.last = nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.first(x))
        return self.last(self.narrow(self.norm(self.act2(self.middle(x)))))


class Half(nn.Module):
    """A detour over float16."""

    scale = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.half() * self.scale).float() / self.scale


class Training:
    """What a fault may change."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model: Any = Model()
        self.optimizer: Any = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.weights = torch.randn(32, 4)
        self.loss_scale = 1.0
        self.clears = True
        self.kept: Any = None

    def run(self, fault: Callable[[Training, int], None], box: Any) -> None:
        for step in range(STEPS):
            fault(self, step)
            x = torch.randn(64, 32)
            loss = (self.model(x) - x @ self.weights).square().mean() * self.loss_scale
            loss.backward()
            self.optimizer.step()
            if self.clears:
                self.optimizer.zero_grad()


# ---- Faults, each called before every step

def learning_rate(training: Training, step: int) -> None:
    if step == FAULT_STEP:
        training.optimizer.param_groups[0]["lr"] *= 10


def dead_relu(training: Training, step: int) -> None:
    if step == FAULT_STEP:
        with torch.no_grad():
            training.model.middle.bias -= 100


def missing_zero_grad(training: Training, step: int) -> None:
    training.clears = step < FAULT_STEP


def frozen_layer(training: Training, step: int) -> None:
    if step == FAULT_STEP:
        training.model.middle.weight.requires_grad_(False)


def fp16_overflow(training: Training, step: int) -> None:
    if step >= FAULT_STEP:
        training.model.narrow.scale = 1e5


def nan_in_one_lane(training: Training, step: int) -> None:
    def spoil(module: Any, args: Any, output: torch.Tensor) -> torch.Tensor:
        output = output.clone()
        output[:, 3] = float("nan")
        return output

    if step == FAULT_STEP:
        # Before the hooks of the box, as a module that computes it would be.
        handle = training.model.middle.register_forward_hook(spoil)
        training.model.middle._forward_hooks.move_to_end(handle.id, last=False)


def stale_weight(training: Training, step: int) -> None:
    weight = training.model.middle.weight
    if step == 30:
        training.kept = weight.detach().clone()
    if step >= FAULT_STEP:
        with torch.no_grad():
            weight.copy_(training.kept)


def wrong_momentum(training: Training, step: int) -> None:
    if step == FAULT_STEP:
        training.optimizer.state[training.model.middle.weight]["exp_avg"] *= 20


def exploding_norm(training: Training, step: int) -> None:
    if step >= FAULT_STEP:
        with torch.no_grad():
            training.model.norm.weight *= 1.5


def unscaled_loss(training: Training, step: int) -> None:
    training.loss_scale = 1.0 if step < FAULT_STEP else 64.0


FAULTS: dict[str, tuple[Callable[[Training, int], None], str]] = {
    # Name -> what happens, and the module it happens in (empty: the training as a whole).
    "learning_rate": (learning_rate, ""),
    "dead_relu": (dead_relu, "middle"),
    "missing_zero_grad": (missing_zero_grad, ""),
    "frozen_layer": (frozen_layer, "middle"),
    "fp16_overflow": (fp16_overflow, "narrow"),
    "nan_in_one_lane": (nan_in_one_lane, "middle"),
    "stale_weight": (stale_weight, "middle"),
    "wrong_momentum": (wrong_momentum, "middle"),
    "exploding_norm": (exploding_norm, "norm"),
    "unscaled_loss": (unscaled_loss, ""),
}


# ---- Healthy trainings of other models

@contextmanager
def watched(model: Any, optimizer: Any, directory: Path) -> Iterator[Any]:
    box = black_box(model, optimizer, directory, budget=None)
    yield box
    box.stop()


def batches(count: int, *shape: int) -> Iterator[torch.Tensor]:
    for _ in range(count):
        yield torch.randn(*shape)


def train(model: Any, optimizer: Any, directory: Path, loss_of: Callable[[], Any],
          schedule: Any = None) -> Any:
    """A plain loop; returns the box."""
    with watched(model, optimizer, directory) as box:
        for _ in range(STEPS):
            loss_of().backward()
            optimizer.step()
            optimizer.zero_grad()
            if schedule is not None:
                schedule.step()
    return box


def perceptron(directory: Path) -> Any:
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)

    def loss() -> Any:
        x = torch.randn(32, 16)
        return (model(x) - x.sum(1, keepdim=True)).square().mean()

    return train(model, optimizer, directory, loss)


def convolutions(directory: Path) -> Any:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                          nn.Dropout(0.2), nn.Flatten(), nn.Linear(8 * 36, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def loss() -> Any:
        return nn.functional.cross_entropy(model(torch.randn(16, 3, 8, 8)),
                                           torch.randint(0, 5, (16,)))

    return train(model, optimizer, directory, loss)


def recurrent(directory: Path) -> Any:
    model = nn.GRU(8, 16, batch_first=True)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    return train(model, optimizer, directory,
                 lambda: model(torch.randn(8, 12, 8))[0].square().mean())


def transformer(directory: Path) -> Any:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.1, batch_first=True), 2,
                                  enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 20) / (1 + step / 50))

    def loss() -> Any:
        x = torch.randn(8, 10, 16)
        return (model(x) - x.roll(1, 1)).square().mean()

    return train(model, optimizer, directory, loss, schedule)


def embedding(directory: Path) -> Any:
    model = nn.Sequential(nn.Embedding(500, 8), nn.Flatten(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def loss() -> Any:
        ids = torch.randint(0, 500, (16, 4))
        return nn.functional.cross_entropy(model(ids), ids[:, 0] % 4)

    return train(model, optimizer, directory, loss)


def autoencoder(directory: Path) -> Any:
    model = nn.Sequential(nn.Linear(20, 4), nn.GELU(), nn.Linear(4, 20))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-2, total_steps=STEPS + 1)

    def loss() -> Any:
        x = torch.randn(32, 4) @ torch.ones(4, 20)
        return (model(x) - x).square().mean()

    return train(model, optimizer, directory, loss, schedule)


def warm_restarts(directory: Path) -> Any:
    model = nn.Sequential(nn.Linear(10, 20), nn.SiLU(), nn.Linear(20, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 25)
    return train(model, optimizer, directory, lambda: nn.functional.cross_entropy(
        model(torch.randn(32, 10)), torch.randint(0, 3, (32,))), schedule)


def one_batch(directory: Path) -> Any:
    model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = torch.randn(16, 10), torch.randn(16, 1)
    return train(model, optimizer, directory, lambda: (model(x) - y).square().mean())


def convolutions_by_sgd(directory: Path, seed: int) -> Any:
    """Biases in front of a normalisation: their gradients are what rounding leaves."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3),
                          nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    def loss() -> Any:
        x = torch.randn(8, 1, 8, 8)
        target = (x.mean((1, 2, 3)) * 20 + 2.5).clamp(0, 4).long()
        return nn.functional.cross_entropy(model(x), target)

    return train(model, optimizer, directory, loss)


def normalised(directory: Path, habit: str) -> Any:
    """A perceptron with BatchNorm and dropout under SGD, with a habit of training."""
    model = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3),
                          nn.Linear(32, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9,
                                maximize=habit == "maximize")
    schedules = torch.optim.lr_scheduler
    schedule = {"one_cycle": lambda: schedules.OneCycleLR(optimizer, 0.1, total_steps=STEPS + 1),
                "restarts": lambda: schedules.CosineAnnealingWarmRestarts(optimizer, 15),
                }.get(habit, lambda: None)()
    right = torch.randn(20, 5)
    with watched(model, optimizer, directory) as box:
        for x in batches(STEPS, 16, 20):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), (x @ right).argmax(1))
            (-loss if habit == "maximize" else loss).backward()
            if habit == "clip":
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            if schedule is not None:
                schedule.step()
    return box


class Mask(nn.Module):
    """Scores of the future are infinite."""

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        size = scores.shape[-1]
        return scores.masked_fill(torch.ones(size, size).triu(1).bool(), float("-inf"))


class Attention(nn.Module):
    """One head whose masked scores are the output of a module."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.mask, self.outer = nn.Linear(4, 8), Mask(), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x)
        return self.outer((self.mask(x @ x.transpose(1, 2)).softmax(-1) @ x).mean(1))


def masked(directory: Path) -> Any:
    model = Attention()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return train(model, optimizer, directory, lambda: nn.functional.cross_entropy(
        model(torch.randn(8, 5, 4)), torch.randint(0, 5, (8,))))


def clipped_critic(directory: Path) -> Any:
    """Weights that are clamped, a critic that is trained five times as often."""
    maker, judge = nn.Linear(6, 8), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    first = torch.optim.RMSprop(maker.parameters(), lr=5e-4)
    second = torch.optim.RMSprop(judge.parameters(), lr=5e-4)
    with watched(maker, first, directory) as box, watched(judge, second, directory) as other:
        for step, x in enumerate(batches(STEPS, 16, 8)):
            fake = maker(torch.randn(16, 6))
            second.zero_grad()
            (judge(fake.detach()).mean() - judge(x + 1).mean()).backward()
            second.step()
            with torch.no_grad():
                for one in judge.parameters():
                    one.clamp_(-0.01, 0.01)
            if step % 5 == 4:
                first.zero_grad()
                (-judge(fake).mean()).backward()
                first.step()
    return box if box.finding else other


def dropped_layers(directory: Path) -> Any:
    layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-3)

    def loss() -> Any:
        x = torch.randn(16, 16)
        out = layers[0](x)
        for layer in layers[1:]:
            out = out + layer(out) if torch.rand(()) > 0.2 else out
        return (out - x).square().mean()

    return train(layers, optimizer, directory, loss)


def accumulation(directory: Path) -> Any:
    model = nn.Sequential(nn.Linear(10, 20), nn.LeakyReLU(), nn.Linear(20, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with watched(model, optimizer, directory) as box:
        for _ in range(STEPS):
            for x in batches(4, 8, 10):
                ((model(x) - x[:, :2]).square().mean() / 4).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    return box


def mixed_precision(directory: Path) -> Any:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=20)
    with watched(model, optimizer, directory) as box:
        for x in batches(STEPS, 16, 16):
            with torch.autocast("cpu", torch.float16):
                loss = (model(x) - x[:, :4]).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    return box


def adversarial(directory: Path) -> Any:
    maker, judge = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    first = torch.optim.Adam(maker.parameters(), lr=1e-3)
    second = torch.optim.Adam(judge.parameters(), lr=1e-3)
    with watched(maker, first, directory) as box, watched(judge, second, directory) as other:
        for x in batches(STEPS, 16, 8):
            second.zero_grad()
            fake = maker(torch.randn(16, 4))
            (judge(fake.detach()).mean() - judge(x).mean()).backward()
            second.step()
            first.zero_grad()
            (-judge(fake).mean()).backward()
            first.step()
    return box if box.finding else other


def language_model(directory: Path) -> Any:
    import transformers

    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def loss() -> Any:
        ids = torch.randint(0, 64, (4, 16))
        return model(input_ids=ids, labels=ids).loss

    return train(model, optimizer, directory, loss)


HEALTHY: dict[str, Callable[[Path], Any]] = {
    function.__name__: function
    for function in (perceptron, convolutions, recurrent, transformer, embedding, autoencoder,
                     warm_restarts, one_batch, accumulation, mixed_precision, adversarial,
                     language_model, masked, clipped_critic, dropped_layers)
}
HEALTHY |= {f"convolutions_by_sgd_{seed}": functools.partial(convolutions_by_sgd, seed=seed)
            for seed in range(5)}
HEALTHY |= {f"normalised_{habit}": functools.partial(normalised, habit=habit)
            for habit in ("one_cycle", "restarts", "maximize", "clip")}


# ---- Faults of other models

def exploding_convolution(directory: Path) -> Any:
    """The gradient of the first layer doubles at every step."""
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                          nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Flatten(),
                          nn.Linear(128, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    right = torch.randn(16, 5)
    with watched(model, optimizer, directory) as box:
        for step, x in enumerate(batches(STEPS, 16, 16)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.view(16, 1, 4, 4)), (x @ right).argmax(1))
            loss.backward()
            if step >= FAULT_STEP:
                model[0].weight.grad.mul_(2.0 ** (step - FAULT_STEP + 1))
            optimizer.step()
    return box


def masked_until_nan(directory: Path) -> Any:
    """Infinities on purpose, and a weight that is NaN later."""
    model = Attention()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    steps = iter(range(STEPS))

    def loss() -> Any:
        if next(steps) == FAULT_STEP:
            with torch.no_grad():
                model.outer.weight[0, 0] = float("nan")
        return nn.functional.cross_entropy(model(torch.randn(8, 5, 4)),
                                           torch.randint(0, 5, (8,)))

    return train(model, optimizer, directory, loss)


OTHER_FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "exploding_convolution": (exploding_convolution, "0"),
    "masked_until_nan": (masked_until_nan, "outer"),
}


def real(make: Callable[[int], Any], directory: Path) -> Any:
    """150 steps with clipped gradients; returns the box."""
    model, optimizer, schedule, loss_of = make(150)
    with watched(model, optimizer, directory) as box:
        for _ in range(150):
            loss_of().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
    return box


HEALTHY.update({name: functools.partial(real, make) for name, make in REAL.items()})


def main() -> None:
    """Runs the cases that the command line names."""
    torch.set_num_threads(1)
    directory = Path(sys.argv[1])
    for name in sys.argv[2:]:
        torch.manual_seed(1)
        if name in FAULTS:
            training = Training()
            box = black_box(training.model, training.optimizer, directory / name, budget=None)
            training.run(FAULTS[name][0], box)
            box.stop()
        else:
            case = HEALTHY[name] if name in HEALTHY else OTHER_FAULTS[name][0]
            box = case(directory / name)
        print(json.dumps({"name": name, "step": box.first_bad_step, "module": box.module,
                          "finding": box.finding}))


if __name__ == "__main__":
    main()
