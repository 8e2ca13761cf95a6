"""Arrays that a program makes with `empty`, noted as ones that nobody has written.

numpy's and torch's functions that make such arrays are replaced while a script runs, torch's as
soon as the script imports it. A name that was bound to one of them earlier (`from numpy import
empty` in a module that was there before) is not seen, and its arrays count as written.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

NUMPY = ("empty", "empty_like")
TORCH = ("empty", "empty_like", "empty_strided", "empty_permuted")
TENSOR = ("new_empty", "new_empty_strided")

Made = Callable[[Any], None]  # told of each new array


@contextmanager
def told_of_empty(made: Made) -> Iterator[None]:
    """Tell `made` of every numpy array and torch tensor that is made empty while this is open."""
    import numpy as np

    undo = _replaced(np, NUMPY, made)
    finder = _AfterImport("torch", lambda torch: undo.extend(_of_torch(torch, made)))
    if "torch" in sys.modules:
        undo += _of_torch(sys.modules["torch"], made)
    else:
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        for owner, name, function in undo:
            setattr(owner, name, function)


def _of_torch(torch: Any, made: Made) -> list[tuple[Any, str, Any]]:
    return _replaced(torch, TORCH, made) + _replaced(torch.Tensor, TENSOR, made)


def _replaced(owner: Any, names: Sequence[str], made: Made) -> list[tuple[Any, str, Any]]:
    """What to put back: owner, name and function."""
    replaced = []
    for name in names:
        function = getattr(owner, name, None)
        if function is not None:
            replaced.append((owner, name, function))
            setattr(owner, name, _telling(function, made))
    return replaced


def _telling(function: Callable[..., Any], made: Made) -> Callable[..., Any]:
    @functools.wraps(function)
    def making(*args: Any, **kwargs: Any) -> Any:
        array = function(*args, **kwargs)
        made(array)
        return array

    return making


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls `then` with a module when it has been imported."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self.name, self.then = name, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)  # it is asked once, and lets the others find the module
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.then)
        return spec


class _Loader(importlib.abc.Loader):
    """Another loader, and what is done when it is through."""

    def __init__(self, loader: Any, then: Callable[[ModuleType], None]) -> None:
        self.loader, self.then = loader, then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        self.then(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)  # for who reads resources or source by the loader
