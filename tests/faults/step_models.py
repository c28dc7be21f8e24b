"""Steps of training: optimisers, mixed and narrow types, adapters, averages."""

from __future__ import annotations

import copy
from typing import Any

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WIDTH = 32
WORDS = 60


class Learner(nn.Module):
    """A small network and everything that one step of its training does."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, WIDTH), nn.Tanh(), nn.LayerNorm(WIDTH),
                                    nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 5))
        self.moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in self.parameters()]
        self.parts, self.limit, self.rate, self.decay = 2, 0.5, 1e-2, 0.1
        self.betas, self.eps, self.smoothing = (0.9, 0.99), 1e-8, 0.1

    def error(self, part: int, values: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """The loss of one part of the batch."""
        wrong = functional.cross_entropy(self.layers(values), classes,
                                         label_smoothing=self.smoothing)
        return wrong / self.parts

    def clipped(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """Gradients whose common norm is at most the limit."""
        norm = torch.stack([g.pow(2).sum() for g in gradients]).sum().sqrt()
        factor = torch.clamp(self.limit / (norm + 1e-6), max=1.0)
        return [g * factor for g in gradients]

    def stepped(self, number: int, place: int, old: torch.Tensor, gradient: torch.Tensor
                ) -> torch.Tensor:
        """The parameter after one AdamW step."""
        first, second = self.moments[place]
        first = first * self.betas[0] + gradient * (1 - self.betas[0])
        second = second * self.betas[1] + gradient * gradient * (1 - self.betas[1])
        self.moments[place] = first, second
        size = self.rate / (1 - self.betas[0] ** number)
        root = second.sqrt() / (1 - self.betas[1] ** number) ** 0.5 + self.eps
        return old * (1 - self.rate * self.decay) - size * first / root

    def forgotten(self, number: int) -> None:
        """Gradients of the step before are dropped."""
        for p in self.parameters():
            p.grad = None

    def taken(self, place: int, p: torch.Tensor, value: torch.Tensor) -> None:
        """The parameter gets its new value."""
        p.copy_(value)

    def learn(self, number: int, values: torch.Tensor, classes: torch.Tensor) -> None:
        """One whole step over all parts."""
        self.forgotten(number)
        for part, (x, y) in enumerate(zip(values.chunk(self.parts), classes.chunk(self.parts),
                                          strict=True)):
            self.error(part, x, y).backward()
        with torch.no_grad():
            gradients = self.clipped([p.grad for p in self.parameters() if p.grad is not None])
            for place, (p, gradient) in enumerate(zip(self.parameters(), gradients, strict=True)):
                self.taken(place, p, self.stepped(number, place, p, gradient))


def train() -> Subject:
    """Two steps, then the loss."""
    model = Learner().train()
    values, classes = torch.randn(3, 16, 12), torch.randint(0, 5, (3, 16))

    def loss() -> torch.Tensor:
        for step in range(2):
            model.learn(step + 1, values[step], classes[step])
        Learner.forgotten(model, 3)
        return functional.cross_entropy(model.layers(values[2]), classes[2])

    return Subject(model, loss)


class Mixed(nn.Module):
    """Blocks under autocast that are computed again in backward."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(10, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.joint = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(3))
        self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.leave = nn.Linear(WIDTH, 6)
        self.dropout = nn.Dropout(0.0)

    def split(self, joint: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Query, key and value of every head."""
        return joint.view(*joint.shape[:2], 3, 4, -1).permute(2, 0, 3, 1, 4).unbind(0)

    def merged(self, mixed: torch.Tensor) -> torch.Tensor:
        """Heads side by side."""
        return mixed.transpose(1, 2).reshape(mixed.shape[0], mixed.shape[2], -1)

    def shares(self, scores: torch.Tensor) -> torch.Tensor:
        """Softmax, which autocast keeps wide."""
        return functional.softmax(scores, dim=-1)

    def block(self, values: torch.Tensor, number: int) -> torch.Tensor:
        """Attention with a residual connection."""
        query, key, value = self.split(self.joint[number](self.norms[number](values)))
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        return values + self.dropout(self.out[number](self.merged(self.shares(scores) @ value)))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Scores."""
        with torch.autocast("cpu", torch.bfloat16):
            values = self.enter(values)
            for number in range(3):
                values = checkpoint(self.block, values, number, use_reentrant=False)
            return self.leave(values.mean(1))


def mixed() -> Subject:
    """Mixed precision with recomputation."""
    model = Mixed().train()
    values, classes = torch.randn(4, 12, 10), torch.randint(0, 6, (4,))
    return Subject(model, lambda: functional.cross_entropy(model(values).float(), classes))


class Adapted(nn.Module):
    """A layer of 8-bit integers with a scale per row, and a narrow adapter beside it."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        weight = torch.randn(after, before) / before ** 0.5
        rows = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("integers", (weight / rows).round().to(torch.int8))
        self.register_buffer("rows", rows)
        self.narrow = nn.Parameter(torch.randn(4, before) / before ** 0.5)
        self.wide = nn.Parameter(torch.randn(after, 4) / 2)
        self.factor = 2.0

    def weight(self, dtype: torch.dtype) -> torch.Tensor:
        """The base weight, widened."""
        return torch.mul(self.integers.to(dtype), self.rows.to(dtype))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Base and adapter."""
        base = functional.linear(values, self.weight(values.dtype))
        inner = functional.linear(values, self.narrow)
        return base + functional.linear(inner, self.wide) * self.factor


class Adapters(nn.Module):
    """Three such layers around root mean square norms."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList((Adapted(16, 40), Adapted(40, 40), Adapted(40, 11)))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Scores."""
        for layer in self.layers[:-1]:
            values = functional.rms_norm(functional.relu(layer(values)), (40,))
        return self.layers[-1](values)


def adapters() -> Subject:
    """In bfloat16."""
    model = Adapters().bfloat16().train()
    values, classes = torch.randn(30, 16).bfloat16(), torch.randint(0, 11, (30,))
    return Subject(model, lambda: functional.cross_entropy(model(values).float(), classes))


class Optimise(nn.Module):
    """A regression whose weights a chosen rule improves twice, with an average of the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, WIDTH), nn.Linear(WIDTH, 3)
        self.rate, self.fade, self.keep, self.parts = 0.02, 0.9, 0.95, 3
        self.rows = torch.zeros(WIDTH)
        self.columns = torch.zeros(16)
        self.drift = torch.zeros(3, WIDTH)
        self.average = self.first.weight.detach().clone()

    def scored(self, values: torch.Tensor) -> torch.Tensor:
        """The network."""
        return self.second(functional.silu(self.first(values)))

    def gathered(self, values: torch.Tensor, wanted: torch.Tensor) -> list[torch.Tensor]:
        """Gradients of the mean loss over micro-batches."""
        total: list[torch.Tensor] = []
        for x, y in zip(values.chunk(self.parts), wanted.chunk(self.parts), strict=True):
            error = functional.mse_loss(self.scored(x), y) / self.parts
            found = torch.autograd.grad(error, [self.first.weight, self.second.weight])
            total = list(found) if not total else [a + b for a, b in zip(total, found, strict=True)]
        return total

    def factored(self, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient over the root of its factored second moment."""
        square = gradient.square() + 1e-30
        self.rows = self.fade * self.rows + (1 - self.fade) * square.mean(1)
        self.columns = self.fade * self.columns + (1 - self.fade) * square.mean(0)
        rows = torch.rsqrt(self.rows / self.rows.mean())
        return gradient * rows[:, None] * torch.rsqrt(self.columns)[None]

    def momentum(self, gradient: torch.Tensor) -> torch.Tensor:
        """The drift with Nesterov's correction."""
        self.drift = self.fade * self.drift + gradient
        return gradient + self.fade * self.drift

    def averaged(self, weight: torch.Tensor) -> torch.Tensor:
        """A little of the new weight in the average."""
        return torch.lerp(self.average, weight, 1 - self.keep)

    def learn(self, values: torch.Tensor, wanted: torch.Tensor) -> None:
        """One step."""
        first, second = self.gathered(values, wanted)
        with torch.no_grad():
            self.first.weight.copy_(self.first.weight - self.rate * self.factored(first))
            self.second.weight.copy_(self.second.weight - self.rate * self.momentum(second))
            self.average = self.averaged(self.first.weight)


def optimise() -> Subject:
    """Two steps and the loss with the averaged weights."""
    model = Optimise().train()
    values, wanted = torch.randn(3, 24, 16), torch.randn(3, 24, 3)

    def loss() -> torch.Tensor:
        for step in range(2):
            model.learn(values[step], wanted[step])
        hidden = functional.silu(functional.linear(values[2], model.average, model.first.bias))
        return functional.mse_loss(model.second(hidden), wanted[2]) + model.scored(
            values[2]).square().mean()
    return Subject(model, loss)


class Narrow(nn.Module):
    """float16 with a scaled loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(24, 24) for _ in range(4))
        self.leave = nn.Linear(24, 5)
        self.scale = 1024.0

    def norm(self, values: torch.Tensor) -> torch.Tensor:
        """Root mean square, computed wide."""
        wide = values.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(values.dtype)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Scores."""
        for layer in self.layers:
            values = values + functional.silu(layer(self.norm(values)))
        return self.leave(values)


def narrow() -> Subject:
    """Forty values; the loss is scaled up."""
    model = Narrow().half().train()
    values, classes = torch.randn(40, 24).half(), torch.randint(0, 5, (40,))
    return Subject(model, lambda: model.scale * functional.cross_entropy(
        model(values).float(), classes))


class Inner(nn.Module):
    """A network judged after an inner step of learning, and ranked by angles."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 20), nn.Linear(20, 6)
        self.rate, self.warmth = 0.3, 0.2

    def angles(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Cosines of all pairs."""
        return functional.normalize(a, dim=-1) @ functional.normalize(b, dim=-1).t()

    def forward(self, near: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
        """The loss with improved weights."""
        weight = self.second.weight
        scores = self.angles(functional.linear(functional.silu(self.first(near)), weight), far)
        error = functional.kl_div(functional.log_softmax(scores / self.warmth, -1),
                                  torch.full(scores.shape, 1 / scores.shape[1]),
                                  reduction="batchmean")
        slope, = torch.autograd.grad(error, weight, create_graph=True)
        scores = self.angles(functional.linear(functional.silu(self.first(near)),
                                               weight - self.rate * slope, self.second.bias), far)
        return functional.cross_entropy(scores / self.warmth, torch.arange(len(near)))


def inner() -> Subject:
    """Ten pairs."""
    model = Inner().train()
    near, far = torch.randn(10, 8), torch.randn(10, 6)
    return Subject(model, lambda: model(near, far))


class Reader(nn.Module):
    """Words to one of six classes, with the attention of the library."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)
        self.classify = nn.Linear(WIDTH, 6)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores."""
        values = self.embed(tokens)
        inner = self.norm1(values)
        values = values + self.attention(inner, inner, inner, need_weights=False)[0]
        values = values + self.down(functional.relu(self.up(self.norm2(values))))
        return self.classify(values.mean(1))


class Tuning(nn.Module):
    """AdamW of the library with clipped gradients and a warm start."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = Reader()
        self.options: dict[str, Any] = {"lr": 2e-3, "betas": (0.9, 0.98), "eps": 1e-6,
                                        "foreach": False}
        self.clip_options: dict[str, Any] = {"max_norm": 0.7, "foreach": False}
        self.decay, self.warm = 0.1, 4
        self.optimizer: Any = None

    def groups(self) -> list[dict[str, Any]]:
        """Biases and norms do not decay."""
        wide = [p for p in self.reader.parameters() if p.dim() > 1]
        thin = [p for p in self.reader.parameters() if p.dim() == 1]
        return [{"params": wide, "weight_decay": self.decay},
                {"params": thin, "weight_decay": 0.0}]

    def prepared(self) -> None:
        """The optimiser."""
        self.optimizer = torch.optim.AdamW(self.groups(), **self.options)

    def rate(self, step: int) -> float:
        """Grows over the first steps."""
        return self.options["lr"] * min(1.0, (step + 1) / self.warm)

    def error(self, tokens: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """The loss."""
        return functional.cross_entropy(self.reader(tokens), classes)

    def stepped(self) -> None:
        """Parameters move."""
        self.optimizer.step()

    def learn(self, step: int, tokens: torch.Tensor, classes: torch.Tensor) -> None:
        """One step."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        self.optimizer.zero_grad()
        self.error(tokens, classes).backward()
        torch.nn.utils.clip_grad_norm_(self.reader.parameters(), **self.clip_options)
        self.stepped()


def tune() -> Subject:
    """Two steps, then the loss."""
    model = Tuning().train()
    tokens, classes = torch.randint(0, WORDS, (3, 8, 10)), torch.randint(0, 6, (3, 8))

    def loss() -> torch.Tensor:
        model.prepared()
        for step in range(2):
            model.learn(step, tokens[step], classes[step])
        model.optimizer.zero_grad()
        return model.error(tokens[2], classes[2])

    return Subject(model, loss)


class Scaled(nn.Module):
    """Autocast, a scaled loss, gradients of several parts of the batch, clipped, momentum."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList((nn.Linear(20, 48), nn.Linear(48, 48), nn.Linear(48, 7)))
        self.norm = nn.LayerNorm(48)
        self.scale, self.parts, self.limit, self.rate, self.momentum = 1024.0, 4, 0.5, 0.1, 0.9
        self.kept: list[torch.Tensor] = []
        self.kind = torch.bfloat16

    def scores(self, values: torch.Tensor) -> torch.Tensor:
        """Of seven classes."""
        values = functional.gelu(self.layers[0](values))
        values = values + functional.gelu(self.layers[1](self.norm(values)))
        return self.layers[2](values)

    def error(self, values: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """The loss, always in full precision."""
        with torch.autocast("cpu", self.kind, enabled=self.kind != torch.float32):
            scores = self.scores(values)
        return functional.cross_entropy(scores.float(), classes)

    def gathered(self, values: torch.Tensor, classes: torch.Tensor) -> None:
        """Gradients of the whole batch, part by part."""
        for x, y in zip(values.chunk(self.parts), classes.chunk(self.parts), strict=True):
            (self.error(x, y) * (self.scale / self.parts)).backward()

    def unscaled(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """As if the loss had not been scaled."""
        return [torch.div(g, self.scale) for g in gradients]

    def clipped(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """Their common norm is at most the limit."""
        norm = torch.linalg.vector_norm(torch.stack(
            [torch.linalg.vector_norm(g) for g in gradients]))
        factor = torch.clamp(self.limit / (norm + 1e-6), max=1.0)
        return [torch.mul(g, factor) for g in gradients]

    def ready(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """First unscaled, then clipped."""
        return self.clipped(self.unscaled(gradients))

    def learn(self, values: torch.Tensor, classes: torch.Tensor) -> None:
        """One step with momentum."""
        self.zero_grad()
        self.gathered(values, classes)
        with torch.no_grad():
            gradients = self.ready([p.grad for p in self.parameters() if p.grad is not None])
            if not self.kept:
                self.kept = [torch.zeros_like(g) for g in gradients]
            self.kept = [torch.add(torch.mul(old, self.momentum), g)
                         for old, g in zip(self.kept, gradients, strict=True)]
            for p, change in zip(self.parameters(), self.kept, strict=True):
                p.sub_(torch.mul(change, self.rate))


def scaled() -> Subject:
    """Two steps, then the loss."""
    model = Scaled().train()
    values, classes = torch.randn(3, 16, 20), torch.randint(0, 7, (3, 16))

    def loss() -> torch.Tensor:
        for step in range(2):
            model.learn(values[step], classes[step])
        model.zero_grad()
        return model.error(values[2], classes[2])

    return Subject(model, loss)


class Twins(nn.Module):
    """Two views of a picture; the teacher is the moving average of the student."""

    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Sequential(nn.Linear(24, 48), nn.BatchNorm1d(48), nn.ReLU(),
                                     nn.Linear(48, 16))
        self.guess = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.keep = 0.95
        self.options: dict[str, Any] = {"lr": 0.05, "momentum": 0.9, "nesterov": True,
                                        "weight_decay": 1e-2, "foreach": False}
        self.optimizer: Any = None

    def distance(self, guess: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Between the directions."""
        return 2 - 2 * functional.cosine_similarity(guess, truth, dim=-1).mean()

    def aim(self, view: torch.Tensor) -> torch.Tensor:
        """What the teacher says; it does not learn from it."""
        with torch.no_grad():
            return self.teacher(view)

    def error(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Both ways."""
        return self.distance(self.guess(self.student(one)), self.aim(other)) \
            + self.distance(self.guess(self.student(other)), self.aim(one))

    def averaged(self, old: torch.Tensor, new: torch.Tensor) -> None:
        """The teacher follows slowly."""
        old.mul_(self.keep).add_(new, alpha=1 - self.keep)

    def follow(self) -> None:
        """All parameters of the teacher."""
        with torch.no_grad():
            for old, new in zip(self.teacher.parameters(), self.student.parameters(),
                                strict=True):
                self.averaged(old, new)

    def learn(self, one: torch.Tensor, other: torch.Tensor) -> None:
        """One step."""
        self.optimizer.zero_grad()
        self.error(one, other).backward()
        self.optimizer.step()
        self.follow()


def twins() -> Subject:
    """Two steps, then the loss."""
    model = Twins().train()
    views = torch.randn(3, 2, 12, 24)

    def loss() -> torch.Tensor:
        model.optimizer = torch.optim.SGD(
            [*model.student.parameters(), *model.guess.parameters()], **model.options)
        for step in range(2):
            model.learn(*views[step])
        model.optimizer.zero_grad()
        return model.error(*views[2])

    return Subject(model, loss)


class Quant(nn.Module):
    """Training for whole numbers of eight bits: rounded forward, straight through backward."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 12, 3, padding=1), nn.Conv2d(12, 12, 3, padding=1)
        self.classify = nn.Linear(12, 6)
        self.low, self.high, self.axes = -127, 127, (1, 2, 3)
        self.ranges = [torch.tensor(1.5), torch.tensor(1.5)]
        self.keep, self.rate, self.momentum = 0.9, 0.05, 0.9
        self.kept: list[torch.Tensor] = []

    def whole(self, values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Multiples of a step."""
        return torch.clamp(torch.round(values / scale), self.low, self.high) * scale

    def straight(self, values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """The same, but its gradient is that of the values."""
        return values + (self.whole(values, scale) - values).detach()

    def weight(self, weight: torch.Tensor) -> torch.Tensor:
        """One step for each output channel."""
        scale = torch.amax(torch.abs(weight.detach()), self.axes, keepdim=True) / self.high
        return self.straight(weight, scale)

    def inner(self, values: torch.Tensor, number: int) -> torch.Tensor:
        """One step for all, which follows the largest value."""
        largest = torch.max(torch.abs(values.detach()))
        self.ranges[number] = self.ranges[number] * self.keep + largest * (1 - self.keep)
        return self.straight(values, self.ranges[number] / self.high)

    def error(self, pictures: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """The loss."""
        values = functional.conv2d(self.inner(pictures, 0), self.weight(self.conv1.weight),
                                   self.conv1.bias, padding=1)
        values = self.inner(functional.relu(values), 1)
        values = functional.conv2d(values, self.weight(self.conv2.weight), self.conv2.bias,
                                   padding=1)
        scores = self.classify(functional.relu(values).mean((2, 3)))
        return functional.cross_entropy(scores, classes)

    def learn(self, pictures: torch.Tensor, classes: torch.Tensor) -> None:
        """One step with momentum."""
        self.zero_grad()
        self.error(pictures, classes).backward()
        with torch.no_grad():
            gradients = [p.grad for p in self.parameters()]
            self.kept = [old * self.momentum + g for old, g in zip(
                self.kept or [torch.zeros_like(g) for g in gradients], gradients, strict=True)]
            for p, change in zip(self.parameters(), self.kept, strict=True):
                p.sub_(change * self.rate)


def quant() -> Subject:
    """Two steps, then the loss."""
    model = Quant().train()
    pictures, classes = torch.randn(3, 6, 3, 8, 8), torch.randint(0, 6, (3, 6))

    def loss() -> torch.Tensor:
        for step in range(2):
            model.learn(pictures[step], classes[step])
        model.zero_grad()
        return model.error(pictures[2], classes[2])

    return Subject(model, loss)


class Lamb(nn.Module):
    """Tied embeddings, an additional loss on the sums, LAMB and an average of the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix = nn.Embedding(40, WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm, self.up = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)
        self.first, self.second, self.eps, self.decay, self.rate = 0.9, 0.98, 1e-6, 0.1, 0.02
        self.keep, self.share = 0.8, 1e-2
        self.moments: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.average: list[torch.Tensor] = []

    def head(self, values: torch.Tensor) -> torch.Tensor:
        """By the embeddings themselves."""
        return functional.linear(values, self.embed.weight)

    def entropy(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The loss, and a share of the squared logarithm of the sums."""
        sums = torch.logsumexp(scores, dim=-1)
        return functional.cross_entropy(scores, targets) + self.share * torch.square(sums).mean()

    def error(self, tokens: torch.Tensor) -> torch.Tensor:
        """Of the next word, from the last two."""
        values = self.embed(tokens)
        values = self.mix(torch.cat((values[:, 1:-1], values[:, :-2]), dim=-1)).flatten(0, 1)
        values = values + self.down(functional.gelu(self.up(self.norm(values))))
        return self.entropy(self.head(values), tokens[:, 2:].flatten())

    def gathered(self, tokens: torch.Tensor) -> None:
        """Gradients of a batch."""
        self.error(tokens).backward()

    def moved(self, number: int, gradient: torch.Tensor, step: int) -> torch.Tensor:
        """The direction of Adam; `step` counts from one."""
        old, old_square = self.moments[number]
        mean = old * self.first + gradient * (1 - self.first)
        square = old_square * self.second + torch.square(gradient) * (1 - self.second)
        self.moments[number] = (mean, square)
        mean, square = mean / (1 - self.first ** step), square / (1 - self.second ** step)
        return mean / (torch.sqrt(square) + self.eps)

    def ratio(self, p: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        """The norm of the parameter over that of its change; one for a parameter of zeros."""
        own = torch.linalg.vector_norm(p)
        return torch.where(own > 0, own / torch.linalg.vector_norm(change), 1.0)

    def change(self, p: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
        """With decay, as long as the parameter."""
        whole = moved + p * self.decay
        return whole * self.ratio(p, whole)

    def averaged(self, old: torch.Tensor, new: torch.Tensor) -> None:
        """Follows slowly."""
        old.mul_(self.keep).add_(new, alpha=1 - self.keep)

    def learn(self, tokens: torch.Tensor, step: int) -> None:
        """One step."""
        self.zero_grad()
        self.gathered(tokens)
        with torch.no_grad():
            for number, p in enumerate(self.parameters()):
                p.sub_(self.change(p, self.moved(number, p.grad, step)) * self.rate)
                self.averaged(self.average[number], p)


def lamb() -> Subject:
    """Two steps, then the loss with the averaged weights."""
    model = Lamb().train()
    tokens = torch.randint(0, 40, (3, 6, 10))
    with torch.no_grad():
        model.embed.weight.mul_(0.3)

    def loss() -> torch.Tensor:
        model.moments = [(torch.zeros_like(p.data), torch.zeros_like(p.data))
                         for p in model.parameters()]
        model.average = [copy.deepcopy(p.data) for p in model.parameters()]
        for step in range(2):
            model.learn(tokens[step], step + 1)
        model.zero_grad()
        with torch.no_grad():
            for p, average in zip(model.parameters(), model.average, strict=True):
                p.copy_(average)
        return model.error(tokens[2])

    return Subject(model, loss)
