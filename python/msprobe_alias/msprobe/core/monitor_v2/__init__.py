"""Upstream's place of its second monitor."""
