"""Going through a kernel once for all threads: what registers hold, and who is where."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..geometry import Geometry
from ..ptx import Special
from .memo import Memo
from .steps import BINARY, SIGN_MATTERS, Operand, Step
from .value import Value, constant, kept, minus, of_blocks, of_lanes, plus, times
from .where import EVERYWHERE, NOBODY, Where, below, both, either, nowhere, without

MOST_STEPS = 20_000  # a loop that takes longer is executed
UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}

Held = Value | Where | None  # of a register; None: not known
Accessed = Callable[[Step, Value, Where], None]


class UndecidedError(Exception):
    """The launch has no such form; it has to be executed."""


class Walk:
    """One launch. bits: of the parameters. geometry: of one block. memo: of this kernel and shape.
    accessed: is told of each access.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        bits: Sequence[bytes],
        geometry: Geometry,
        shared_bytes: int,
        memo: Memo,
        accessed: Accessed,
    ) -> None:
        self.steps, self.bits, self.geometry = steps, bits, geometry
        self.grid = geometry.grid
        self.shared_bytes = shared_bytes
        self.accessed = accessed
        self.memo = memo
        self.held: dict[str, Held] = {}
        # Threads that wait at a later step, and registers written while there were some.
        self.waiting: dict[int, Where] = {}
        self.doubtful: set[str] = set()
        self.count = 0

    def run(self) -> int:
        """Go through all of it; how many steps that took. UndecidedError where that cannot be."""
        running = self.geometry.running
        active, at, end = EVERYWHERE, 0, len(self.steps)
        if running is not None:
            active = self.memo.once("running", None, lambda: Where(running))
        while True:
            if self.waiting and at in self.waiting:
                active = self._united(active, self.waiting.pop(at))
                self._forget()
            if at >= end:
                if not self.waiting:
                    return self.count
                raise UndecidedError
            step = self.steps[at]
            self.count += 1
            if self.count > MOST_STEPS:
                raise UndecidedError
            at += 1
            if step.kind == "compute" or step.kind == "compare":
                self._compute(step)
            elif step.kind == "access":
                self._access(step, active)
            elif step.kind == "barrier":
                if self.waiting or step.predicate is not None:
                    raise UndecidedError
            elif step.kind == "branch" or step.kind == "leave":
                taken, rest = self._parted(step, active)
                if step.kind == "branch" and not nowhere(taken):
                    if nowhere(rest) and not (self.waiting and step.target < at):
                        if not self.waiting:
                            at = step.target
                            continue
                    elif step.target < at:
                        raise UndecidedError
                    before = self.waiting.get(step.target)
                    self.waiting[step.target] = (
                        taken if before is None else self._united(before, taken)
                    )
                active = rest
                if nowhere(rest):
                    if not self.waiting:
                        return self.count
                    at = min(self.waiting)
                    active = self.waiting.pop(at)
                    self._forget()

    def _forget(self) -> None:
        """Threads come together that may hold different things in the registers set meanwhile."""
        for name in self.doubtful:
            self.held[name] = None
        if not self.waiting:
            self.doubtful.clear()

    def _united(self, one: Where, two: Where) -> Where:
        key = ("united", id(one), id(two))
        found = self.memo.once(key, (one, two), lambda: either(one, two, self.grid))
        if found is None:
            raise UndecidedError
        return EVERYWHERE if found.everywhere else found

    def _parted(self, step: Step, active: Where) -> tuple[Where, Where]:
        """The threads that do it, of those that are here, and the others."""
        if step.predicate is None:
            return active, NOBODY
        name, negated = step.predicate
        held = self._predicate(name)
        if held is None:
            raise UndecidedError
        key = ("parted", id(held), negated, id(active))
        return self.memo.once(key, (held, active), lambda: self._divided(held, negated, active))

    def _divided(self, held: Where, negated: bool, active: Where) -> tuple[Where, Where]:
        if held.everywhere or nowhere(held):
            return (active, NOBODY) if held.everywhere != negated else (NOBODY, active)
        opposite = without(held, self.grid)
        if opposite is None:
            raise UndecidedError
        if negated:
            held, opposite = opposite, held
        return both(active, held), both(active, opposite)

    def _access(self, step: Step, active: Where) -> None:
        where = active
        if step.predicate is not None:
            name, negated = step.predicate
            held = self._predicate(f"!{name}" if negated else name)
            if held is None:
                raise UndecidedError
            key = ("both", id(active), id(held))
            where = self.memo.once(key, (active, held), lambda: both(active, held))
        address = self._value(step.takes[0])
        if address is None:
            if nowhere(where):
                return
            raise UndecidedError
        for name in step.gives:
            self._set(name, None)
        self.accessed(step, address, where)

    def _set(self, name: str, held: Held) -> None:
        self.held[name] = held
        if self.waiting:
            self.doubtful.add(name)

    def _compute(self, step: Step) -> None:
        source = step.takes[0] if step.takes else None
        if isinstance(source, tuple) and step.predicate is None and step.do == "mov":
            self._set(step.gives[0], self._value(source))  # a parameter
            return
        read = tuple([self.held.get(name) for name in step.reads])
        key = (id(step), *map(id, read))
        held, done = self.memo.once(key, read, lambda: self._made(step))
        if done:
            for name in step.gives:
                self._set(name, held)

    def _made(self, step: Step) -> tuple[Held, bool]:
        """What a step gives, and whether anybody does it."""
        if step.predicate is not None:
            asked = self._predicate(step.predicate[0])
            if asked is None or not (asked.everywhere or nowhere(asked)):
                return None, True
            if asked.everywhere == step.predicate[1]:
                return None, False
        return (self._compared(step) if step.kind == "compare" else self._computed(step)), True

    def _computed(self, step: Step) -> Held:
        do, size = step.do, step.size
        if do.endswith(".pred"):
            return self._logical(do, [self._predicate(o) for o in step.takes])
        if do == "selp":
            return self._selected(step)
        taken = [self._value(operand) for operand in step.takes]
        values = [value for value in taken if value is not None]
        if not do or len(values) < len(taken):
            return None
        if do in SIGN_MATTERS and not step.signed and any(v.low < 0 for v in values[:2]):
            return None
        if do in ("mov", "cvta", "cvt"):
            return kept(values[0], size)
        if do == "neg":
            return times(values[0], constant(-1), size)
        if do == "not":
            negative = times(values[0], constant(-1), size)
            return None if negative is None else plus(negative, constant(-1), size)
        if do in ("mul", "mad"):
            product = times(values[0], values[1], size)
            if do == "mul" or product is None:
                return product
            return plus(product, values[2], size)
        return BINARY[do](values[0], values[1], size)

    def _selected(self, step: Step) -> Held:
        first, second = self._value(step.takes[0]), self._value(step.takes[1])
        asked = self._predicate(step.takes[2])
        if asked is None:
            return None
        if asked.everywhere:
            return first
        if nowhere(asked):
            return second
        if first is None or second is None or first.by != second.by:
            return None
        if asked.lanes is None or asked.ranges != (None, None, None):
            return None
        one, two = (v.base + (0 if v.at is None else v.at) for v in (first, second))
        at = np.broadcast_to(np.where(asked.lanes, one, two), (self.geometry.lanes,))
        low, high = min(first.low, second.low), max(first.high, second.high)
        return Value(0, at, first.by, low, high)

    def _logical(self, do: str, taken: list[Where | None]) -> Where | None:
        if any(held is None for held in taken):
            return None
        held = [where for where in taken if where is not None]
        if do == "mov.pred":
            return held[0]
        if do == "not.pred":
            return without(held[0], self.grid)
        return both(held[0], held[1]) if do == "and.pred" else self._any(held[0], held[1])

    def _any(self, one: Where, two: Where) -> Where | None:
        if one.everywhere or two.everywhere:
            return EVERYWHERE
        return either(one, two, self.grid)

    def _compared(self, step: Step) -> Where | None:
        one, two = self._value(step.takes[0]), self._value(step.takes[1])
        if one is None or two is None or (not step.signed and min(one.low, two.low) < 0):
            return None
        apart = minus(one, two, 8)
        if apart is None:
            return None
        name = UNSIGNED_NAMES.get(step.words[0], step.words[0])
        found = self._against_zero(name, apart)
        if found is None or len(step.takes) < 3:
            return found
        third = self._predicate(step.takes[2])
        if third is None:
            return None
        return both(found, third) if step.do == "and" else self._any(found, third)

    def _against_zero(self, name: str, apart: Value) -> Where | None:
        less = below(apart, 0, self.grid)
        if less is None or name == "lt":
            return less
        if name == "ge":
            return without(less, self.grid)
        most = below(apart, 1, self.grid)
        if most is None or name == "le":
            return most
        if name == "gt":
            return without(most, self.grid)
        rest = without(less, self.grid)
        same = None if rest is None else both(most, rest)
        return same if name == "eq" or same is None else without(same, self.grid)

    # --- operands --------------------------------------------------------------------------------
    def _value(self, operand: Operand) -> Value | None:
        if isinstance(operand, str):
            held = self.held.get(operand)
            return held if isinstance(held, Value) else None
        if isinstance(operand, int):
            return self.memo.constant(operand)
        if isinstance(operand, Special):
            return self._special(operand.name)
        if operand is None:
            return None
        number, at, kind = operand
        size = int(kind[1:]) // 8
        raw = self.bits[number][at : at + size]
        return self.memo.constant(int.from_bytes(raw, "little", signed=True))

    def _special(self, name: str) -> Value:
        base, _, axis = name.partition(".")
        if base == "%ctaid":
            return of_blocks("xyz".index(axis), self.grid)
        values = self.geometry.special(name, *self._sizes())
        if values.size == 1:
            return constant(int(values[0]))
        return of_lanes(values.astype(np.int64))

    def _sizes(self) -> tuple[int, int]:
        return self.shared_bytes, self.shared_bytes

    def _predicate(self, operand: Operand) -> Where | None:
        if isinstance(operand, int):
            return EVERYWHERE if operand else NOBODY
        if not isinstance(operand, str):
            return None
        held = self.held.get(operand.removeprefix("!"))
        if not isinstance(held, Where):
            return None
        if not operand.startswith("!"):
            return held
        return self.memo.once(("not", id(held)), held, lambda: without(held, self.grid))
