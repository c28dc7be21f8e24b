"""The picture of a parallel training: which ranks hold which layers of the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from plumbline import _compare

_SIZES = ("world_size", "num_layers", "tensor_parallel_size", "pipeline_parallel_size",
          "num_layers_per_virtual_pipeline_stage")


@dataclass
class ParallelConfig:
    """How a model is shared out over ranks, by upstream's names.

    `world_size` is at most 1024, `num_layers` at most 256. `order` names the dimension that varies
    fastest over the ranks first. With `standalone_embedding_stage` the first stage of the pipeline
    has no layers. `output_path` is a directory, made if missing; then it is that of the picture in
    it, ws{W}_ln{L}_tp{T}_pp{P}_vpp{V}.png. A file that ends in .svg or .png is taken as it is.
    Raises ValueError for what cannot be shared out.
    """

    world_size: int
    num_layers: int
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    num_layers_per_virtual_pipeline_stage: int | None = None
    order: str = "tp-cp-ep-dp-pp"
    standalone_embedding_stage: bool = False
    output_path: str = "./"
    # What follows from the others.
    virtual_pipeline_parallel_size: int = field(default=1, init=False)
    data_parallel_size: int = field(default=1, init=False)
    transformer_pipeline_parallel_size: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        """Checks the sizes and fills in what follows from them."""
        if self.tensor_parallel_size is None:
            self.tensor_parallel_size = 1
        if self.pipeline_parallel_size is None:
            self.pipeline_parallel_size = 1
        for name in _SIZES:
            _check_integer(name, getattr(self, name))
        if not isinstance(self.standalone_embedding_stage, bool):
            raise ValueError("standalone_embedding_stage: expected True or False, got "
                             f"{self.standalone_embedding_stage!r}")
        self._grid = _compare.LayoutGrid(
            self.world_size, self.num_layers, self.tensor_parallel_size,
            self.pipeline_parallel_size, self.num_layers_per_virtual_pipeline_stage, self.order,
            self.standalone_embedding_stage)
        self.virtual_pipeline_parallel_size = self._grid.virtual_stages
        self.data_parallel_size = self._grid.data_parallel_size
        self.transformer_pipeline_parallel_size = self._grid.transformer_stages
        self.output_path = self._grid.path_of(self.output_path)

    @property
    def grid(self) -> list[tuple[list[int], str, int, list[str]]]:
        """Of each tensor parallel group its ranks, label, copy of the model, and cells."""
        return self._grid.rows


def plot_model_parallelism(args: ParallelConfig) -> str:
    """Draws the picture, replacing what stands there; returns its path, `args.output_path`."""
    return args._grid.write(args.output_path)


def _check_integer(name: str, value: Any) -> None:
    """Raises ValueError for what is no whole number; None is the default of the last one."""
    if value is None and name == _SIZES[-1]:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name}: expected a whole number above 0, got {value!r}")
