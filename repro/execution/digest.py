"""What code this installation is made of: results of two codes are never put together."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

CODE = ("*.py", "*.ptx", "*.cu", "*.json")  # what decides a result, under repro/ and kernels/


@cache
def code_digest() -> str:
    """sha256 over the code and kernels of this installation, in hex."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for folder in ("repro", "kernels"):
        for path in sorted(p for kind in CODE for p in (root / folder).rglob(kind)):
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
