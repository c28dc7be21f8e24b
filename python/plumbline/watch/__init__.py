"""Values over the steps of a training: what a training monitor wrote."""
