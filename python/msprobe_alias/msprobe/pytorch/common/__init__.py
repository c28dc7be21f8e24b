"""Upstream's modules that scripts import from."""
