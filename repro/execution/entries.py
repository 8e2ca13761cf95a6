"""What a task may run: a fixed list of functions of ours. Nothing from a case names code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from ..lanes.process import INHERITED, Children
from .task import Ended


@dataclass(frozen=True, slots=True)
class Work:
    """What an entry is given. directory: job.json and the files of the task; what the entry leaves
    there comes home, `scratch/` apart. shared: of this play on this machine, to keep what tasks
    share. gpus: that are held for this task, by uuid, or as the machine counts them. told: to be
    called now and then by an entry that works for long.
    """

    directory: Path
    timeout: float
    shared: Path
    children: Children
    gpus: tuple[str, ...] = ()
    told: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Entry:
    """A function `module:name` that takes Work and returns Ended.

    inherits: variables that its process has from the machine that it runs on, `PREFIX_*` for all
    that begin so; of the machine where the play was started none is sent. apart: it has a process
    of its own at home too, because it computes in Python.
    """

    function: str
    inherits: tuple[str, ...] = INHERITED
    apart: bool = False


# What a machine is told of its indexes and of the way to them; also where its caches are.
NETWORK = (
    *INHERITED, "PIP_*", "UV_*", "NETRC", "CUDA_HOME",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_STATE_HOME",
)  # fmt: skip
ENTRIES: Mapping[str, Entry] = {
    "lane": Entry(".lane:play"),
    "device": Entry(
        ".device:play", (*INHERITED, "CUDA_HOME", "CUDA_PATH", "CUDA_MPS_PIPE_DIRECTORY")
    ),
    "build": Entry("..check.asking:answer", NETWORK, apart=True),
    "trial": Entry("..bisection.trial_apart:answer", NETWORK, apart=True),
    "logs": Entry("..diagnose.looking:answer", apart=True),
}


def perform(name: str, work: Work) -> Ended:
    """Run an entry; KeyError for a name that is not in the list."""
    module, _, function = ENTRIES[name].function.partition(":")
    loaded = import_module(module, __package__)
    return cast(Ended, getattr(loaded, function)(work))
