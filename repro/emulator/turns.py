"""Whose turn it is among threads that have parted.

Those at the least block run first, so that they meet the others where their ways join. Threads that
poll for what others will do (the next holder of a lock) never get further by that if the others are
behind them: then all get turns, block after block.
"""

from __future__ import annotations

from collections.abc import Collection

from .ptx import Instruction

PATIENCE = 1 << 12  # blocks that are run before those behind get a turn...
HASTE = 1 << 6  # ...and after that was of use once
STRONG = frozenset(["volatile", "relaxed", "acquire", "mmio", "cv"])


def polls(instruction: Instruction) -> bool:
    """Whether it may be read again and again until another thread has written."""
    if instruction.opcode == "ld":
        return not STRONG.isdisjoint(instruction.modifiers)
    return instruction.opcode == "atom"


class Turns:
    """Picks the block to run next. polling: whether threads may wait for others by polling."""

    def __init__(self, *, polling: bool) -> None:
        self.polling = polling
        self.patience = PATIENCE
        self.run = 0  # blocks that were run since all threads were together
        self.last = -1

    def next(self, groups: Collection[int]) -> tuple[int, bool]:
        """One of the blocks where threads are, and whether all of them have had a turn."""
        least = min(groups)
        if not self.polling:
            return least, False
        self.run += 1
        if self.run < self.patience:
            return least, False
        self.patience = HASTE
        behind = [at for at in groups if at > self.last]
        self.last = min(behind, default=least)
        return self.last, not behind

    def together(self) -> None:
        """All threads that can run are at one block."""
        self.run = 0
