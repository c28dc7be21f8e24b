"""Packs of the configuration check made inside a training script.

A tool beside the recorder: nothing here runs unless a script uses ConfigChecker.
"""
