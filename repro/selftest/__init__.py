"""Faults planted on purpose, to see which instrument sees which."""
