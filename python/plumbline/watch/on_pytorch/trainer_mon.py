"""TrainerMon for PyTorch."""

from __future__ import annotations

from plumbline.pytorch.adapter import TorchAdapter
from plumbline.watch.on_pytorch.monitor_parts import TorchMonitorParts
from plumbline.watch.trainer_mon import TrainerMonBase


class TrainerMon(TrainerMonBase):
    __doc__ = TrainerMonBase.__doc__
    _parts = TorchMonitorParts(TorchAdapter())
