"""Starts one command and ends whatever is left of it: `python -I -S reaper.py SCRATCH COMMAND...`.

An engine's workers outlive the process that started them, and may leave its group and session. This
process is made the reaper of its orphans, so none of them can get out of its reach. It ends all of
them when the command has ended, and at once when its own stdin is closed, which happens however
its parent ends; then it removes the folder SCRATCH, which nobody else may be left to do. One JSON
object on stdout: `status` (negative: a signal), `left` (how many processes were still there),
`contained` (whether the system made it their reaper).

Standard library only; it is started as a file.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 0.05  # seconds between two looks
IGNORED = (signal.SIGINT, signal.SIGHUP)
# how often what is left is killed again: each time its orphans have become children of this one
MOST_ROUNDS = 200


def become_reaper() -> bool:
    try:
        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False


def children() -> list[int]:
    """Processes whose parent is this one."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # the name may hold spaces and brackets; the state and the parent follow it
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # it ended meanwhile
            if int(fields[1]) == os.getpid():
                found.append(int(name))
    return found


def collect() -> bool:
    """Take the statuses of children that have ended; whether any are left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def end_all() -> int:
    """Kill until nothing is left; how many processes that were."""
    killed: set[int] = set()
    for _ in range(MOST_ROUNDS):
        if not collect():
            break
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            except ProcessLookupError:
                continue
        time.sleep(PATIENCE / 5)
    return len(killed)


def default_signals() -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)


def main() -> None:
    contained = become_reaper()
    # only the parent's end, or its wish, ends this process
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen(
        sys.argv[2:],
        stdin=subprocess.DEVNULL,
        stdout=2,
        stderr=2,
        start_new_session=True,
        preexec_fn=default_signals,
    )
    status: int | None = None
    while status is None:
        status = child.poll()
        if status is None and select.select([0], [], [], PATIENCE)[0] and not os.read(0, 1):
            break
    if status is None or not contained:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            contained = contained or status is not None
        if status is None:
            child.wait()
    left = end_all()
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    print(json.dumps({"status": status, "left": left, "contained": contained}), flush=True)


if __name__ == "__main__":
    main()
