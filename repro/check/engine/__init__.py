"""Depth engine: a whole engine runs a tiny model, and what it does is measured."""
