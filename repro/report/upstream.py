"""Addresses of upstream reports, short enough for a column."""

from __future__ import annotations

import re

GITHUB = re.compile(r"https://github\.com/[\w.-]+/(?P<repo>[\w.-]+)/(issues|pull)/(?P<number>\d+)")


def shorthand(url: str) -> str:
    """`vllm#40756` for an issue or pull request on GitHub; any other address without its scheme."""
    match = GITHUB.match(url)
    return f"{match['repo']}#{match['number']}" if match else url.removeprefix("https://")
