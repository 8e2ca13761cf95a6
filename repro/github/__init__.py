"""Posting to GitHub: which issue, by which way, and never twice."""
