"""Every model, by name."""

from __future__ import annotations

from collections.abc import Callable

import fifth_models
import fifth_pictures
import fifth_steps
import fourth_models
import parts_models
import rounding_steps
import second_models
import sixth_models
import sixth_steps
import small_models
import third_models
import third_steps
import unseen_models
import unseen_steps
from small_models import Subject

MODELS: dict[str, Callable[[], Subject]] = {
    **small_models.MODELS,
    **rounding_steps.MODELS,
    **{build.__name__: build for build in (
        unseen_models.bert, unseen_models.t5, unseen_models.experts, unseen_models.recurrent,
        unseen_models.unet, unseen_models.recommend, unseen_steps.train, unseen_steps.mixed,
        unseen_steps.cached, second_models.vit, second_models.graph, second_models.towers,
        second_models.sound, second_models.adapters, third_models.vae, third_models.flow,
        third_models.physics, third_models.process, third_models.chain, third_models.field,
        third_models.policy, third_models.listener, third_steps.waves, third_steps.long,
        third_steps.scan, third_steps.rivals, third_steps.optimise, third_steps.narrow,
        third_steps.gemma, third_steps.falcon, third_steps.deberta, third_steps.wave,
        third_steps.pictures, fourth_models.bodies, fourth_models.filtered,
        fourth_models.capsules, fourth_models.transport, fourth_models.inner, fourth_models.qwen,
        fourth_models.clip, fifth_models.qwen3, fifth_models.neox,
        fifth_models.mistral, fifth_models.whisper, fifth_models.dpo, fifth_models.distill,
        fifth_models.forecast, fifth_pictures.resnet, fifth_pictures.swin,
        fifth_pictures.convnext, fifth_pictures.dit, fifth_pictures.segment,
        fifth_pictures.detect, fifth_steps.tune, fifth_steps.scaled, fifth_steps.twins,
        sixth_models.perceive, sixth_models.transduce, sixth_models.masked, sixth_models.retain,
        sixth_steps.select, sixth_steps.albert, sixth_steps.quant, sixth_steps.lamb,
        parts_models.cut, parts_models.half, parts_models.bare)},
}
