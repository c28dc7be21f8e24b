"""Every model, by name."""

from __future__ import annotations

from collections.abc import Callable

import second_models
import small_models
import unseen_models
import unseen_steps
from small_models import Subject

MODELS: dict[str, Callable[[], Subject]] = {
    **small_models.MODELS,
    **{build.__name__: build for build in (
        unseen_models.bert, unseen_models.t5, unseen_models.experts, unseen_models.recurrent,
        unseen_models.unet, unseen_models.recommend, unseen_steps.train, unseen_steps.mixed,
        unseen_steps.cached, second_models.vit, second_models.graph, second_models.towers,
        second_models.sound, second_models.adapters)},
}
