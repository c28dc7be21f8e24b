"""Models of sound and speech."""

from __future__ import annotations

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from transformers import (
    Wav2Vec2Config,
    Wav2Vec2ForSequenceClassification,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

HEADS = 4
WIDE = 48
WIDTH = 32
WORDS = 80


class Sound(nn.Module):
    """Gated dilated convolutions, halved and made longer again."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, 16, 7, padding=3)
        self.gated = nn.ModuleList(nn.Conv1d(16, 32, 3, padding=2 ** i, dilation=2 ** i)
                                   for i in range(3))
        self.norm = nn.InstanceNorm1d(16, affine=True)
        self.longer = nn.ConvTranspose1d(16, 8, 4, stride=2, padding=1)
        self.leave = nn.Conv1d(8, 1, 5, padding=2)

    def gate(self, both: torch.Tensor) -> torch.Tensor:
        """tanh of one half, sigmoid of the other."""
        value, gate = both.chunk(2, dim=1)
        return torch.tanh(value) * torch.sigmoid(gate)

    def halved(self, values: torch.Tensor) -> torch.Tensor:
        """The larger of two neighbours."""
        return functional.max_pool1d(values, 2)

    def joined(self, values: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        """The residual connection."""
        return values + change

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        """Sound of the same length."""
        values = self.enter(sound)
        for layer in self.gated:
            values = self.joined(values, self.gate(layer(values)))
        return self.leave(functional.relu(self.longer(self.halved(self.norm(values)))))


def sound() -> Subject:
    """Four pieces of sound and a loss that spares small errors."""
    model = Sound().train()
    pieces, wanted = torch.randn(4, 1, 64), torch.randn(4, 1, 64)
    return Subject(model, lambda: functional.smooth_l1_loss(model(pieces), wanted, beta=0.3))


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


def whisper() -> Subject:
    """Sound to text: convolutions, an encoder, a decoder that looks at it."""
    model = WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=WORDS, num_mel_bins=12, encoder_layers=2, decoder_layers=2, d_model=WIDE,
        encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=96,
        decoder_ffn_dim=96, max_source_positions=16, max_target_positions=24, init_std=0.1,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        attn_implementation="eager")).eval()
    sound, tokens = torch.randn(2, 12, 32), torch.randint(3, WORDS, (2, 10))
    return Subject(model, lambda: model(input_features=sound, labels=tokens, use_cache=False).loss)


class Transduce(nn.Module):
    """Sound to labels by a lattice of blanks and labels."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(10, WIDTH, 3, stride=2, padding=1)
        self.norm, self.wide = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.deep = nn.Conv1d(WIDTH, WIDTH, 5, padding=2, groups=WIDTH)
        self.norm_deep, self.narrow = nn.GroupNorm(4, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.embed = nn.Embedding(12, WIDTH)
        self.last, self.before = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.of_sound = nn.Linear(WIDTH, 40)
        self.of_labels = nn.Linear(WIDTH, 40, bias=False)
        self.out = nn.Linear(40, 12)
        self.blank = 0

    def heard(self, sound: torch.Tensor) -> torch.Tensor:
        """Convolutions along time."""
        values = functional.relu(self.enter(sound)).transpose(1, 2)
        inner = functional.glu(self.wide(self.norm(values)), dim=-1).transpose(1, 2)
        inner = functional.silu(self.norm_deep(self.deep(inner))).transpose(1, 2)
        return values + self.narrow(inner)

    def history(self, labels: torch.Tensor) -> torch.Tensor:
        """The labels before each place."""
        return functional.pad(labels, (1, 0), value=self.blank)

    def said(self, labels: torch.Tensor) -> torch.Tensor:
        """From the last label and the one before it."""
        values = self.embed(self.history(labels))
        return torch.tanh(self.last(values) + self.before(functional.pad(
            values, (0, 0, 1, 0))[:, :-1]))

    def together(self, sound: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Every frame with every history."""
        return torch.tanh(self.of_sound(sound)[:, :, None] + self.of_labels(labels)[:, None])

    def logs(self, scores: torch.Tensor) -> torch.Tensor:
        """Logarithms of chances."""
        return functional.log_softmax(scores, dim=-1)

    def either(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Two ways to the same place."""
        return torch.logaddexp(one, other)

    def sideways(self, label: torch.Tensor, frame: int, place: int) -> torch.Tensor:
        """The label before a place, said in a frame."""
        return label[:, frame, place - 1]

    def ended(self, ways: torch.Tensor, blank: torch.Tensor) -> torch.Tensor:
        """Every way ends with a blank."""
        return ways + blank[:, -1, -1]

    def total(self, blank: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        """The logarithm of the chance of all ways through the lattice."""
        frames, places = blank.shape[1:]
        before: list[torch.Tensor] = []
        for frame in range(frames):
            row: list[torch.Tensor] = []
            for place in range(places):
                ways = []
                if frame:
                    ways.append(before[place] + blank[:, frame - 1, place])
                if place:
                    ways.append(row[-1] + self.sideways(label, frame, place))
                row.append(self.either(*ways) if len(ways) == 2 else
                           ways[0] if ways else torch.zeros_like(blank[:, 0, 0]))
            before = row
        return self.ended(before[-1], blank)

    def forward(self, sound: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss."""
        logs = self.logs(self.out(self.together(self.heard(sound), self.said(labels))))
        label = torch.gather(logs[:, :, :-1], 3, labels[:, None, :, None].expand(
            -1, logs.shape[1], -1, -1)).squeeze(-1)
        return -self.total(logs[..., self.blank], label).mean()


def transduce() -> Subject:
    """Four sounds of six frames, three labels each."""
    model = Transduce().train()
    sound, labels = torch.randn(4, 10, 12), torch.randint(1, 12, (4, 3))
    return Subject(model, lambda: model(sound, labels))
