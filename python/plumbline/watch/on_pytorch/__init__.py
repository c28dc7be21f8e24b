"""Watching trainings of PyTorch."""
