"""The variables of a module in global and constant memory, and the parameters of a launch."""

from __future__ import annotations

import numpy as np

from ..errors import UnsupportedError
from .ptx import Kernel, Statics
from .storage import LOCAL_TAG, PARAMETER_TAG, VARIABLE_TAG, Storage, window_start

MAX_VARIABLES = PARAMETER_TAG - VARIABLE_TAG
MAX_PARAMETERS = LOCAL_TAG - PARAMETER_TAG
_ALL = (1 << 64) - 1


def variable_address(statics: Statics, name: str) -> int:
    """The generic address of byte 0 of a variable; from then on launches know the variable.

    UnsupportedError for a variable of another module, and for addresses of what is no variable in
    its initial value.
    """
    if name not in statics.content:
        _allocate(statics, name)
    storage: Storage = statics.content[name]
    return storage.base


def storages(statics: Statics) -> list[Storage]:
    """The live storages of all variables whose address was ever asked for.

    Writes to them stay, as on a device, for as long as the module is loaded.
    """
    return list(statics.content.values())


def _allocate(statics: Statics, name: str) -> None:
    """Give a variable, and those whose addresses it holds, their memory and first content."""
    wanted, made = [name], []
    while wanted:
        name = wanted.pop()
        if name in statics.content:
            continue
        variable = statics.variables.get(name)
        if variable is None:
            raise UnsupportedError(f"the address of {name}, which is no variable of the module")
        if variable.external:
            raise UnsupportedError(f"{name} lies in another module, with no known content")
        if len(statics.content) == MAX_VARIABLES:
            raise UnsupportedError(f"more than {MAX_VARIABLES} variables")
        data = np.zeros(variable.size, np.uint8)
        initial = variable.initial or b""
        data[: len(initial)] = np.frombuffer(initial, np.uint8)
        base = window_start(VARIABLE_TAG + len(statics.content))
        frozen = variable.space == "const"
        statics.content[name] = Storage(name, data, base, variable.size, 1, frozen=frozen)
        made.append(variable)
        wanted += [each.name for each in variable.addresses]
    for variable in made:
        data = statics.content[variable.name].data
        for each in variable.addresses:
            address = statics.content[each.name].base + each.addend
            raw = np.frombuffer((address & _ALL).to_bytes(8, "little"), np.uint8)
            part = raw[each.first : each.first + each.size]
            data[each.offset : each.offset + each.size] = part


def parameter_address(kernel: Kernel, number: int) -> int:
    """The generic address of byte 0 of parameter `number`."""
    if number >= MAX_PARAMETERS:
        raise UnsupportedError(f"more than {MAX_PARAMETERS} parameters", where=kernel.name)
    return window_start(PARAMETER_TAG + number)


def parameter_storage(kernel: Kernel, number: int, bits: bytes) -> Storage:
    """The memory of a parameter whose address the kernel takes."""
    data = np.frombuffer(bits, np.uint8)
    name = kernel.params[number].name
    base = parameter_address(kernel, number)
    return Storage(name, data, base, data.size, 1, frozen=True)
