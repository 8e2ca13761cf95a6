"""The checks of a launch that can be switched. Limits are always checked."""

from __future__ import annotations

from ..errors import UsageError

ALIGNMENT = "alignment"
OWNERSHIP = "ownership"
INITIALISED = "initialised"
SHARED_RACE = "shared_race"
GLOBAL_RACE = "global_race"
BARRIER = "barrier"
BOUNDS = "bounds"

ALL = frozenset({ALIGNMENT, OWNERSHIP, INITIALISED, SHARED_RACE, GLOBAL_RACE, BARRIER})
# What a launch looks at unless it is told: where an access goes, not who else goes there.
DEFAULT = frozenset({ALIGNMENT, OWNERSHIP})


def chosen(names: frozenset[str]) -> frozenset[str]:
    """`names` with the check that is always on; UsageError on a name that is none."""
    unknown = names - ALL - {BOUNDS}
    if unknown:
        raise UsageError(
            f"no check is named {', '.join(sorted(unknown))}",
            hint=f"checks: {', '.join(sorted(ALL | {BOUNDS}))}",
        )
    return names | {BOUNDS}
