"""Stand-ins for what a lifted function takes from the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Record:
    """An object with the given attributes and no others: what is not foreseen raises."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the stand-in has no {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value


class Logger:
    """Keeps the name of the method and the arguments of every call."""

    def __init__(self) -> None:
        self.said: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def say(*arguments: Any, **_options: Any) -> None:
            self.said.append((name, arguments))

        return say

    @property
    def warned(self) -> bool:
        return any(name.startswith("warn") for name, _ in self.said)


class Ghost:
    """Stands for anything: every attribute, item, call and sum of it is another one, and it is
    true. The dotted names of all calls go to `calls`, in order. Attributes can be set."""

    def __init__(self, calls: list[str], path: str = "", **attributes: Any) -> None:
        self.__dict__.update(attributes, _calls=calls, _path=path)

    def _next(self, name: str) -> Ghost:
        path = f"{self._path}.{name}" if self._path else name
        return Ghost(self._calls, path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._next(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __call__(self, *_arguments: Any, **_options: Any) -> Ghost:
        self._calls.append(self._path)
        return Ghost(self._calls)

    def __getitem__(self, _key: Any) -> Ghost:
        return self._next("item")

    def __setitem__(self, _key: Any, _value: Any) -> None:
        """A ghost keeps nothing."""

    def __iter__(self) -> Iterator[Any]:
        return iter((self._next("item"),))

    def __bool__(self) -> bool:
        return True

    def _combined(self, _other: Any) -> Ghost:
        return Ghost(self._calls)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _combined
    __floordiv__ = __mod__ = _combined


class Ghosts(dict[str, Any]):
    """A namespace in which every global name that is not given is a ghost."""

    def __init__(self, calls: list[str], **given: Any) -> None:
        super().__init__(given)
        self.calls = calls

    def __missing__(self, name: str) -> Any:
        import builtins

        if hasattr(builtins, name):
            return getattr(builtins, name)
        return Ghost(self.calls, name)
