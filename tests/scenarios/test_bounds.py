"""The bounds object, by the examples of the report (L = 16, k = 3)."""

import pytest

from specrepro.repro.scenarios.bounds import PastEndError, SequenceBounds

BOUNDS = SequenceBounds(max_len=16, num_speculative=3)


def test_a_draft_that_fits_passes() -> None:
    BOUNDS.check_position(10, 3)


def test_a_draft_past_the_end_names_position_count_slot_and_limit() -> None:
    with pytest.raises(PastEndError, match=r"3 tokens at position 14 needs slot 16.* 16 slots"):
        BOUNDS.check_position(14, 3)


def test_the_routing_side_is_refused_by_the_same_sum() -> None:
    with pytest.raises(PastEndError, match=r"^routing of 3 tokens at position 14"):
        BOUNDS.check_position(14, 3, "routing")


@pytest.mark.parametrize(("seq_len", "admitted"), [(14, False), (13, True)])
def test_admission_counts_every_draft(seq_len: int, admitted: bool) -> None:
    assert BOUNDS.can_generate(seq_len) is admitted


def test_the_last_token_still_gets_one_draft() -> None:
    assert BOUNDS.draft_length(15) == 1


def test_no_length_lets_a_clamped_draft_past_the_end() -> None:
    for seq_len in range(16):
        BOUNDS.check_position(seq_len, BOUNDS.draft_length(seq_len))


def test_admission_and_draft_entry_never_differ() -> None:
    for seq_len in range(20):
        try:
            BOUNDS.check_position(seq_len, 3)
            fits = True
        except PastEndError:
            fits = False
        assert BOUNDS.can_generate(seq_len) is fits
