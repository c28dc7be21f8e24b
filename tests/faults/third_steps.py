"""More models for the third hold-out: long sums, waves, rivals, learners, and the library's."""

from __future__ import annotations

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from transformers import (
    ConvNextConfig,
    ConvNextForImageClassification,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    FalconConfig,
    FalconForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    Wav2Vec2Config,
    Wav2Vec2ForSequenceClassification,
)

WIDTH = 32


class Waves(nn.Module):
    """Layers that multiply frequencies by complex weights, beside a convolution of one."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Conv1d(2, 16, 1), nn.Conv1d(16, 1, 1)
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(16, 16, 8, 2) / 16)
                                        for _ in range(2))
        self.beside = nn.ModuleList(nn.Conv1d(16, 16, 1) for _ in range(2))

    def multiplied(self, waves: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The low frequencies through their weights, the others dropped."""
        return torch.einsum("bcf,cdf->bdf", waves[..., :8], torch.view_as_complex(weight))

    def layer(self, values: torch.Tensor, number: int) -> torch.Tensor:
        """There, multiplied, back."""
        waves = torch.fft.rfft(values)
        return torch.fft.irfft(self.multiplied(waves, self.weights[number]), n=values.shape[-1])

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """A field of the same length."""
        values = self.enter(values)
        for number in range(2):
            values = functional.gelu(self.layer(values, number) + self.beside[number](values))
        return self.leave(values)


def waves() -> Subject:
    """Five fields of forty-eight places; the loss is relative."""
    model = Waves().train()
    values, wanted = torch.randn(5, 2, 48), torch.randn(5, 1, 48)

    def loss() -> torch.Tensor:
        found = model(values)
        return (torch.norm((found - wanted).flatten(1), dim=1)
                / torch.norm(wanted.flatten(1), dim=1)).mean()
    return Subject(model, loss)


class Long(nn.Module):
    """Sums over tens of thousands of values."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.randn(3, 1))
        self.read = nn.Linear(65536, 6)
        self.chart = nn.Conv1d(3, 4, 9, stride=4)

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """The root of the mean square."""
        return values.pow(2).mean(-1, keepdim=True).sqrt()

    def total(self, values: torch.Tensor) -> torch.Tensor:
        """The sum over all places."""
        return values.sum(-1)

    def likely(self, values: torch.Tensor) -> torch.Tensor:
        """The logarithm of the sum of exponentials."""
        return torch.logsumexp(values, dim=-1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """One number."""
        values = values / self.spread(values) * self.gain
        chart = torch.tanh(self.chart(values[None]))[0]
        scores = self.read(torch.sin(values))
        return (self.likely(values).mean() + self.total(torch.tanh(values)).mean() / 256
                + functional.log_softmax(scores, -1)[:, 2].mean() + chart.mean()
                + torch.var(chart, dim=-1).sum())


def long() -> Subject:
    """Three rows of 65536."""
    model = Long().train()
    values = torch.randn(3, 65536) + 0.1
    return Subject(model, lambda: model(values))


class Scan(nn.Module):
    """Linear attention whose state is a running sum with a fading weight."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, WIDTH)
        self.joint = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH, bias=False) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.leave = nn.Linear(WIDTH, 50)

    def positive(self, values: torch.Tensor) -> torch.Tensor:
        """A feature map above zero."""
        return functional.elu(values) + 1

    def mixed(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Running sums of products, divided by running sums of keys."""
        state = torch.cumsum(key[..., :, None] * value[..., None, :], dim=1)
        total = torch.cumsum(key, dim=1)
        above = torch.einsum("btk,btkv->btv", query, state)
        return above / (query * total).sum(-1, keepdim=True)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Scores of the next word."""
        values = self.words(words)
        for joint, out, norm in zip(self.joint, self.out, self.norms, strict=True):
            query, key, value = joint(norm(values)).chunk(3, dim=-1)
            values = values + out(self.mixed(self.positive(query), self.positive(key), value))
        return self.leave(values)


def scan() -> Subject:
    """Three sentences of twenty words."""
    model = Scan().train()
    words = torch.randint(0, 50, (3, 20))
    return Subject(model, lambda: functional.cross_entropy(model(words)[:, :-1].flatten(0, 1),
                                                           words[:, 1:].flatten()))


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


def _text(model: nn.Module, vocabulary: int, length: int = 18) -> Subject:
    model.eval()
    tokens = torch.randint(3, vocabulary, (2, length))
    return Subject(model, lambda: model(input_ids=tokens, labels=tokens).loss)


def gemma() -> Subject:
    """Scores bounded by tanh, windows, norms with one added to the weight."""
    model = Gemma2ForCausalLM(Gemma2Config(
        vocab_size=80, hidden_size=WIDTH, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, sliding_window=6,
        query_pre_attn_scalar=8, initializer_range=0.2,
        attn_implementation="eager", pad_token_id=0, use_cache=False))
    return _text(model, 80)


def falcon() -> Subject:
    """Scores with a bias by distance, blocks in parallel."""
    model = FalconForCausalLM(FalconConfig(
        vocab_size=80, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, alibi=True,
        new_decoder_architecture=False, parallel_attn=True, multi_query=True, bias=True,
        initializer_range=0.2, attn_implementation="eager", use_cache=False))
    return _text(model, 80)


def deberta() -> Subject:
    """Attention to content and place apart."""
    model = DebertaV2ForMaskedLM(DebertaV2Config(
        vocab_size=80, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, relative_attention=True, pos_att_type=["p2c", "c2p"],
        max_position_embeddings=32, position_biased_input=False, type_vocab_size=0,
        initializer_range=0.2))
    return _text(model, 80)


def wave() -> Subject:
    """Sound through convolutions into a transformer."""
    model = Wav2Vec2ForSequenceClassification(Wav2Vec2Config(
        hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        conv_dim=(16, 16, 16), conv_kernel=(10, 3, 3), conv_stride=(5, 2, 2),
        num_feat_extract_layers=3, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
        classifier_proj_size=16, num_labels=5, attn_implementation="eager"))
    model.eval()
    pieces, labels = torch.randn(3, 800), torch.randint(0, 5, (3,))
    return Subject(model, lambda: model(input_values=pieces, labels=labels).loss)


def pictures() -> Subject:
    """Convolutions in the manner of a transformer."""
    model = ConvNextForImageClassification(ConvNextConfig(
        hidden_sizes=[16, 24, 32], depths=[1, 2, 1], num_stages=3, patch_size=2, num_labels=6,
        layer_scale_init_value=0.5, image_size=32))
    model.eval()
    seen, labels = torch.randn(4, 3, 32, 32), torch.randint(0, 6, (4,))
    return Subject(model, lambda: model(pixel_values=seen, labels=labels).loss)
