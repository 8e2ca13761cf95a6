"""What runs under the tool in a test: places a tensor, launches three times, keeps its journal.

Arguments: the journal, and how it ends: `well`; `fault`, in its third launch; `caught`, the same
with status 0; `early`, before its mark.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specrepro.repro.sanitizer.journal import Writer

BASE = 0x7F0000000000


def main(path: str, how: str) -> int:
    with Path(path).open("w", encoding="utf-8") as out:
        writer = Writer(out)
        writer.tensor("key_cache", BASE, 1024, 2, (BASE - (1 << 30), BASE + (1 << 30)))
        for launch in range(3):
            writer.launch(launch, "kv_write", "kv_write", 7 + launch, [0, 1, 1, 2])
            if launch == 2 and how in ("fault", "caught"):
                return int(how == "fault")
            writer.ended(launch)
        if how != "early":
            writer.complete()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
