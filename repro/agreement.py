"""Whether two lanes saw the same accesses. Pure.

They must agree on launch, kind, op, tensor, step and the set of elements; threads, blocks and
widths are a lane's own detail, and a kind that one of them cannot locate is not compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .records import Finding, Kind

Elements = frozenset[int] | None
Place = tuple[int, str, str | None, str | None, int | None]  # launch, kind, op, tensor, step


def places(findings: Iterable[Finding], kinds: Collection[Kind]) -> dict[Place, Elements]:
    """What lanes must agree on: launch, kind, op, tensor and step, with the set of elements."""
    sets: dict[Place, set[int] | None] = {}
    for f in findings:
        if f.kind not in kinds:
            continue
        key = (f.launch, str(f.kind), f.op, f.tensor, f.step)
        known = sets.setdefault(key, set())
        if f.elements is None:
            sets[key] = None
        elif known is not None:
            known.update(range(f.elements[0], f.elements[1] + 1))
    return {k: None if v is None else frozenset(v) for k, v in sets.items()}


def spans(elements: Elements) -> str:
    """A set of elements as ranges, the first four of them."""
    if not elements:
        return "no element"
    ordered = sorted(elements)
    parts: list[list[int]] = []
    for element in ordered:
        if parts and parts[-1][1] == element - 1:
            parts[-1][1] = element
        else:
            parts.append([element, element])
    said = [f"{a}..{b}" if a != b else str(a) for a, b in parts[:4]]
    return "elements " + ", ".join(said) + (" ..." if len(parts) > 4 else "")


def difference(ours: dict[Place, Elements], theirs: dict[Place, Elements]) -> str:
    """The first difference as a sentence, "" where there is none."""
    for key in sorted(ours.keys() | theirs.keys(), key=str):
        launch, kind, op, tensor, _ = key
        what = f"{kind} by {op} of {tensor} in launch {launch}"
        if key not in theirs:
            return f"{what} in the reference only"
        if key not in ours:
            return f"{what} not in the reference"
        if ours[key] != theirs[key]:
            return f"{what}: {spans(ours[key])} against {spans(theirs[key])}"
    return ""


def beyond(ours: dict[Place, Elements], theirs: dict[Place, Elements]) -> str:
    """What a lane that stops at its first fault found and the reference did not; "" for nothing.

    Such a lane sees one launch, and of it the threads that came before the end: all it names must
    be in the reference, not the other way round. A launch of -1 or no tensor is not told apart.
    """
    for (launch, kind, op, tensor, _), elements in sorted(theirs.items(), key=str):
        if tensor is None or elements is None:
            continue
        same = [
            found
            for (at, *what), found in ours.items()
            if what[:3] == [kind, op, tensor] and launch in (-1, at)
        ]
        if not any(found is None or elements <= found for found in same):
            return f"{kind} by {op} of {tensor} in launch {launch}: {spans(elements)}"
    return ""
