"""The process of an entry that is apart: `python -m … ORDER ENDED`.

Reads the order, runs the entry, moves the directory to where it is asked for, and writes last how
it ended. Without that file nothing is known of the task.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from dataclasses import asdict
from pathlib import Path

from ..errors import SpecreproError
from ..lanes.child import end_with_parent
from ..lanes.process import Children
from .entries import Work, perform
from .task import Ended


def main(arguments: list[str]) -> int:
    """Run the order in file `arguments[0]`; how it ended goes to file `arguments[1]`."""
    end_with_parent()
    order = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    directory = Path(order["directory"])
    work = Work(
        directory,
        float(order["timeout"]),
        Path(order["shared"]),
        Children(),
        tuple(order["gpus"]),
    )
    try:
        ended = perform(order["entry"], work)
    except SpecreproError as error:
        ended = Ended(infra=f"{error}" + (f" ({error.hint})" if error.hint else ""))
    except Exception as error:
        traceback.print_exc()
        ended = Ended(infra=f"{type(error).__name__}: {error}")
    if order["deliver"] is not None:
        os.rename(directory, order["deliver"])
    partial = Path(f"{arguments[1]}.partial")
    partial.write_text(json.dumps(asdict(ended)), encoding="utf-8")
    os.replace(partial, arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
