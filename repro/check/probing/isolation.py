"""Locks the process it runs in, before code of a build is executed. Linux; every step says itself
whether it holds, and nothing is assumed.

Layers, each enough to stop what the others miss: resource limits; a network namespace of its own;
landlock (files: some folders may be read, nothing written); seccomp (no socket, no new process, no
signal to others, no write access to a file).
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
MEMORY = 2 << 30  # bytes of address space

# Kernel ABI: include/uapi/linux/landlock.h. Numbers of system calls are the same everywhere.
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_VERSION, LANDLOCK_PATH_BENEATH = 1, 1
READ_FILE, READ_DIR = 1 << 2, 1 << 3
# access rights known by version of the ABI, as the number of bits
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
NET_RIGHTS = 0b11  # bind and connect TCP, from version 4
SCOPES = 0b11  # abstract sockets and signals, from version 6

# machine → (audit architecture, system calls that are refused, {open-like: index of its flags})
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
REFUSED = {
    "x86_64": {
        "socket": 41, "socketpair": 53, "connect": 42, "bind": 49, "clone": 56, "fork": 57,
        "vfork": 58, "execve": 59, "kill": 62, "truncate": 76, "rename": 82, "mkdir": 83,
        "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "chmod": 90,
        "chown": 92, "ptrace": 101, "mknod": 133, "mount": 165, "keyctl": 250, "unlinkat": 263,
        "mkdirat": 258, "mknodat": 259, "renameat": 264, "linkat": 265, "symlinkat": 266,
        "fchmodat": 268, "tkill": 200, "tgkill": 234, "unshare": 272, "setns": 308,
        "process_vm_readv": 310, "process_vm_writev": 311, "renameat2": 316, "bpf": 321,
        "execveat": 322, "userfaultfd": 323, "perf_event_open": 298, "shmget": 29,
        "pidfd_send_signal": 424, "io_uring_setup": 425, "pidfd_open": 434, "clone3": 435,
        "openat2": 437, "pidfd_getfd": 438,
    },
    "aarch64": {
        "socket": 198, "socketpair": 199, "bind": 200, "connect": 203, "clone": 220,
        "execve": 221, "kill": 129, "tkill": 130, "tgkill": 131, "truncate": 45, "mknodat": 33,
        "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38,
        "mount": 40, "fchmodat": 53, "unshare": 97, "ptrace": 117, "keyctl": 219,
        "perf_event_open": 241, "setns": 268, "process_vm_readv": 270,
        "process_vm_writev": 271, "renameat2": 276, "bpf": 280, "execveat": 281,
        "userfaultfd": 282, "shmget": 194, "pidfd_send_signal": 424, "io_uring_setup": 425,
        "pidfd_open": 434, "clone3": 435, "openat2": 437, "pidfd_getfd": 438,
    },
}  # fmt: skip
OPENS = {"x86_64": {2: 1, 257: 2}, "aarch64": {56: 2}}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# classic BPF: load a word, jump if equal, jump if a bit is set, return
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000  # REFUSE: EPERM


def lock(
    readable: Sequence[Path], seconds: int, memory: int = MEMORY
) -> tuple[list[str], list[str]]:
    """Give up what is not needed; (what holds, what does not and why). Cannot be undone.

    readable: folders that may still be read. seconds: limit of CPU time. memory: in bytes.
    """
    holds, fails = [f"limits ({seconds} s of CPU, {memory >> 30} GiB)"], []
    limits(seconds, memory)
    if not sys.platform.startswith("linux"):
        return holds, [f"network, files: not on {sys.platform}"]
    libc = ctypes.CDLL(None, use_errno=True)
    layers: tuple[tuple[str, Callable[[], None]], ...] = (
        ("network namespace", partial(_namespace, libc)),
        ("no new privileges", partial(_no_new_privileges, libc)),
        ("landlock", partial(_landlock, libc, readable)),
        ("seccomp", partial(_seccomp, libc)),
    )
    for name, layer in layers:
        try:
            layer()
        except OSError as error:
            fails.append(f"{name}: {error.strerror or error}")
        else:
            holds.append(name)
    return holds, fails


def limits(seconds: int, memory: int = MEMORY) -> None:
    """Limits of resources. NPROC does not bind root; seccomp refuses new processes to all."""
    for name, value in (
        ("CPU", seconds),
        ("AS", memory),
        ("NOFILE", 64),
        ("NPROC", 0),
        ("FSIZE", 0),
        ("CORE", 0),
    ):
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            continue
        _, hard = resource.getrlimit(kind)
        low = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # a second more before the kill, so that the signal of the soft limit is what is seen
        high = low + 1 if name == "CPU" and hard == resource.RLIM_INFINITY else low
        try:
            resource.setrlimit(kind, (low, high))
        except (OSError, ValueError):
            continue  # macOS refuses some; the parent's time-out stands behind all of them


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _namespace(libc: ctypes.CDLL) -> None:
    _check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNET))


def _no_new_privileges(libc: ctypes.CDLL) -> None:
    _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def _landlock(libc: ctypes.CDLL, readable: Sequence[Path]) -> None:
    version = _check(libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION))
    files = (1 << FILE_RIGHTS.get(version, FILE_RIGHTS[5])) - 1
    net = NET_RIGHTS if version >= 4 else 0
    scopes = SCOPES if version >= 6 else 0
    known = 8 if version < 4 else 16 if version < 6 else 24  # bytes of the structure
    rules = struct.pack("=QQQ", files, net, scopes)[:known]
    ruleset = _check(libc.syscall(LANDLOCK_CREATE_RULESET, rules, len(rules), 0))
    try:
        for folder in readable:
            if not folder.is_dir():
                continue
            opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            try:
                rule = struct.pack("=Qi", READ_FILE | READ_DIR, opened)
                _check(libc.syscall(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_PATH_BENEATH, rule, 0))
            finally:
                os.close(opened)
        _check(libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _seccomp(libc: ctypes.CDLL) -> None:
    machine = os.uname().machine
    if machine not in AUDIT or struct.calcsize("P") != 8:
        raise OSError(0, f"no filter for {machine}")
    code = program(machine)
    words = b"".join(struct.pack("=HBBI", *step) for step in code)
    buffer = ctypes.create_string_buffer(words)

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    given = Filter(len(code), ctypes.addressof(buffer))
    _check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(given), 0, 0))


def program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter as (code, jump if true, jump if false, value). It refuses what is named and lets
    the rest pass: an interpreter needs more calls than could be listed for every C library."""
    steps = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, AUDIT[machine]), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    if machine == "x86_64":  # the x32 numbers, which would go round the list
        steps += [(0x35, 0, 1, 0x40000000), (RETURN, 0, 0, KILL)]
    for number in sorted(REFUSED[machine].values()):
        steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    for number, argument in OPENS[machine].items():
        steps += [
            (EQUAL, 0, 4, number),
            (LOAD, 0, 0, 16 + 8 * argument),
            (ANY_BIT, 0, 1, WRITING),
            (RETURN, 0, 0, REFUSE),
            (RETURN, 0, 0, ALLOW),
        ]
    return [*steps, (RETURN, 0, 0, ALLOW)]
