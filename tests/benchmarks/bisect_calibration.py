"""What a bisection costs and how often it is right, on histories whose fault is known.

python tests/benchmarks/bisect_calibration.py [ROUNDS]
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from fake_world import World, play, switches
from page import BISECTION, table, write

from specrepro.repro.bisection.costs import Costs
from specrepro.repro.bisection.question import Kind, Options, Trial
from specrepro.repro.bisection.search import Search
from specrepro.repro.bisection.verdicts import Bad, Observation, Untestable

LIMIT = 20_000  # trials
TRIAL, CHANGE = 60.0, 240.0  # seconds: a change of build is priced as four trials
PRICED = Costs(TRIAL, CHANGE, CHANGE)
LEAST = 0.1
RATES = (1.0, 0.95, 0.9, 0.6, 0.3, 0.1, None)
PRIOR_ROUNDS = 3  # times as many histories, of which each has a rate of its own


@dataclass(frozen=True)
class Cost:
    """One search. answered: it named one build; confidence: what it said of it."""

    right: bool
    answered: bool
    trials: int
    changes: int
    confidence: float
    candidates: int = 1


def searched(world: World, options: Options) -> Cost:
    result, seen = play(Search(world.builds, options=options), world, LIMIT)
    answered = result.kind is Kind.FIRST_BAD
    right = answered and result.build == f"b{world.first_bad}"
    if result.candidates and not answered:
        right = f"b{world.first_bad}" in result.candidates
    return Cost(
        right, answered, len(seen), switches(seen), result.confidence, len(result.candidates)
    )


def halved(world: World, clean: int) -> Cost:
    """Plain halving, where `clean` trials without the fault make a build good; ends untried."""
    low, high, trials = 0, world.length - 1, 0
    changes = 0
    while high - low > 1:
        middle = (low + high) // 2
        changes += 1
        number = 0
        bad = False
        while number < clean and not bad:
            number += 1
            bad = isinstance(world.verdict(Trial(f"b{middle}", number, "")), Bad)
        trials += number
        low, high = (low, middle) if bad else (middle, high)
    return Cost(high == world.first_bad, True, trials, changes, 1.0)


def nearest(world: World) -> Cost:
    """Halving that goes from an untestable middle to the nearest build not tried; ends untried."""
    low, high = 0, world.length - 1
    out: set[int] = set()
    seen: list[Observation] = []
    while left := [i for i in range(low + 1, high) if i not in out]:
        at = min(left, key=lambda i: (abs(i - (low + high) // 2), i))
        seen.append(world.observe(Trial(f"b{at}", 1, "")))
        if isinstance(seen[-1].verdict, Untestable):
            out.add(at)
        elif isinstance(seen[-1].verdict, Bad):
            high = at
        else:
            low = at
    return Cost(low < world.first_bad <= high, True, len(seen), len(seen), 1.0, high - low)


def share(flags: Iterable[bool]) -> str:
    return f"{100 * mean(flags):.1f}".removesuffix(".0") + " %"


def spread(numbers: Sequence[int]) -> str:
    return f"{mean(numbers):.1f} ({sorted(numbers)[int(len(numbers) * 0.9)]}, {max(numbers)})"


def worlds(rounds: int, p: float | None, length: int = 128) -> list[World]:
    """p None: drawn evenly from LEAST to 1."""
    chance = random.Random(1)  # noqa: S311
    found = []
    for number in range(rounds):
        first, drawn = chance.randrange(1, length), chance.uniform(LEAST, 1)
        found.append(World(length, first, p=drawn if p is None else p, seed=number))
    return found


def from_the_prior(rounds: int, length: int = 128) -> list[World]:
    """Histories as the search expects them: half of the faults always show, the others in a share
    that is anything from 0 to 1."""
    chance = random.Random(3)  # noqa: S311
    return [
        World(
            length,
            chance.randrange(1, length),
            p=1.0 if chance.random() < Options().flaky else chance.random(),
            seed=number,
        )
        for number in range(rounds)
    ]


def expected(rounds: int) -> list[str]:
    """What is said of how sure an answer is, beside how often it is right."""
    made = from_the_prior(PRIOR_ROUNDS * rounds)
    every = [(world, searched(world, Options(costs=PRICED))) for world in made]
    rows = []
    for name, chosen in (
        ("all", every),
        ("always", [(w, c) for w, c in every if w.p == 1]),
        ("in 50 % or more", [(w, c) for w, c in every if 0.5 <= w.p < 1]),
        ("in less", [(w, c) for w, c in every if w.p < 0.5]),
    ):
        named = [cost for _, cost in chosen if cost.answered]
        rows.append(
            (
                name,
                f"{len(chosen)}",
                f"{len(named)}",
                share(cost.right for cost in named),
                f"{100 * mean(cost.confidence for cost in named):.1f} %",
            )
        )
        print("|".join(rows[-1]), flush=True)
    heads = ("shows", "histories", "one build named", "of these right", "confidence said")
    return table(heads, rows)


def rates(rounds: int) -> list[str]:
    rules: list[tuple[str, float | None, Callable[[World], Cost]]] = []
    for p in RATES:
        rules.append(("specrepro", p, lambda w: searched(w, Options(costs=PRICED))))
        for clean in () if p is None else (1, 5, 20):
            name = f"halving, good after {clean} clean"
            rules.append((name, p, lambda w, clean=clean: halved(w, clean)))  # type: ignore[misc]
    rules.append(
        ("told that it always shows", 1.0, lambda w: searched(w, Options(deterministic=True)))
    )
    rows = []
    for name, p, rule in rules:
        costs = [rule(world) for world in worlds(rounds, p)]
        named = [cost for cost in costs if cost.answered]
        ours = "halving" not in name
        rows.append(
            (
                f"{LEAST:g} to 1" if p is None else f"{p:g}",
                f"**{name}**" if ours else name,
                share(cost.right for cost in costs),
                share(cost.answered for cost in costs) if ours else "–",
                f"{100 * mean(cost.confidence for cost in named):.1f} %" if ours else "–",
                spread([cost.trials for cost in costs]),
                spread([cost.changes for cost in costs]),
            )
        )
        print("|".join(rows[-1]), flush=True)
    heads = ("p", "rule", "right", "one build named", "confidence said", "trials", "changes")
    return table(heads, rows)


def block(size: int, length: int, chance: random.Random) -> World:
    start = chance.randrange(1, length - size - 1)
    shut = dict.fromkeys(range(start, start + size), "torch")
    return World(length, chance.randrange(start, start + size + 1), untestable=shut)


def scattered(part: float, length: int, chance: random.Random) -> World:
    shut = {
        i: f"reason {chance.randrange(3)}" for i in range(1, length - 1) if chance.random() < part
    }
    return World(length, chance.randrange(1, length), untestable=shut)


def untestable(rounds: int) -> list[str]:
    rows = []
    kinds: list[tuple[str, Callable[[random.Random], World]]] = [
        ("a block of 32 around the boundary", lambda r: block(32, 512, r)),
        ("a block of 128 around the boundary", lambda r: block(128, 512, r)),
        ("20 % here and there, three reasons", lambda r: scattered(0.2, 512, r)),
        ("50 % here and there, three reasons", lambda r: scattered(0.5, 512, r)),
    ]
    for name, make in kinds:
        chance = random.Random(2)  # noqa: S311
        made = [make(chance) for _ in range(rounds)]
        ours = [searched(world, Options(exact=True)) for world in made]
        theirs = [nearest(world) for world in made]
        rows.append(
            (
                name,
                spread([cost.trials for cost in ours]),
                f"{mean(cost.candidates for cost in ours):.1f}",
                share(cost.right for cost in ours),
                spread([cost.trials + 2 for cost in theirs]),
                f"{mean(cost.candidates for cost in theirs):.1f}",
            )
        )
        print("|".join(rows[-1]), flush=True)
    heads = ("untestable of 512", "trials", "candidates", "truth in them", "nearest: trials", "its")
    return table(heads, rows)


def exact() -> list[str]:
    rows = []
    for length in (35, 128, 512):
        step = max(1, length // 64)
        made = [World(length, first) for first in range(1, length, step)]
        for jobs in (1, 3):
            options = Options(exact=True, jobs=jobs)
            costs = [searched(world, options) for world in made]
            rounds = [batches(world, options) for world in made]
            bound = math.ceil(math.log(length - 1, jobs + 1))
            rows.append(
                (
                    f"{length}",
                    f"{jobs}",
                    share(cost.right for cost in costs),
                    f"{max(cost.trials for cost in costs)}",
                    f"{max(rounds)}",
                    f"{(2 if jobs == 1 else 1) + bound}",
                )
            )
            print("|".join(rows[-1]), flush=True)
    return table(("builds", "at once", "right", "most trials", "most rounds", "bound"), rows)


def batches(world: World, options: Options) -> int:
    search = Search(world.builds, options=options)
    number = 0
    while isinstance(step := search.next(), list):
        number += 1
        for trial in step:
            search.add(world.observe(trial))
    return number


def main(arguments: list[str]) -> None:
    rounds = int(arguments[0]) if arguments else 200
    lines = [
        f"{rounds} histories a row, seeds fixed; a good build never shows the fault. Trials and "
        "changes of build are means (nine of ten are below, the most), the ends included.",
        "",
        "### A fault that shows in a share p of the trials of a bad build",
        "",
        f"128 builds, stop at 99 %, a change of build priced as {CHANGE / TRIAL:g} trials. Halving "
        "is given its ends, which it does not try.",
        "",
        *rates(rounds),
        "",
        "### What the confidence rests on",
        "",
        "It is a probability over faults as the search expects them before it has seen any: half "
        "always show, the others in any share from 0 to 1 alike. Of histories drawn from that:",
        "",
        *expected(rounds),
        "",
        "### Builds that cannot be tested",
        "",
        "Every verdict is exact. *nearest*: from an untestable middle to the nearest build that "
        "was not tried; its two ends are counted.",
        "",
        *untestable(rounds),
        "",
        "### Exact verdicts",
        "",
        "The bound: the ends, and the logarithm of the number of builds to base 2, or to base "
        "N + 1 with N trials at once.",
        "",
        *exact(),
    ]
    command = ["python", "tests/benchmarks/bisect_calibration.py", *arguments]
    write("bisect-calibration", "What a bisection costs", command, lines, file=BISECTION)


if __name__ == "__main__":
    main(sys.argv[1:])
