"""seed_all under upstream's path."""

from __future__ import annotations

from msprobe.core.common.exceptions import translated
from plumbline import pytorch as recorder

seed_all = translated()(recorder.seed_all)
