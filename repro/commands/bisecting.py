"""`specrepro bisect`: the build that brought a defect of a case, or took it away."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from ..errors import UsageError
from ..escape import printable, quoted
from .looking import (
    Cache,
    DefaultOnly,
    Defects,
    Depth,
    FullDownload,
    Model,
    Offline,
    Pre,
    With,
    Yanked,
)
from .options import Json, OneCase, Quiet, Ray, Runs, Timeout, Verbose, assignments
from .search_options import (
    AllFlips,
    BadEnd,
    Budget,
    CommitIndexUrl,
    Confidence,
    CrossTest,
    Deterministic,
    FindWhat,
    GoodEnd,
    Inject,
    Jobs,
    MixHosts,
    MostTrials,
    NoAhead,
    Pin,
    Repo,
    Restart,
    Scan,
    Signature,
    Switches,
    Variant,
    Within,
)

# options that say nothing where they are as they are without being given
DEFAULTS = {"depth": "source", "confidence": 0.99, "jobs": 1}
SOUGHT = {"regression": "first_bad", "fix": "first_good"}
# `--pin` fixes what an engine decides by itself; `--with` takes every setting
SWITCHES = ("runner", "async", "prefix_caching")


def bisect(
    context: typer.Context,
    case: OneCase,
    good: GoodEnd = None,
    bad: BadEnd = None,
    find: FindWhat = None,
    vllm: Within = "",
    scan: Scan = False,
    depth: Depth = "source",
    defect: Defects = None,
    with_: With = None,
    pin: Pin = None,
    default_only: DefaultOnly = False,
    model: Model = None,
    inject: Inject = None,
    all_flips: AllFlips = False,
    signature: Signature = "",
    no_ahead: NoAhead = False,
    switches: Switches = False,
    cross_test: CrossTest = False,
    deterministic: Deterministic = False,
    pre: Pre = False,
    yanked: Yanked = False,
    repo: Repo = None,
    commit_index: CommitIndexUrl = None,
    variant: Variant = None,
    confidence: Confidence = 0.99,
    budget: Budget = None,
    max_trials: MostTrials = None,
    jobs: Jobs = 1,
    ray: Ray = None,
    mix_hosts: MixHosts = False,
    restart: Restart = False,
    cache: Cache = None,
    offline: Offline = False,
    allow_full_download: FullDownload = False,
    timeout: Timeout = None,
    runs: Runs = None,
    json_: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find the release, or the commit, at which a defect of a case begins or ends."""
    from .. import store
    from ..bisection.candidates import Wish, direction
    from ..bisection.costs import READING, Costs
    from ..bisection.investigation import investigate
    from ..bisection.plan import EXACT, Plan, variant_of, wanted, wheels_at
    from ..bisection.question import Find, Options
    from ..bisection.trials import as_place
    from ..case import load_cases
    from ..check import survey
    from ..check.apart import Apart, How, at_home
    from ..check.builds import Builds
    from ..check.depths import depth_of
    from ..check.engine.injection import injection
    from ..check.environments.ahead import Ahead
    from ..check.environments.session import Environments
    from ..execution.choice import Choice
    from ..report.bisect_document import bisect_document
    from ..report.bisect_page import print_bisect
    from ..report.console import console, print_json
    from ..report.markdown import markdown

    if find is not None and find not in SOUGHT:
        raise UsageError(f"--find is {' or '.join(SOUGHT)}, not {quoted(find)}")
    if scan and depth not in EXACT:
        raise UsageError(f"--scan tries every build, which depth {depth} makes too dear")
    if signature and depth != "engine":
        raise UsageError("--signature is of an engine that runs", hint="--depth engine")
    loaded = load_cases([case])
    if len(loaded) != 1:
        raise UsageError(f"{quoted(case)} holds {len(loaded)} cases; bisect takes one")
    question = survey.questions(loaded[0], defect or (), _fixed(with_, pin), default_only)
    sought = direction(good, bad, Find(SOUGHT[find]) if find else None, scan=scan)
    first_bad = sought is Find.FIRST_BAD
    oldest, newest = (good, bad) if first_bad else (bad, good)
    options = Options(
        find=sought,
        exact=depth in EXACT,
        deterministic=deterministic,
        confidence=confidence,
        ends_given=good is not None,
        budget_seconds=budget,
        budget_trials=max_trials,
        jobs=jobs,
        mix_hosts=mix_hosts,
        costs=READING if depth in EXACT else Costs(),
    )
    if ray is not None and (switches or cross_test):
        raise UsageError(
            "--switches and --cross-test are tried on this machine, and its trials are not those "
            "of a cluster",
            hint="ask them without --ray",
        )
    alone = ray is None and jobs == 1
    with _narrowing(quiet or json_) as (told, shown), ExitStack() as held:
        looking = depth_of(depth, model=model, inject=inject, cache=cache, told=told)
        builds = held.enter_context(
            Builds(
                cache=cache,
                offline=offline,
                allow_full_download=allow_full_download,
                told=told,
            )
        )
        how = How(depth, model, False, inject, False, cache, offline, allow_full_download)
        plan = Plan(
            case=loaded[0],
            depth=looking,
            question=question,
            wish=Wish(vllm, oldest, newest, pre, yanked, allow_full_download),
            options=options,
            scan=scan,
            again=_again(context.params),
            repo=repo,
            commit_index=wheels_at(depth, repo, commit_index),
            variant=variant_of(depth, repo, variant),
            seconds=timeout,
            model=model,
            injected=injection(inject).record() if inject else None,
            apart=Apart(how, Choice(jobs, ray)) if not alone else None,
            place=as_place(at_home(depth)),
            signature=signature,
            all_flips=all_flips,
            ahead=None
            if no_ahead or not alone or depth in EXACT
            else held.enter_context(Ahead()).hold,
        )
        if switches or cross_test:
            beside = held.enter_context(Environments(told=told)) if cross_test else None
            plan = replace(plan, closer=wanted(plan, switches=switches, environments=beside))
        folder = store.runs_folder(runs)
        report = investigate(plan, builds, folder, anew=restart, told=told, shown=shown)
    path = Path(report.record["run"]["path"]) / "report.md"
    path.write_text(markdown(bisect_document(report.record)), encoding="utf-8")
    if json_:
        print_json(report.record)
    else:
        print_bisect(console(), report.record, quiet=quiet, verbose=verbose)
    raise typer.Exit(int(report.status))


def _fixed(with_: list[str] | None, pin: list[str] | None) -> dict[str, str]:
    """Settings of both options: at a depth that runs nothing a pin is a setting like others."""
    fixed, pinned = assignments(with_, "--with"), assignments(pin, "--pin")
    for name in pinned:
        if name not in SWITCHES:
            raise UsageError(
                f"--pin fixes {', '.join(SWITCHES)}, not {quoted(name)}",
                hint="--with NAME=VALUE fixes any setting of the question",
            )
        if fixed.get(name, pinned[name]) != pinned[name]:
            raise UsageError(f"--with and --pin say two things of {name}")
    return fixed | pinned


@contextmanager
def _narrowing(silent: bool) -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """What takes a line about what goes on, and one about a trial that ended; both on stderr."""
    from ..report.console import console

    out = console(stderr=True)
    if silent:
        yield (lambda line: None), (lambda line: None)
        return

    def ended(line: str) -> None:
        out.print(printable(line), soft_wrap=True)

    if not out.is_terminal or out.is_dumb_terminal:
        yield (lambda line: None), ended
        return
    with out.status("looking for the builds") as status:
        yield (lambda line: status.update(printable(line))), ended


def _again(given: Mapping[str, Any]) -> str:
    """The command line that asks the same, with the options that were given and no secret."""
    from ..check.web import shown

    words = ["specrepro", "bisect", str(given["case"])]
    for name in (
        "good", "bad", "find", "vllm", "scan", "depth", "defect", "with_", "pin", "default_only",
        "all_flips", "model", "inject", "signature", "switches", "cross_test", "deterministic",
        "pre", "yanked", "repo", "commit_index", "variant", "confidence", "budget", "max_trials",
        "jobs", "ray", "no_ahead", "mix_hosts", "cache", "offline", "allow_full_download",
        "timeout", "runs",
    ):  # fmt: skip
        option, value = "--" + name.strip("_").replace("_", "-"), given[name]
        if value is True:
            words.append(option)
        elif value not in (None, False, "", (), []) and value != DEFAULTS.get(name):
            for one in value if isinstance(value, list | tuple) else [value]:
                said = str(one).removesuffix(".0") if isinstance(one, float) else str(one)
                words += [option, shown(said) if name == "commit_index" else said]
    return shlex.join(words)
