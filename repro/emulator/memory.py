"""Addresses to bytes, with every access checked: limits, alignment, owners."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np

from ..errors import UnsupportedError
from ..ops import EVERYBODY
from ..records import Kind
from .checks import ALIGNMENT, INITIALISED, OWNERSHIP, SHARED_RACE
from .copies import Copies, Copy
from .distinct import distinct
from .dtypes import Array
from .geometry import Geometry
from .initialised import carry, complete, mark, missing
from .report import Recorder
from .shared_races import SharedRaces
from .sites import Site
from .storage import LOCAL_TAG, SHARED_TAG, TAG_BITS, Storage

GENERIC, SHARED, LOCAL = "generic", "shared", "local"


class Piece(NamedTuple):
    """Accesses that go through: records[at], for the accesses `which` (None: all of them)."""

    records: Array
    at: Array
    which: Array | None


class Memory:
    """All memory of one batch of blocks. grain: log2 of the width of the narrowest access."""

    def __init__(
        self,
        buffers: list[Storage],
        shared: Storage,
        local: Storage,
        geometry: Geometry,
        recorder: Recorder,
        grain: int = 0,
    ) -> None:
        self.spaces = {SHARED: shared, LOCAL: local}
        self.storages = {storage.base >> TAG_BITS: storage for storage in buffers}
        self.storages[SHARED_TAG] = shared
        self.storages[LOCAL_TAG] = local
        self.geometry = geometry
        self.recorder = recorder
        self.copies = Copies(geometry.lanes)
        self.alignment = ALIGNMENT in recorder.checks
        self.owners_matter = recorder.requests is not None and OWNERSHIP in recorder.checks
        self.initialised = INITIALISED in recorder.checks
        self.races: SharedRaces | None = None
        if SHARED_RACE in recorder.checks and shared.size:
            self.races = SharedRaces(shared, geometry, recorder, grain, self.copies)
            shared.watch = self.races.touch

    def resolve(
        self,
        site: Site,
        addresses: Array,
        lanes: Array | None,
        values: tuple[Array, ...] = (),
    ) -> list[Piece]:
        """The records behind `addresses` (int64[accesses]), wrong ones recorded and left out.

        lanes: the lane of each access; None: access i is lane i's, or one address for all lanes.
        In shared and local space an address is an offset. values: of a store, what is stored: for
        each element an array of one value a lane of the batch, or of one value.
        """
        if site.space == GENERIC:
            storage = self.storages.get(int(addresses[0]) >> TAG_BITS)
            base = 0
        else:
            storage = self.spaces[site.space]
            base = storage.base
        if storage is not None:
            if storage.frozen and site.writes:
                _refuse(storage, site)
            start, limit, shift, records = storage.window(site.key)
            offsets = addresses - (start - base)
            # All bits of all: no less than the greatest, and negative where one of them is.
            bits = int(offsets[0] if offsets.size == 1 else np.bitwise_or.reduce(offsets))
            if (
                not bits & (site.width - 1)
                and bits >= 0
                and (bits <= limit or int(np.maximum.reduce(offsets)) <= limit)
                and (not self.owners_matter or self._owned(site, storage, offsets, lanes))
            ):
                if storage.starts is not None:
                    starts = storage.starts
                    if lanes is not None and starts.size > 1:
                        starts = starts[lanes]
                    offsets = offsets + starts
                at = offsets >> shift
                if storage.marks is not None and not site.keeps:
                    self._mark(site, storage, at, lanes)
                if storage.watch is not None:
                    storage.watch(site, at, lanes, values)
                return [Piece(records, at, None)]
        return self._resolve(site, addresses + base if base else addresses, lanes, values)

    def begin(self, copy: Copy) -> None:
        """A copy to shared memory has been issued: until it lands nobody may touch its target."""
        if self.races is None:
            return
        offsets = copy.addresses
        inside = (offsets >= 0) & (offsets + copy.site.width <= self.spaces[SHARED].size)
        inside &= (offsets & (copy.site.width - 1)) == 0
        starts = self.spaces[SHARED].starts
        rows = 0 if starts is None else np.broadcast_to(starts, self.geometry.lanes)[copy.lanes]
        at = (offsets + rows)[inside] // copy.site.width
        self.races.issue(copy.site, at, copy.lanes[inside], copy.spread(self.geometry.lanes))

    def written(self, addresses: Array, width: int) -> Array | None:
        """uint8[accesses, width]: whether somebody wrote the bytes there; None: all of them."""
        found: Array | None = None
        tags = addresses >> TAG_BITS
        for tag in distinct(tags):
            storage = self.storages.get(int(tag))
            if storage is None or storage.marks is None:
                continue
            offsets = addresses - storage.base
            which = ((tags == tag) & (offsets >= 0) & (offsets + width <= storage.size)).nonzero()[
                0
            ]
            if found is None:
                found = np.ones((addresses.size, width), np.uint8)
            found[which] = storage.marks[offsets[which][:, None] + np.arange(width)]
        return found

    def carry(self, site: Site, at: Array, source: Array | None) -> None:
        """What is copied to records of shared memory takes its marks along (None: all set)."""
        storage = self.spaces[SHARED]
        if storage.marks is not None:
            carry(storage, site.width, at, source)

    def _mark(self, site: Site, storage: Storage, at: Array, lanes: Array | None) -> None:
        """Look whether what is read was written, and note what is written.

        at: records of the site's width. Of a read only bytes that nobody wrote are wrong.
        """
        if self.initialised and site.reads and not complete(storage, site.width, at):
            lanes = self.geometry.lane if lanes is None else lanes
            at = np.broadcast_to(at, lanes.shape)
            offsets, which = missing(storage, site.width, at)
            if storage.starts is not None:
                offsets = offsets % (storage.data.size // storage.rows)
            self.recorder.add(
                Kind.UNINITIALISED_READ,
                site.place,
                storage,
                offsets,
                lanes[which],
                site.width,
                self.geometry,
                span=1,
            )
        if site.writes:
            mark(storage, site, at)

    def _owned(self, site: Site, storage: Storage, offsets: Array, lanes: Array | None) -> bool:
        """Whether no access at `offsets`, all inside, is foreign; False where that takes more."""
        owners = storage.owners
        if owners is None:
            return True
        unit = owners.unit * storage.itemsize
        if unit % site.width or storage.base % site.width:
            return False  # a record may lie in two units
        owner = owners.of[offsets // unit]
        request = self.requests if lanes is None else self.requests[lanes]
        foreign = owner != request
        if not np.logical_or.reduce(foreign):
            return True
        foreign &= (owner != EVERYBODY) & (request != EVERYBODY)
        return not np.logical_or.reduce(foreign)

    @cached_property
    def requests(self) -> Array:
        """int32[lanes]: the request each lane works for."""
        if self.recorder.requests is None:
            return np.full(self.geometry.lanes, EVERYBODY, np.int32)
        return np.broadcast_to(self.recorder.requests[self.geometry.column], self.geometry.lanes)

    def _resolve(
        self, site: Site, addresses: Array, lanes: Array | None, values: tuple[Array, ...]
    ) -> list[Piece]:
        """The same for accesses of which some are wrong or in different storages."""
        if lanes is None:
            lanes = self.geometry.lane
        if addresses.size != lanes.size:
            addresses = np.broadcast_to(addresses, lanes.shape)
        tags = addresses >> TAG_BITS
        first = int(tags[0])
        if not np.logical_or.reduce(tags != first):
            return self._one(site, self.storages.get(first), addresses, lanes, None, values)
        pieces = []
        for tag in distinct(tags).tolist():
            which = (tags == tag).nonzero()[0]
            pieces += self._one(
                site, self.storages.get(tag), addresses[which], lanes[which], which, values
            )
        return pieces

    def _one(
        self,
        site: Site,
        storage: Storage | None,
        addresses: Array,
        lanes: Array,
        which: Array | None,
        values: tuple[Array, ...],
    ) -> list[Piece]:
        """The same for the accesses `which` (None: all), to one storage or to none."""
        if storage is None:
            self._wrong(kind_outside(site, None), site, None, addresses, lanes)
            return []
        if storage.frozen and site.writes:
            _refuse(storage, site)
        offsets = addresses - storage.base
        wrong = (addresses & (site.width - 1)) != 0
        misaligned = wrong.nonzero()[0]
        if misaligned.size:
            if not self.alignment:
                raise UnsupportedError(
                    "a misaligned access, with the check of alignment off",
                    where=f"{site.place.file}:{site.place.line}",
                )
            self._wrong(
                Kind.MISALIGNED_ACCESS, site, storage, offsets[misaligned], lanes[misaligned]
            )
        outside = (offsets < 0) | (offsets > storage.size - site.width)
        pieces = []
        beyond = (outside & ~wrong if misaligned.size else outside).nonzero()[0]
        if beyond.size:
            far = offsets[beyond]
            self._wrong(kind_outside(site, storage), site, storage, far, lanes[beyond])
            pieces += self._behind(site, storage, far, beyond if which is None else which[beyond])
        good = (~(outside | wrong)).nonzero()[0]
        if good.size:
            pieces.append(
                self._through(
                    site,
                    storage,
                    addresses[good],
                    lanes[good],
                    good if which is None else which[good],
                    values,
                )
            )
        return pieces

    def _through(
        self,
        site: Site,
        storage: Storage,
        addresses: Array,
        lanes: Array,
        which: Array,
        values: tuple[Array, ...],
    ) -> Piece:
        """The same for the accesses `which`, all within their storage and aligned."""
        start, _, shift, records = storage.window(site.key)
        at = addresses - start
        if self.owners_matter and not self._owned(site, storage, at, lanes):
            self._check_owners(site, storage, addresses - storage.base, lanes)
        if storage.starts is not None:
            starts = storage.starts
            at = at + (starts[lanes] if starts.size > 1 else starts)
        at = at >> shift
        if storage.marks is not None and not site.keeps:
            self._mark(site, storage, at, lanes)
        if storage.watch is not None:
            storage.watch(site, at, lanes, values)
        return Piece(records, at, which)

    def _behind(self, site: Site, storage: Storage, offsets: Array, which: Array) -> list[Piece]:
        """Of reads outside, those of what is known to lie behind the storage."""
        if storage.behind is None or site.writes:
            return []
        beyond = offsets - storage.size
        stated = (beyond >= 0) & (beyond + site.width <= storage.behind.size)
        if not stated.any():
            return []
        dtype, elements = site.key
        raw = storage.behind[beyond[stated][:, None] + np.arange(site.width)]
        records = np.ascontiguousarray(raw).view(dtype).reshape(-1, elements)
        count = len(records)
        return [Piece(records if elements > 1 else records[:, 0], np.arange(count), which[stated])]

    def _check_owners(self, site: Site, storage: Storage, offsets: Array, lanes: Array) -> None:
        if storage.owners is None:
            return
        unit, of = storage.owners.unit, storage.owners.of
        request = self.requests[lanes]
        step = min(site.width, storage.itemsize)
        starts = offsets[:, None] + np.arange(0, site.width, step)
        elements = starts // storage.itemsize
        owner = of[elements // unit]
        known = request != EVERYBODY
        foreign = (owner != request[:, None]) & (owner != EVERYBODY) & known[:, None]
        if foreign.any():
            self.recorder.add(
                Kind.FOREIGN_WRITE if site.writes else Kind.FOREIGN_READ,
                site.place,
                storage,
                elements[foreign] * storage.itemsize,
                np.broadcast_to(lanes[:, None], foreign.shape)[foreign],
                site.width,
                self.geometry,
                span=storage.itemsize,
            )

    def _wrong(
        self, kind: Kind, site: Site, storage: Storage | None, offsets: Array, lanes: Array
    ) -> None:
        self.recorder.add(kind, site.place, storage, offsets, lanes, site.width, self.geometry)


def _refuse(storage: Storage, site: Site) -> NoReturn:
    """A kernel writes to a constant variable or a parameter, which is undefined."""
    raise UnsupportedError(
        f"a write to {storage.name}, which is constant",
        where=f"{site.place.file}:{site.place.line}",
    )


def kind_outside(site: Site, storage: Storage | None) -> Kind:
    """What an access that is not within `storage` (None: any) is."""
    if storage is not None and storage.base >> TAG_BITS == SHARED_TAG:
        return Kind.SHARED_OUT_OF_BOUNDS
    return Kind.OUT_OF_BOUNDS_WRITE if site.writes else Kind.OUT_OF_BOUNDS_READ
