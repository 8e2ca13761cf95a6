"""Whether a file is a page of text with logs in it, or a log.

Apart from the reading of pages, which a log does not need.
"""

from __future__ import annotations

import re

# A larger file is read as a log.
LARGEST = 8 * 1024 * 1024

_MARKS = re.compile(rb"(?m)^[ \t>]{0,8}(?:```|~~~|<details|<summary|#{1,4} \S|author:\t)")


def is_page(name: str, head: bytes) -> bool:
    """Whether a file is a page rather than a log, by its name and its beginning."""
    lower = name.lower()
    if lower.endswith((".md", ".markdown", ".html", ".htm")):
        return True
    if lower.endswith((".log", ".out", ".err", ".jsonl", ".ndjson", ".gz", ".zst")):
        return False
    start = head.lstrip()[:1]
    if start in (b"{", b"["):
        return b'"body"' in head and b'{"log":' not in head[:200]
    return len(_MARKS.findall(head[:65536])) >= 2
