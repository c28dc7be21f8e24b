"""Upstream's training monitor: what works on its files."""
