"""Member masks: whom the lanes of a warp name when they meet."""

from __future__ import annotations

import numpy as np

from .dtypes import Array
from .geometry import WARP, Geometry

BITS = np.arange(WARP, dtype=np.uint32)


def named_by(members: Array, here: Array) -> Array:
    """bool[warps, 32]: lanes that the mask of some lane in `here` names.

    members: uint32[lanes] or int32. here: bool[warps, 32].
    """
    bits = np.where(here, members.view(np.uint32).reshape(here.shape), 0)
    union = np.bitwise_or.reduce(bits, axis=1)
    named: Array = ((union[:, None] >> BITS) & 1).astype(np.bool_)
    return named


def strangers(members: Array, mask: Array | None, geometry: Geometry) -> Array:
    """Lanes of `mask` (None: all threads) whose own mask leaves them out, or that meet lanes with
    another mask.
    """
    masks = np.broadcast_to(members.view(np.uint32), geometry.lanes).reshape(-1, WARP)
    here = geometry.running if mask is None else mask
    here = np.ones(geometry.lanes, np.bool_) if here is None else here
    here = here.reshape(-1, WARP)
    named = ((masks[:, :, None] >> BITS) & 1).astype(np.bool_)
    own = named[:, BITS, BITS]
    other = masks[:, :, None] != masks[:, None, :]
    wrong = ~own | (named & other & here[:, None, :]).any(axis=2)
    return np.flatnonzero(here & wrong)
