"""Versions that this torch says it was built with."""

cuda = "13.0"
hip = None
