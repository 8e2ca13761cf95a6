"""What it takes to place a tensor on GPU 0 of this process, and to give its memory back, in each
placement of the lanes: placed_tensors.py COUNT

Prints JSON: microseconds a tensor, the median of ROUNDS, of the driver's calls alone (nothing is
copied). The first round is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import Any

from specrepro.repro.lanes.cuda_driver import Driver
from specrepro.repro.lanes.cuda_memory import Apart, Arena, Places

ROUNDS = 5
SIZES = (4 << 10, 2 << 20)  # bytes: of which hundreds share a page, and of which none does


def placed(driver: Driver, places: Places, size: int, count: int) -> tuple[float, float]:
    """Microseconds a tensor to place it, and to give it back."""
    began = time.perf_counter()
    pieces = [places.piece(size) for _ in range(count)]
    middle = time.perf_counter()
    for piece in pieces:
        if (held := piece.pages) is not None:
            driver.unmap(held.address, held.size, held.handle, held.reserved, held.width)
    ended = time.perf_counter()
    return (middle - began) * 1e6 / count, (ended - middle) * 1e6 / count


def main(count: int) -> int:
    driver = Driver()
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        for name, make in (("unmapped", Apart), ("neighbour", Arena)):
            times = [placed(driver, make(driver), size, count) for _ in range(ROUNDS + 1)][1:]
            row: dict[str, Any] = {"placement": name, "bytes": size}
            row["placing"] = round(median(one for one, _ in times), 1)
            # an arena gives nothing back before the process ends
            back = round(median(one for _, one in times), 1)
            rows.append(row | {"giving_back": back if make is Apart else None})
    record = {"count": count, "granularity": driver.granularity(), "rows": rows}
    print(json.dumps(record))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
