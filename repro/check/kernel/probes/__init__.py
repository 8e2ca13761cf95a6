"""The probes of kernels: one file each, named as the probe. A file holds SUBJECT and PROBE.

Standard library only, so that a case file can be checked without what executes kernels.
"""

from __future__ import annotations

from importlib import import_module

from ..probe import KernelProbe

# In the order of a page.
PROBES = (
    "draft_step_kernel",
    "decode_input_kernel",
    "input_update_kernel",
    "slot_mapping_kernel",
    "batch_slot_mapping_kernel",
    "padding_row_kernel",
    "append_blocks_kernel",
    "rejection_kernel",
    "batch_rejection_kernel",
    "greedy_rejection_kernel",
    "batch_greedy_kernel",
    "gumbel_kernel",
    "state_copy_kernel",
    "state_precopy_kernel",
    "conv_copy_kernel",
    "conv_rows_copy_kernel",
    "accepted_copy_kernel",
    "recurrent_kernel",
    "gated_recurrent_kernel",
    "mtp_recurrent_kernel",
    "conv_update_kernel",
)


def load(name: str) -> KernelProbe:
    """The probe of a name; KeyError for a name that is none of PROBES."""
    if name not in PROBES:
        raise KeyError(name)
    probe: KernelProbe = import_module(f".{name}", __name__).PROBE
    return probe
