"""The fault classes, one file each; `rules.py` says what the keys mean."""
