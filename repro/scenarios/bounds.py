"""The one object that says how far a sequence may reach; scheduler, draft and routing ask it alike.

Rule and examples are those of the fix proposed for vllm#40756: admission counts every draft token
(seq_len + k <= max_len), and the draft entry checks the same sum before it writes.
"""

from __future__ import annotations

from dataclasses import dataclass


class PastEndError(ValueError):
    """A position that speculation would write lies past the last slot of its sequence."""


@dataclass(frozen=True, slots=True)
class SequenceBounds:
    """max_len: slots of a sequence (`max_model_len`). num_speculative: draft tokens a step (k)."""

    max_len: int
    num_speculative: int

    def can_generate(self, seq_len: int) -> bool:
        """Whether a sequence of `seq_len` tokens may take a speculative step of k drafts."""
        return seq_len + self.num_speculative <= self.max_len

    def draft_length(self, seq_len: int) -> int:
        """Drafts that still fit at `seq_len`, at least one while the sequence may grow at all."""
        return min(self.num_speculative, max(1, self.max_len - seq_len))

    def check_position(self, position: int, count: int, what: str = "draft") -> None:
        """Raise PastEndError unless `count` tokens from `position` on have slots.

        `what` names who asks: the draft entry, or the expert routing that records the same tokens.
        """
        if position + count > self.max_len:
            raise PastEndError(
                f"{what} of {count} tokens at position {position} needs slot "
                f"{position + count - 1}, but a sequence has {self.max_len} slots"
            )
