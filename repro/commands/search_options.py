"""The options of `specrepro bisect` that no other command has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

GoodEnd = Annotated[
    str | None,
    typer.Option("--good", metavar="VERSION", help="A release without the defect [walks back]."),
]
BadEnd = Annotated[
    str | None,
    typer.Option("--bad", metavar="VERSION", help="A release with the defect [the newest]."),
]
FindWhat = Annotated[
    str | None,
    typer.Option("--find", metavar="regression|fix", help="[by the order of the ends]"),
]
Within = Annotated[
    str,
    typer.Option("--vllm", metavar="RANGE", help="Search in 0.11.0..0.33.0 only, or in a list."),
]
Pin = Annotated[
    list[str] | None,
    typer.Option("--pin", metavar="NAME=VALUE", help="Fix a switch of the engine in every build."),
]
Scan = Annotated[
    bool, typer.Option("--scan", help="Try every build and print them all, not only a boundary.")
]
Repo = Annotated[
    Path | None,
    typer.Option("--repo", metavar="DIR", help="A clone of vLLM: go on to the commit."),
]
CommitIndexUrl = Annotated[
    str | None,
    typer.Option(
        "--commit-index",
        metavar="URL",
        envvar="SPECREPRO_COMMIT_INDEX",
        help="Where wheels of commits are [vLLM's; depth source reads the clone].",
    ),
]
Variant = Annotated[
    str | None,
    typer.Option("--variant", metavar="NAME", help="Which wheels of a commit, as in cu130."),
]
Inject = Annotated[
    str | None,
    typer.Option(
        "--inject",
        metavar="CHANGE@RANGE",
        help="Depth engine: a boundary of our making, to try the search out.",
    ),
]
Deterministic = Annotated[
    bool,
    typer.Option("--deterministic", help="Every trial of a bad build shows it: one trial an end."),
]
Confidence = Annotated[
    float, typer.Option("--confidence", help="Where a trial does not decide: when to stop.")
]
Budget = Annotated[
    float | None,
    typer.Option("--budget", metavar="SECONDS", min=0.1, help="Stop after so long, resumable."),
]
MostTrials = Annotated[
    int | None, typer.Option("--max-trials", metavar="N", min=1, help="Stop after N trials.")
]
Jobs = Annotated[
    int, typer.Option("--jobs", metavar="N", min=1, max=64, help="Try N builds at once.")
]
MixHosts = Annotated[
    bool,
    typer.Option("--mix-hosts", help="Weigh trials of different GPUs and drivers together."),
]
Restart = Annotated[
    bool, typer.Option("--restart", help="Begin anew, although the same search was begun before.")
]
AllFlips = Annotated[
    bool, typer.Option("--all-flips", help="Go into every change that a trial shows, not one.")
]
Signature = Annotated[
    str,
    typer.Option(
        "--signature",
        metavar="TEXT",
        help="Depth engine: look for this failure, or `hang`, in place of the case's sign.",
    ),
]
NoAhead = Annotated[
    bool,
    typer.Option("--no-ahead", help="Depth engine: make no environments while a trial runs."),
]
Switches = Annotated[
    bool,
    typer.Option(
        "--switches", help="Depth engine: which switch of the engine carries it at the boundary."
    ),
]
CrossTest = Annotated[
    bool,
    typer.Option(
        "--cross-test", help="Depth engine: try each build with the packages of the other."
    ),
]
