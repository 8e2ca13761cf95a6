"""The process in which a whole script of the user runs, its Triton launches emulated.

It is `__main__`, with its own arguments and its own output. A line is written for each launch as it
ends and one at the end, so that a script that is killed leaves what was seen until then.
"""

from __future__ import annotations

import json
import runpy
import sys
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TextIO

from ..emulator.checks import INITIALISED
from ..errors import SpecreproError
from ..lanes.child import end_with_parent
from ..records import to_json
from .accesses import chosen, named
from .made_empty import told_of_empty
from .session import Emulation
from .triton_device import TritonLaunch, installed

MARK = "complete"
NO_CUDA = ("Torch not compiled with CUDA enabled", "Found no NVIDIA driver", "No CUDA GPUs")
CUDA_HINT = (
    "the script puts tensors on cuda, where the emulator cannot reach them: take the device from "
    "triton.runtime.driver.active.get_active_torch_device(), which is the CPU here"
)


def main(arguments: list[str]) -> int:
    """Run the script `arguments[2]` with what follows, but for the checks `arguments[1]`; the
    journal is `arguments[0]`.

    0 if the end was written, whatever the script's own status.
    """
    journal, skipped, script, *rest = arguments
    end_with_parent()
    run = Emulation(False, chosen(skipped.split(",") if skipped else ()))
    with Path(journal).open("w", encoding="utf-8") as out:

        def launched(asked: TritonLaunch) -> None:
            kept, warned = len(run.findings), len(run.warnings)
            try:
                run.launched(asked)
            finally:
                found = to_json(run.findings[kept:])
                if run.launches:
                    said = to_json(run.warnings[warned:])
                    launch = to_json(run.launches[-1])
                    _line(out, {"launch": launch, "findings": found, "warnings": said})

        made, left_out = named(run.checks, owners=False)
        looked_at = INITIALISED in run.checks
        with told_of_empty(run.made_empty) if looked_at else nullcontext():
            status, error, hint = _run(script, rest, launched, Path(journal).parent)
        sys.stdout.flush()
        _line(
            out,
            {
                MARK: len(run.launches),
                "status": status,
                "error": error,
                "hint": hint,
                "unkept": run.unkept,
                "tensors": run.tensors,
                "checks": made,
                "unchecked": left_out,
            },
        )
    return 0


def _run(
    script: str, rest: list[str], launched: Any, scratch: Path
) -> tuple[int, str | None, str | None]:
    """Status of the script as a shell would see it, its exception in words, and a hint."""
    sys.argv = [script, *rest]
    sys.path[0] = str(Path(script).resolve().parent)  # as `python SCRIPT` has it
    try:
        with installed(launched, scratch=scratch):
            runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        if ended.code is None:
            return 0, None, None
        if isinstance(ended.code, int):
            return ended.code & 0xFF, None, None
        print(ended.code, file=sys.stderr)
        return 1, None, None
    except SpecreproError as error:
        traceback.print_exc()
        return 1, str(error), error.hint
    except Exception as error:
        traceback.print_exc()
        words = f"{type(error).__name__}: {error}"[:1000]
        return 1, words, CUDA_HINT if any(text in words for text in NO_CUDA) else None
    return 0, None, None


def _line(out: TextIO, record: dict[str, Any]) -> None:
    out.write(json.dumps(record) + "\n")
    out.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
