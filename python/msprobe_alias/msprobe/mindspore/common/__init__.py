"""Upstream's folder of this name."""
