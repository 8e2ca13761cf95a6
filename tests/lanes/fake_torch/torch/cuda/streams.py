"""Streams, by the driver's handle."""

from __future__ import annotations


class Stream:
    """A stream of the driver. cuda_stream: its handle."""

    def __init__(self, handle: int) -> None:
        self.cuda_stream = handle


class ExternalStream(Stream):
    """A stream that another made."""

    def __init__(self, stream_ptr: int, device: int | None = None) -> None:
        super().__init__(stream_ptr)
