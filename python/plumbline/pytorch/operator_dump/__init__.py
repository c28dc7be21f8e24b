"""Operator dumps in HDF5, with the interface that PyTorch 1.5 for Ascend had."""

from plumbline.pytorch.operator_dump.context import dumper

__all__ = ["dumper"]
