"""Every case: first those of the small models, then the groups in the order of their writing."""

from __future__ import annotations

import cases_conv
import cases_library
import cases_losses
import cases_parts
import cases_pictures
import cases_plain
import cases_rounding
import cases_science
import cases_sequences
import cases_small_models
import cases_sound
import cases_steps
import cases_text
from fault_cases import Case

CASES: list[Case] = [
    *cases_plain.CASES, *cases_library.CASES, *cases_conv.CASES, *cases_small_models.CASES,
    # unseen
    *cases_text.BERT, *cases_text.T5, *cases_text.EXPERTS, *cases_sequences.RECURRENT,
    *cases_pictures.UNET, *cases_losses.RECOMMEND, *cases_steps.TRAIN, *cases_steps.MIXED,
    *cases_sequences.CACHED,
    # second
    *cases_pictures.VIT, *cases_science.GRAPH, *cases_losses.TOWERS, *cases_sound.SOUND,
    *cases_steps.ADAPTERS,
    # third
    *cases_science.VAE, *cases_science.FLOW, *cases_science.PHYSICS, *cases_science.PROCESS,
    *cases_sequences.CHAIN, *cases_science.FIELD, *cases_losses.POLICY, *cases_sequences.LISTENER,
    *cases_science.WAVES, *cases_sequences.LONG, *cases_sequences.SCAN, *cases_losses.RIVALS,
    *cases_steps.OPTIMISE, *cases_steps.NARROW, *cases_text.GEMMA, *cases_text.FALCON,
    *cases_text.DEBERTA, *cases_sound.WAVE, *cases_pictures.PICTURES,
    # fourth
    *cases_science.BODIES, *cases_science.FILTERED, *cases_pictures.CAPSULES,
    *cases_science.TRANSPORT, *cases_steps.INNER, *cases_text.QWEN, *cases_pictures.CLIP,
    # fifth
    *cases_text.QWEN3, *cases_text.NEOX, *cases_text.MISTRAL, *cases_sound.WHISPER,
    *cases_losses.DPO, *cases_losses.DISTILL, *cases_pictures.RESNET, *cases_pictures.SWIN,
    *cases_pictures.CONVNEXT, *cases_pictures.DIT, *cases_pictures.SEGMENT, *cases_pictures.DETECT,
    *cases_sequences.FORECAST, *cases_steps.TUNE, *cases_steps.SCALED, *cases_steps.TWINS,
    # sixth
    *cases_sequences.PERCEIVE, *cases_sound.TRANSDUCE, *cases_pictures.MASKED,
    *cases_sequences.RETAIN, *cases_sequences.SELECT, *cases_text.ALBERT, *cases_steps.QUANT,
    *cases_steps.LAMB,
    *cases_rounding.CASES, *cases_parts.CASES,
]


def cases_of(model: str) -> list[Case]:
    """The cases of one model, in the order of their steps."""
    return [case for case in CASES if case.model == model]
