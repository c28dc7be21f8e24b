"""Every model, by name."""

from __future__ import annotations

from collections.abc import Callable

import loss_models
import parts_models
import picture_models
import rounding_steps
import science_models
import sequence_models
import small_models
import sound_models
import step_models
import text_models
from small_models import Subject

MODELS: dict[str, Callable[[], Subject]] = {
    **small_models.MODELS,
    **rounding_steps.MODELS,
    **{build.__name__: build for build in (
        text_models.bert, text_models.t5, text_models.experts, sequence_models.recurrent,
        picture_models.unet, loss_models.recommend, step_models.train, step_models.mixed,
        sequence_models.cached, picture_models.vit, science_models.graph, loss_models.towers,
        sound_models.sound, step_models.adapters, science_models.vae, science_models.flow,
        science_models.physics, science_models.process, sequence_models.chain,
        science_models.field, loss_models.policy, sequence_models.listener, science_models.waves,
        sequence_models.long, sequence_models.scan, loss_models.rivals, step_models.optimise,
        step_models.narrow, text_models.gemma, text_models.falcon, text_models.deberta,
        sound_models.wave, picture_models.pictures, science_models.bodies,
        science_models.filtered, picture_models.capsules, science_models.transport,
        step_models.inner, text_models.qwen, picture_models.clip, text_models.qwen3,
        text_models.neox, text_models.mistral, sound_models.whisper, loss_models.dpo,
        loss_models.distill, sequence_models.forecast, picture_models.resnet,
        picture_models.swin, picture_models.convnext, picture_models.dit, picture_models.segment,
        picture_models.detect, step_models.tune, step_models.scaled, step_models.twins,
        sequence_models.perceive, sound_models.transduce, picture_models.masked,
        sequence_models.retain, sequence_models.select, text_models.albert, step_models.quant,
        step_models.lamb, parts_models.cut, parts_models.half, parts_models.bare)},
}
