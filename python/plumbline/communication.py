"""Communication functions of every framework: which of their arguments mean nothing when."""

from __future__ import annotations

# Arguments whose contents mean nothing before the call, by position.
MASKED_INPUTS = {
    name: [0]
    for name in (
        "recv", "irecv", "all_gather", "scatter", "reduce_scatter", "_reduce_scatter_base",
        "_all_gather_base", "all_to_all_single", "all_to_all", "all_gather_into_tensor",
        "reduce_scatter_tensor", "all_gather_single", "reduce_scatter_single",
    )
} | {"gather": [1]}  # fmt: skip
# Items of the output that are not written.
MASKED_OUTPUTS = {"isend": [0]}
