"""A tensor: where it lies, how long it is, of which type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class dtype:
    """A type of elements; Triton reads its name."""

    name: str

    def __str__(self) -> str:
        return f"torch.{self.name}"


@dataclass(frozen=True)
class Tensor:
    """One made by `from_dlpack`."""

    address: int
    shape: tuple[int, ...]
    dtype: dtype
    device: tuple[int, int]

    def data_ptr(self) -> int:
        """Where it begins; 0 for one without elements, as in torch."""
        return self.address if self.shape[0] else 0
