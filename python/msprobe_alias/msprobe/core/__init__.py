"""Upstream's framework-neutral half: exceptions only."""
