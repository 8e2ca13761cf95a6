"""Which function lowers which opcode."""

from __future__ import annotations

from collections.abc import Callable

from . import (
    lower_atomic,
    lower_bits,
    lower_call,
    lower_compare,
    lower_convert,
    lower_copy,
    lower_dot,
    lower_float,
    lower_integer,
    lower_matrix,
    lower_memory,
    lower_move,
    lower_warp,
    lower_wmma,
)
from .builder import Builder
from .ptx import Instruction

HANDLERS: dict[str, Callable[[Builder, Instruction], None]] = {
    **lower_atomic.HANDLERS,
    **lower_bits.HANDLERS,
    **lower_call.HANDLERS,
    **lower_compare.HANDLERS,
    **lower_convert.HANDLERS,
    **lower_copy.HANDLERS,
    **lower_dot.HANDLERS,
    **lower_integer.HANDLERS,
    **lower_matrix.HANDLERS,
    **lower_memory.HANDLERS,
    **lower_move.HANDLERS,
    **lower_warp.HANDLERS,
    **lower_wmma.HANDLERS,
}
# Opcodes that have integer and float forms: the type decides.
for _opcode, _lower in lower_float.HANDLERS.items():
    HANDLERS[_opcode] = lower_float.by_type(_lower, HANDLERS.get(_opcode))
