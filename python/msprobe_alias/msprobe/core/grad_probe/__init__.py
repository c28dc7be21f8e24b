"""Upstream's place of grad_compare."""
