"""Models of pictures: classes, masks, boxes, diffusion."""

from __future__ import annotations

import math

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from transformers import (
    CLIPConfig,
    CLIPModel,
    ConvNextConfig,
    ConvNextForImageClassification,
    SwinConfig,
    SwinForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

HEADS = 4
WIDTH = 32


class Residual(nn.Module):
    """Two convolutions with group norm, and the time in between."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, before), nn.GroupNorm(4, after)
        self.conv1 = nn.Conv2d(before, after, 3, padding=1)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1)
        self.time = nn.Linear(32, after)
        self.skip = nn.Conv2d(before, after, 1)

    def forward(self, values: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """One block."""
        inner = self.conv1(functional.silu(self.norm1(values)))
        inner = inner + self.time(functional.silu(time))[:, :, None, None]
        inner = self.conv2(functional.silu(self.norm2(inner)))
        return self.skip(values) + inner


class Unet(nn.Module):
    """Down and up again, as in diffusion."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.down1, self.down2 = Residual(16, 16), Residual(16, 32)
        self.smaller = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.middle = Residual(32, 32)
        self.up = Residual(48, 16)
        self.result = nn.Conv2d(16, 3, 3, padding=1)

    def clock(self, times: torch.Tensor) -> torch.Tensor:
        """Sines and cosines of the time."""
        angles = times[:, None] * torch.exp(-math.log(10000) * torch.arange(16) / 16)
        return torch.cat((angles.sin(), angles.cos()), dim=-1)

    def larger(self, values: torch.Tensor) -> torch.Tensor:
        """Twice the size."""
        return functional.interpolate(values, scale_factor=2, mode="bilinear", align_corners=False)

    def joined(self, values: torch.Tensor, side: torch.Tensor) -> torch.Tensor:
        """What came up beside what was kept on the way down."""
        return torch.cat((values, side), dim=1)

    def forward(self, pictures: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """The noise in the picture."""
        time = self.clock(times)
        side = self.down1(self.stem(pictures), time)
        values = self.middle(self.down2(self.smaller(side), time), time)
        return self.result(functional.silu(self.up(self.joined(self.larger(values), side), time)))


def unet() -> Subject:
    """The U-Net, with the mean square of the error."""
    model = Unet().train()
    pictures, noise, times = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16), torch.rand(2)
    times = times * 900
    model.reduction = "mean"
    return Subject(model, lambda: functional.mse_loss(model(pictures + noise, times), noise,
                                                      reduction=model.reduction))


def vit() -> Subject:
    """A vision transformer of the library."""
    model = ViTForImageClassification(ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        image_size=16, patch_size=4, num_labels=7, attn_implementation="eager"))
    model.eval()
    with torch.no_grad():
        model.vit.embeddings.position_embeddings.normal_()
        model.vit.embeddings.cls_token.normal_()
    pictures, labels = torch.randn(3, 3, 16, 16), torch.randint(0, 7, (3,))
    return Subject(model, lambda: model(pixel_values=pictures, labels=labels).loss)


def pictures() -> Subject:
    """Convolutions in the manner of a transformer."""
    model = ConvNextForImageClassification(ConvNextConfig(
        hidden_sizes=[16, 24, 32], depths=[1, 2, 1], num_stages=3, patch_size=2, num_labels=6,
        layer_scale_init_value=0.5, image_size=32))
    model.eval()
    seen, labels = torch.randn(4, 3, 32, 32), torch.randint(0, 6, (4,))
    return Subject(model, lambda: model(pixel_values=seen, labels=labels).loss)


class Capsules(nn.Module):
    """Capsules that vote in rounds."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(20, 6 * 8)
        self.votes = nn.Parameter(torch.randn(6, 4, 8, 8) / 8 ** 0.5)

    def squashed(self, values: torch.Tensor) -> torch.Tensor:
        """Shorter than one."""
        square = values.square().sum(-1, keepdim=True)
        return square / (1 + square) * values / torch.sqrt(square + 1e-8)

    def shares(self, logits: torch.Tensor) -> torch.Tensor:
        """How each capsule divides its vote."""
        return functional.softmax(logits, dim=2)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """The length of each class."""
        inner = self.squashed(self.enter(values).view(-1, 6, 8))
        votes = torch.einsum("bid,icde->bice", inner, self.votes)
        logits = torch.zeros(votes.shape[:3])
        for _ in range(3):
            found = self.squashed((self.shares(logits)[..., None] * votes).sum(1))
            logits = logits + (votes * found[:, None]).sum(-1)
        return found.norm(dim=-1)


def capsules() -> Subject:
    """Seven values of four classes, with a margin."""
    model = Capsules().train()
    values, classes = torch.randn(7, 20), torch.randint(0, 4, (7,))

    def loss() -> torch.Tensor:
        lengths, own = model(values), functional.one_hot(classes, 4).float()
        return (own * functional.relu(0.9 - lengths).square()
                + 0.5 * (1 - own) * functional.relu(lengths - 0.1).square()).sum(1).mean()
    return Subject(model, loss)


def clip() -> Subject:
    """Text and pictures."""
    config = CLIPConfig(
        text_config={"vocab_size": 60, "hidden_size": 32, "intermediate_size": 64,
                     "num_hidden_layers": 2, "num_attention_heads": 4,
                     "max_position_embeddings": 16, "eos_token_id": 2},
        vision_config={"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                       "num_attention_heads": 4, "image_size": 16, "patch_size": 4},
        projection_dim=16, initializer_factor=5.0, attn_implementation="eager")
    model = CLIPModel(config)
    model.eval()
    words, seen = torch.randint(3, 60, (4, 10)), torch.randn(4, 3, 16, 16)
    return Subject(model, lambda: model(input_ids=words, pixel_values=seen, return_loss=True).loss)


class Basic(nn.Module):
    """Two convolutions with batch norm and a way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.around = None
        if before != after:
            self.around = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False),
                                        nn.BatchNorm2d(after))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """One block."""
        inner = functional.relu(self.norm1(self.conv1(values)))
        beside = values if self.around is None else self.around(values)
        return functional.relu(self.norm2(self.conv2(inner)) + beside)


class Resnet(nn.Module):
    """Three blocks, for pictures that were normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(Basic(16, 16, 1), Basic(16, 32, 2), Basic(32, 48, 2))
        self.classify = nn.Linear(48, 10)
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
        self.spread = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def prepared(self, pictures: torch.Tensor) -> torch.Tensor:
        """Mean nought, spread one."""
        return (pictures - self.mean) / self.spread

    def smaller(self, values: torch.Tensor) -> torch.Tensor:
        """Half the size."""
        return functional.max_pool2d(values, 3, 2, 1)

    def pooled(self, values: torch.Tensor) -> torch.Tensor:
        """The mean of each channel."""
        return functional.adaptive_avg_pool2d(values, (1, 1)).flatten(1)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Scores."""
        values = self.smaller(functional.relu(self.norm(self.stem(self.prepared(pictures)))))
        return self.classify(self.pooled(self.blocks(values)))


def resnet() -> Subject:
    """Fine-tuned with frozen statistics."""
    model = Resnet().eval()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.3)
                module.running_var.uniform_(0.3, 1.5)
                module.weight.uniform_(0.6, 1.4)
                module.bias.normal_(0, 0.2)
    model.pictures, classes = torch.rand(4, 3, 48, 48), torch.randint(0, 10, (4,))
    return Subject(model, lambda: functional.cross_entropy(model(model.pictures), classes))


def swin() -> Subject:
    """Windows that move."""
    model = SwinForImageClassification(SwinConfig(
        image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4,
        num_labels=9, drop_path_rate=0.0, initializer_range=0.15,
        attn_implementation="eager")).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "relative_position_bias" in name:
                p.normal_(0, 0.5)
    pictures, labels = torch.randn(2, 3, 32, 32), torch.randint(0, 9, (2,))
    return Subject(model, lambda: model(pixel_values=pictures, labels=labels).loss)


def convnext() -> Subject:
    """Convolutions of single channels, scaled layers."""
    model = ConvNextForImageClassification(ConvNextConfig(
        hidden_sizes=[16, 32], depths=[1, 2], num_stages=2, num_labels=8, image_size=32,
        initializer_range=0.1, layer_scale_init_value=0.5)).train()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "layer_scale" in name:
                p += 0.2 * torch.randn_like(p)
    model.pictures, labels = torch.randn(3, 3, 32, 32), torch.randint(0, 8, (3,))
    return Subject(model, lambda: model(pixel_values=model.pictures, labels=labels).loss)


class Modulated(nn.Module):
    """A layer whose norms are moved by the time."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, 1e-6, False) for _ in range(2))
        self.joint, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.control = nn.Linear(WIDTH, 6 * WIDTH)

    def controls(self, time: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Shift, scale and gate of both parts."""
        return self.control(functional.silu(time))[:, None].chunk(6, dim=-1)

    def moved(self, values: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor
              ) -> torch.Tensor:
        """The modulation."""
        return values * (1 + scale) + shift

    def attended(self, values: torch.Tensor) -> torch.Tensor:
        """Every patch looks at all."""
        batch, count, _ = values.shape
        query, key, value = self.joint(values).view(batch, count, 3, 4, -1).permute(2, 0, 3, 1, 4)
        shares = torch.softmax(torch.matmul(query * 8 ** -0.5, key.transpose(-2, -1)), dim=-1)
        return self.out(torch.matmul(shares, value).transpose(1, 2).reshape(batch, count, -1))

    def fed(self, values: torch.Tensor) -> torch.Tensor:
        """The feed-forward part."""
        return self.down(functional.gelu(self.up(values), approximate="tanh"))

    def forward(self, values: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Both parts."""
        shift1, scale1, gate1, shift2, scale2, gate2 = self.controls(time)
        values = values + gate1 * self.attended(self.moved(self.norm1(values), shift1, scale1))
        return values + gate2 * self.fed(self.moved(self.norm2(values), shift2, scale2))


class Dit(nn.Module):
    """A transformer that takes noise out of pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(4, WIDTH, 2, 2)
        self.place = nn.Parameter(0.5 * torch.randn(36, WIDTH))
        self.time = nn.Sequential(nn.Linear(16, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.layers = nn.ModuleList(Modulated() for _ in range(2))
        self.norm, self.leave = nn.LayerNorm(WIDTH, 1e-6, False), nn.Linear(WIDTH, 16)

    def clock(self, times: torch.Tensor) -> torch.Tensor:
        """Waves of the time."""
        angles = times[:, None] * torch.exp(torch.arange(8) * (-math.log(10000) / 8))
        return torch.cat((torch.cos(angles), torch.sin(angles)), dim=-1)

    def patched(self, pictures: torch.Tensor) -> torch.Tensor:
        """A row for each patch."""
        return self.enter(pictures).flatten(2).transpose(1, 2)

    def whole(self, rows: torch.Tensor) -> torch.Tensor:
        """The picture of all patches."""
        parts = rows.view(-1, 6, 6, 2, 2, 4)
        return torch.einsum("nhwpqc->nchpwq", parts).reshape(-1, 4, 12, 12)

    def forward(self, pictures: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """The noise."""
        values, time = self.patched(pictures) + self.place, self.time(self.clock(times))
        for layer in self.layers:
            values = layer(values, time)
        return self.whole(self.leave(self.norm(values)))


def dit() -> Subject:
    """Three latent pictures."""
    model = Dit().train()
    pictures, noise = torch.randn(3, 4, 12, 12), torch.randn(3, 4, 12, 12)
    times = torch.rand(3) * 1000
    return Subject(model, lambda: functional.mse_loss(model(pictures + noise, times), noise))


class Segment(nn.Module):
    """A class for each pixel; batch norm learns."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 16, 3, 1, 1), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32)
        self.conv3, self.norm3 = nn.Conv2d(32, 32, 3, 1, 2, dilation=2), nn.BatchNorm2d(32)
        self.up, self.classify = nn.ConvTranspose2d(32, 16, 2, 2), nn.Conv2d(16, 5, 1)
        self.aside, self.ignored = nn.Conv2d(32, 5, 1), 255

    def larger(self, values: torch.Tensor) -> torch.Tensor:
        """Twice the size."""
        return functional.interpolate(values, scale_factor=2, mode="bilinear",
                                      align_corners=False)

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores, and those from halfway."""
        first = functional.relu(self.norm1(self.conv1(pictures)))
        inner = functional.relu(self.norm2(self.conv2(first)))
        inner = functional.relu(self.norm3(self.conv3(inner)))
        return self.classify(self.up(inner) + first), self.larger(self.aside(inner))

    def entropy(self, scores: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """Per pixel that counts."""
        return functional.cross_entropy(scores, classes, ignore_index=self.ignored)

    def overlap(self, scores: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """One less the Dice coefficient."""
        chances = torch.softmax(scores, dim=1)
        counted = (classes != self.ignored)[:, None]
        marks = functional.one_hot(classes.clamp(max=4), 5).permute(0, 3, 1, 2) * counted
        chances = chances * counted
        common = (chances * marks).sum((0, 2, 3))
        both = chances.sum((0, 2, 3)) + marks.sum((0, 2, 3))
        return 1 - ((2 * common + 1) / (both + 1)).mean()


def segment() -> Subject:
    """Two pictures, some pixels without a class."""
    model = Segment().train()
    model.pictures, classes = torch.randn(2, 3, 16, 16), torch.randint(0, 5, (2, 16, 16))
    classes[:, :2] = 255

    def loss() -> torch.Tensor:
        scores, aside = model(model.pictures)
        return model.entropy(scores, classes) + model.overlap(scores, classes) \
            + 0.4 * model.entropy(aside, classes)

    return Subject(model, loss)


class Detect(nn.Module):
    """Boxes and classes at every place of a grid."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 24, 4, 4), nn.Conv2d(24, 24, 3, 1, 1)
        self.norm = nn.GroupNorm(4, 24)
        self.boxes, self.classes = nn.Conv2d(24, 4, 1), nn.Conv2d(24, 3, 1)
        self.alpha, self.gamma = 0.25, 2.0

    def centres(self) -> torch.Tensor:
        """The middle of every cell."""
        line = (torch.arange(8) + 0.5) * 4
        rows, columns = torch.meshgrid(line, line, indexing="ij")
        return torch.stack((columns, rows), dim=-1).reshape(-1, 2)

    def corners(self, moves: torch.Tensor) -> torch.Tensor:
        """Moves and logarithms of sizes to corners."""
        middle = self.centres() + moves[..., :2] * 4
        size = torch.exp(moves[..., 2:].clamp(max=4)) * 8
        return torch.cat((middle - size / 2, middle + size / 2), dim=-1)

    def areas(self, boxes: torch.Tensor) -> torch.Tensor:
        """Of each box."""
        return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])

    def apart(self, boxes: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """One less the generalised overlap."""
        low = torch.maximum(boxes[..., :2], truth[..., :2])
        high = torch.minimum(boxes[..., 2:], truth[..., 2:])
        common = (high - low).clamp(min=0).prod(-1)
        union = self.areas(boxes) + self.areas(truth) - common
        hull = torch.maximum(boxes[..., 2:], truth[..., 2:]) - torch.minimum(
            boxes[..., :2], truth[..., :2])
        around = hull.prod(-1)
        return 1 - common / union + (around - union) / around

    def focal(self, scores: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Easy places count less."""
        chances = torch.sigmoid(scores)
        entropy = functional.binary_cross_entropy_with_logits(scores, truth, reduction="none")
        right = chances * truth + (1 - chances) * (1 - truth)
        weight = self.alpha * truth + (1 - self.alpha) * (1 - truth)
        return (weight * (1 - right) ** self.gamma * entropy).sum()

    def forward(self, pictures: torch.Tensor, boxes: torch.Tensor, classes: torch.Tensor
                ) -> torch.Tensor:
        """The loss; places without a class have no box."""
        values = functional.silu(self.norm(self.conv2(functional.silu(self.conv1(pictures)))))
        moves = self.boxes(values).flatten(2).transpose(1, 2)
        scores = self.classes(values).flatten(2).transpose(1, 2)
        found = classes.sum(-1) > 0
        away = torch.masked_select(self.apart(self.corners(moves), boxes), found).sum()
        return (self.focal(scores, classes) + 2 * away) / found.sum()


def detect() -> Subject:
    """Two pictures with a dozen boxes."""
    model = Detect().train()
    pictures, middle = torch.randn(2, 3, 32, 32), torch.rand(2, 64, 2) * 32
    size = torch.rand(2, 64, 2) * 10 + 4
    boxes = torch.cat((middle - size / 2, middle + size / 2), dim=-1)
    classes = functional.one_hot(torch.randint(0, 3, (2, 64)), 3).float()
    classes = classes * (torch.rand(2, 64, 1) < 0.1)
    return Subject(model, lambda: model(pictures, boxes, classes))


class Seen(nn.Module):
    """A layer without a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.joint, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def attended(self, values: torch.Tensor) -> torch.Tensor:
        """By the fused kernel."""
        query, key, value = self.joint(values).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Attention, then feed-forward."""
        values = values + self.attended(self.norm1(values))
        return values + self.down(functional.gelu(self.up(self.norm2(values))))


class Masked(nn.Module):
    """Pictures of which six patches of sixteen are seen; the others are foretold."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(48, WIDTH), nn.Linear(WIDTH, 48)
        self.place = nn.Parameter(0.3 * torch.randn(1, 16, WIDTH))
        self.place_after = nn.Parameter(0.3 * torch.randn(1, 16, WIDTH))
        self.mark = nn.Parameter(0.3 * torch.randn(1, 1, WIDTH))
        self.layers, self.after = nn.ModuleList((Seen(), Seen())), Seen()
        self.norm, self.norm_after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.pictures, self.keys = torch.randn(4, 3, 16, 16), torch.rand(4, 16)
        self.keep = 6

    def patches(self, pictures: torch.Tensor) -> torch.Tensor:
        """[batch, patch, row and column and channel]."""
        return pictures.unflatten(3, (4, 4)).unflatten(2, (4, 4)).permute(
            0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)

    def embedded(self, pictures: torch.Tensor) -> torch.Tensor:
        """A linear map of each patch."""
        return self.enter(self.patches(pictures))

    def chosen(self, values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Patches at other places."""
        return torch.gather(values, 1, index[..., None].expand(-1, -1, values.shape[-1]))

    def placed(self, values: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Those that are seen, each with its place."""
        return self.chosen(values + self.place, seen)

    def restored(self, values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
        """Seen patches and marks at their own places."""
        marks = self.mark.expand(len(values), 16 - self.keep, -1)
        return self.chosen(torch.cat((values, marks), dim=1), torch.argsort(order, dim=1))

    def truth(self, patches: torch.Tensor) -> torch.Tensor:
        """Each patch on its own scale."""
        mean, spread = patches.mean(-1, keepdim=True), patches.var(-1, keepdim=True)
        return (patches - mean) / torch.sqrt(spread + 1e-6)

    def hidden(self, order: torch.Tensor) -> torch.Tensor:
        """One where a patch was not seen."""
        return (torch.argsort(order, dim=1) >= self.keep).to(self.place.dtype)

    def lost(self, error: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """The mean over the patches that were not seen."""
        return (error * hidden).sum() / hidden.sum()

    def forward(self) -> torch.Tensor:
        """The loss."""
        order = torch.argsort(self.keys, dim=1)
        values = self.placed(self.embedded(self.pictures), order[:, :self.keep])
        for layer in self.layers:
            values = layer(values)
        values = self.after(self.restored(self.norm(values), order) + self.place_after)
        result = self.leave(self.norm_after(values))
        error = torch.square(result - self.truth(self.patches(self.pictures))).mean(-1)
        return self.lost(error, self.hidden(order))


def masked() -> Subject:
    """Four pictures."""
    model = Masked().train()
    return Subject(model, model)
