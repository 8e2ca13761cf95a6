"""Parameters of a CUDA C++ kernel, read from its declaration."""

from __future__ import annotations

import re

from .compiled import DTYPES, Parameter
from .errors import KernelError

C_TYPES = {
    "__half": "fp16",
    "unsigned short": "b16",
    "float": "fp32",
    "int": "i32",
    "long long": "i64",
}


def cuda_parameters(text: str, op: str, source: str) -> tuple[Parameter, ...]:
    """Parameters of the kernel named `op`, read from its C++ declaration.

    The types of C_TYPES and pointers to them; pointers are aligned to their element.
    """
    declared = re.search(rf"\b{re.escape(op)}\(([^)]*)\)\s*\{{", text)
    if declared is None:
        raise KernelError(f"it declares no kernel {op}", where=source)
    parameters = []
    for piece in declared[1].split(","):
        match = re.fullmatch(r"\s*(?:const\s+)?([\w ]+?)\s*(\*?)\s*(\w+)\s*", piece)
        if match is None or match[1] not in C_TYPES:
            raise KernelError(f"parameter {piece.strip()!r} is of no known type", where=source)
        kind = C_TYPES[match[1]]
        align = (DTYPES[kind].itemsize if kind in DTYPES else 2) if match[2] else 1
        parameters.append(Parameter(match[3], match[2] + kind, align))
    return tuple(parameters)
