"""Models with losses over several parts: preferences, a teacher, rewards, rivals, pairs, clicks."""

from __future__ import annotations

import copy

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional

HEADS = 4
WIDE = 48
WIDTH = 32
WORDS = 80


class Recommend(nn.Module):
    """Ids and numbers to the chance of a click."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50, 16, mode="mean") for _ in range(3))
        self.bottom = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(),
                                    nn.Linear(32, 16))
        self.top = nn.Sequential(nn.Linear(22, 32), nn.LeakyReLU(0.01), nn.Dropout(0.0),
                                 nn.Linear(32, 1))

    def places(self) -> torch.Tensor:
        """Row and column of each pair."""
        return torch.tril_indices(4, 4, offset=-1)

    def pairs(self, parts: list[torch.Tensor]) -> torch.Tensor:
        """The products of every two parts."""
        stacked = torch.stack(parts, dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        rows, columns = self.places()
        return products[:, rows, columns]

    def totals(self, scores: torch.Tensor, users: torch.Tensor) -> torch.Tensor:
        """The sum of the scores of each user; users come more than once."""
        return torch.zeros(7).scatter_add(0, users, scores)

    def forward(self, numbers: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """One score each."""
        dense = self.bottom(numbers)
        parts = [dense, *(bag(ids[:, i]) for i, bag in enumerate(self.bags))]
        return self.top(torch.cat((dense, self.pairs(parts)), dim=1)).squeeze(-1)


def recommend() -> Subject:
    """The recommender in training, with a loss per click and one per user."""
    model = Recommend().train()
    numbers, ids = torch.randn(24, 6).exp(), torch.randint(0, 50, (24, 3, 5))
    clicks, users = (torch.rand(24) < 0.3).float(), torch.randint(0, 7, (24,))
    model.weight = torch.tensor(2.0)
    model.loss = lambda scores: functional.binary_cross_entropy_with_logits(
        scores, clicks, pos_weight=model.weight)

    def loss() -> torch.Tensor:
        scores = model(numbers, ids)
        return model.loss(scores) + 0.1 * model.totals(torch.sigmoid(scores), users).pow(2).mean()

    return Subject(model, loss)


class Towers(nn.Module):
    """Two encoders whose results meet on a sphere."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(20, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 24))
        self.right = nn.Sequential(nn.Linear(14, WIDTH), nn.Mish(), nn.Linear(WIDTH, 24))
        self.scale = nn.Parameter(torch.tensor(2.6593))

    def sphere(self, values: torch.Tensor) -> torch.Tensor:
        """Of length one."""
        return functional.normalize(values, dim=-1)

    def factor(self) -> torch.Tensor:
        """The inverse temperature."""
        return torch.exp(self.scale)

    def labels(self, count: int) -> torch.Tensor:
        """Each belongs to its like."""
        return torch.arange(count)

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """The loss, both ways."""
        a, b = self.sphere(self.left(left)), self.sphere(self.right(right))
        scores = self.factor() * torch.matmul(a, b.t())
        labels = self.labels(len(scores))
        return (functional.cross_entropy(scores, labels)
                + functional.cross_entropy(scores.t(), labels)) / 2


def towers() -> Subject:
    """Twelve pairs."""
    model = Towers().train()
    left, right = torch.randn(12, 20), torch.randn(12, 14)
    return Subject(model, lambda: model(left, right))


class Policy(nn.Module):
    """A clipped step of a policy with its value, over discounted rewards."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.act, self.worth = nn.Linear(10, WIDTH), nn.Linear(WIDTH, 5), nn.Linear(
            WIDTH, 1)
        self.fade, self.clip = 0.9, 0.2

    def returns(self, rewards: torch.Tensor) -> torch.Tensor:
        """Discounted sums from the end."""
        total, found = torch.zeros(len(rewards)), []
        for step in reversed(range(rewards.shape[1])):
            total = rewards[:, step] + self.fade * total
            found.insert(0, total)
        return torch.stack(found, 1)

    def standard(self, values: torch.Tensor) -> torch.Tensor:
        """Mean zero, spread one."""
        return (values - values.mean()) / (values.std() + 1e-8)

    def surrogate(self, ratio: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        """The smaller of both bounds."""
        return -torch.min(ratio * gain, ratio.clamp(1 - self.clip, 1 + self.clip) * gain).mean()

    def forward(self, states: torch.Tensor, acts: torch.Tensor, rewards: torch.Tensor
                ) -> torch.Tensor:
        """The loss."""
        hidden = torch.tanh(self.body(states))
        chances = functional.log_softmax(self.act(hidden), dim=-1)
        worth, returns = self.worth(hidden)[..., 0], self.returns(rewards)
        own = torch.gather(chances, 2, acts[..., None])[..., 0]
        gain = self.standard(returns - worth.detach())
        # The first step after a draw: the ratio is one, its derivative is not zero.
        ratio = torch.exp(own - own.detach())
        spread = -(chances.exp() * chances).sum(-1).mean()
        return (self.surrogate(ratio, gain) + 0.5 * functional.huber_loss(worth, returns, delta=0.7)
                - 0.01 * spread)


def policy() -> Subject:
    """Six games of eight steps."""
    model = Policy().train()
    states, acts, rewards = (torch.randn(6, 8, 10), torch.randint(0, 5, (6, 8)),
                             torch.randn(6, 8))
    return Subject(model, lambda: model(states, acts, rewards))


class Rivals(nn.Module):
    """A maker and a judge whose weights have a spectral norm of one; one step of each."""

    def __init__(self) -> None:
        super().__init__()
        self.make1, self.make2 = nn.Linear(6, WIDTH), nn.Linear(WIDTH, 14)
        self.judge1, self.judge2 = nn.Linear(14, WIDTH), nn.Linear(WIDTH, 1)
        self.register_buffer("side", functional.normalize(torch.randn(WIDTH), dim=0))
        self.rate, self.rounds = 0.1, 3

    def made(self, noise: torch.Tensor) -> torch.Tensor:
        """False examples."""
        return torch.tanh(self.make2(functional.leaky_relu(self.make1(noise), 0.2)))

    def strength(self, weight: torch.Tensor) -> torch.Tensor:
        """The largest singular value, by powers."""
        left = self.side
        for _ in range(self.rounds):
            right = functional.normalize(torch.mv(weight.t(), left), dim=0)
            left = functional.normalize(torch.mv(weight, right), dim=0)
        return torch.dot(left, torch.mv(weight, right))

    def judged(self, values: torch.Tensor) -> torch.Tensor:
        """How true they look."""
        weight = self.judge1.weight / self.strength(self.judge1.weight)
        hidden = functional.linear(values, weight, self.judge1.bias)
        return self.judge2(functional.leaky_relu(hidden, 0.2))

    def step(self, error: torch.Tensor) -> None:
        """Plain gradient descent of the judge."""
        members = [*self.judge1.parameters(), *self.judge2.parameters()]
        gradients = torch.autograd.grad(error, members)
        with torch.no_grad():
            for member, gradient in zip(members, gradients, strict=True):
                member.sub_(self.rate * gradient)

    def forward(self, true: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """The judge learns, then the maker's loss."""
        false = self.made(noise)
        self.step((functional.relu(1 - self.judged(true))
                   + functional.relu(1 + self.judged(false.detach()))).mean())
        return functional.softplus(-self.judged(false)).mean()


def rivals() -> Subject:
    """Eighteen examples of each kind."""
    model = Rivals().train()
    true, noise = torch.randn(18, 14), torch.randn(18, 6)
    return Subject(model, lambda: model(true, noise))


class Layer(nn.Module):
    """One layer with causal attention by the fused kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDE), nn.LayerNorm(WIDE)
        self.joint, self.out = nn.Linear(WIDE, 3 * WIDE), nn.Linear(WIDE, WIDE)
        self.up, self.down = nn.Linear(WIDE, 2 * WIDE), nn.Linear(2 * WIDE, WIDE)

    def parts(self, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Query, key and value."""
        return self.joint(values).chunk(3, dim=-1)

    def heads(self, values: torch.Tensor) -> torch.Tensor:
        """[batch, head, tokens, width of a head]."""
        return values.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def attended(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
                 ) -> torch.Tensor:
        """Each token looks at those before it."""
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    def active(self, values: torch.Tensor) -> torch.Tensor:
        """Of the feed-forward part."""
        return functional.gelu(values)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Attention, then feed-forward."""
        mixed = self.attended(*(self.heads(part) for part in self.parts(self.norm1(values))))
        values = values + self.out(mixed.transpose(1, 2).flatten(2))
        return values + self.down(self.active(self.up(self.norm2(values))))


class Decoder(nn.Module):
    """A small language model."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(WORDS, WIDE), nn.Embedding(32, WIDE)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDE), nn.Linear(WIDE, WORDS, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits."""
        values = self.embed(tokens) + self.place(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            values = layer(values)
        return self.head(self.norm(values))


class Preference(nn.Module):
    """Direct preference optimisation against a frozen reference."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = Decoder(2)
        self.reference = copy.deepcopy(self.policy).requires_grad_(False)
        with torch.no_grad():
            for p in self.policy.parameters():
                p += 0.02 * torch.randn_like(p)
        self.beta = 0.3

    def logs(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The logarithm of the chance of each target."""
        return torch.gather(functional.log_softmax(logits, dim=-1), 2,
                            targets[..., None]).squeeze(-1)

    def shifted(self, tokens: torch.Tensor, answer: torch.Tensor
                ) -> tuple[torch.Tensor, torch.Tensor]:
        """What each place must foretell, and whether it counts."""
        return tokens[:, 1:], answer[:, 1:]

    def total(self, logs: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        """Of the words of the answer."""
        return (logs * answer).sum(-1)

    def chances(self, model: nn.Module, tokens: torch.Tensor, answer: torch.Tensor
                ) -> torch.Tensor:
        """Of whole answers."""
        targets, counted = self.shifted(tokens, answer)
        return self.total(self.logs(model(tokens)[:, :-1], targets), counted)

    def better(self, policy: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
        """How much more the first half gained than the second."""
        good, bad = torch.sub(policy, reference).chunk(2)
        return torch.sub(good, bad)

    def forward(self, tokens: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        """The loss; the first half of the batch is preferred."""
        with torch.no_grad():
            reference = self.chances(self.reference, tokens, answer)
        policy = self.chances(self.policy, tokens, answer)
        return -functional.logsigmoid(self.beta * self.better(policy, reference)).mean()


def dpo() -> Subject:
    """Three pairs of answers."""
    model = Preference().train()
    tokens = torch.randint(0, WORDS, (6, 18))
    tokens[3:, :6] = tokens[:3, :6]
    lengths = torch.tensor([18, 14, 16, 13, 18, 15])
    places = torch.arange(18)
    answer = ((places >= 6) & (places < lengths[:, None])).float()
    return Subject(model, lambda: model(tokens, answer))


class Distill(nn.Module):
    """A small student of a larger teacher."""

    def __init__(self) -> None:
        super().__init__()
        self.student = Decoder(1)
        self.teacher = Decoder(2).requires_grad_(False)
        self.temperature, self.share, self.reduction = 3.0, 0.3, "batchmean"

    def softened(self, logits: torch.Tensor) -> torch.Tensor:
        """Over the temperature, one row for each word."""
        return (logits / self.temperature).flatten(0, 1)

    def soft(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        """How far the student is from the teacher."""
        return functional.kl_div(functional.log_softmax(self.softened(student), dim=-1),
                                 functional.softmax(self.softened(teacher), dim=-1),
                                 reduction=self.reduction)

    def hard(self, logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """How far the student is from the text."""
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    def both(self, soft: torch.Tensor, hard: torch.Tensor) -> torch.Tensor:
        """The weighted sum."""
        return soft * (self.temperature ** 2) * (1 - self.share) + hard * self.share

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The loss."""
        with torch.no_grad():
            teacher = self.teacher(tokens)
        student = self.student(tokens)
        return self.both(self.soft(student, teacher), self.hard(student, tokens))


def distill() -> Subject:
    """Three texts of sixteen words."""
    model = Distill().train()
    tokens = torch.randint(0, WORDS, (3, 16))
    return Subject(model, lambda: model(tokens))
