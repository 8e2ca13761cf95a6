"""The part in C: Triton asks it for the stream that is current."""

from __future__ import annotations


def _cuda_getCurrentRawStream(device: int) -> int:
    from . import cuda

    return cuda.current_stream(device).cuda_stream
