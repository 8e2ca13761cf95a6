"""What runner V2's slot mapping does with a row of the batch that no request has."""

from __future__ import annotations

from dataclasses import replace

from ..probe import Bench, KernelProbe, Outcome
from . import batch_slot_mapping_kernel as mapping

SUBJECT = replace(mapping.SUBJECT, needs=(*mapping.SUBJECT.needs, "idx_mapping"))


def run(bench: Bench) -> Outcome:
    """A padding row: its slot is -1. A request must be mapped as it must, first."""
    mapping.in_row(bench)
    found, slots = mapping.mapped(bench, [0, 1], -1)
    if not found:
        return Outcome("guarded", f"slot -1: nothing is looked up, its tokens get {slots[0]}")
    one = found[0]
    said = f"slot -1: {one['kind']} of element {one['elements'][0]} of {one['tensor']}"
    return Outcome("reads outside", said, found)


PROBE = KernelProbe(
    "padding_row_kernel",
    "does runner V2's slot mapping look up a row of the batch that no request has?",
    SUBJECT,
    {"guarded": "no", "reads outside": "yes, before the block table"},
    run,
    "there is no runner V2, or its slot mapping takes no mapping",
)
