"""Upstream's shared modules that scripts import from: exceptions."""
