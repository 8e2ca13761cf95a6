"""What to try next, or the answer: a function of the candidates and of what was observed.

No I/O, no clock, no chance: the same events give the same step, so that a search that was killed
goes on where it was, and a journal can be replayed. The order of things: both ends; narrowing;
blocks of untestable builds; the bad build once more; the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..escape import printable
from . import answer, choose
from .blocks import Blocks, blocks, doubt, probes
from .costs import measured
from .ends import Ends, Refused, Wanted, ends, named, steady, turned_ends
from .groups import counted
from .interval import Interval, interval
from .question import Ending, Options, Progress, Result, Trial
from .tally import NEVER, Tally, on_line, tallies
from .verdicts import Event, Infra, Observation, effective

if TYPE_CHECKING:
    from .posterior import Array

INFRA_TRIALS = 3  # failures of the machine in a row, on one build, at which a search stops
OTHER_TRIALS = 3  # trials with another fault, and none without, that make a build untestable


@dataclass(frozen=True, slots=True)
class Known:
    """What the events say, positions from the good end. step: where the boundary can be, once the
    ends are known."""

    names: Sequence[str]
    line: Sequence[Tally]
    blocks: Blocks
    step: Wanted | Refused | Interval
    steady: bool


class Search:
    """A search for the build at which a fault begins or ends.

    candidates: every build in order, oldest first, the ends among them. unavailable: builds that
    are known not to be had → why; they are never tried. events: what was observed so far.
    UsageError where a build is named twice or a name in `unavailable` is no candidate.
    """

    def __init__(
        self,
        candidates: Sequence[str],
        unavailable: Mapping[str, str] | None = None,
        events: Iterable[Event] = (),
        options: Options | None = None,
    ) -> None:
        self.candidates = tuple(candidates)
        self.unavailable = dict(unavailable or {})
        self.options = options or Options()
        self.events = list(events)
        if len(set(self.candidates)) < len(self.candidates):
            raise UsageError("a build is among the candidates of a bisection twice")
        if unknown := self.unavailable.keys() - set(self.candidates):
            raise UsageError(f"{named(min(unknown))} is no candidate of this bisection")

    def add(self, event: Event) -> None:
        """Take an event in."""
        self.events.append(event)

    def counted(self) -> list[Event]:
        """The events that count: of one kind of GPU and driver, unless they may be mixed."""
        return counted(self.events, mixed=self.options.mix_hosts)

    def next(self) -> list[Trial] | Result:
        """The trials to run now, `jobs` at most and at least one, or the result."""
        known = self.known()
        step = self._step(known)
        if isinstance(step, Result):
            return step
        tally = dict(zip(known.names, known.line, strict=True))
        for build, _ in step:
            if tally[build].infra >= INFRA_TRIALS:
                reason = f"{tally[build].infra} trials of {named(build)} failed for the machine"
                return self._cut(known, Ending.INFRA, f"{reason}: {self._failure(build)}")
        spent, seconds = self.spent()
        if self.options.budget_trials is not None and spent >= self.options.budget_trials:
            return self._cut(known, Ending.BUDGET, f"all {spent} trials of the budget are spent")
        if self.options.budget_seconds is not None and seconds >= self.options.budget_seconds:
            return self._cut(known, Ending.BUDGET, f"{seconds:.0f} s are spent, all of the budget")
        if self.options.budget_trials is not None:
            step = step[: self.options.budget_trials - spent]
        numbers = {build: one.trials for build, one in tally.items()}
        trials = []
        for build, purpose in step:
            numbers[build] += 1
            trials.append(Trial(build, numbers[build], purpose))
        return trials

    def progress(self) -> Progress:
        """How far the search has come."""
        known = self.known()
        trials, seconds = self.spent()
        if not isinstance(known.step, Interval):
            return Progress(None, None, len(self.candidates), 0.0, trials, seconds, None, None)
        narrowed = known.step
        cells = len(narrowed.cells)
        if known.steady:
            mass = choose.shares(known.line, narrowed.cells, narrowed.share)
            cells = sum(share > 0 for share in mass)
        shown = self.options.exact or self._shown(known, narrowed)
        left = answer.Left(cells, shown, measured(self.counted(), self.options.costs))
        found = self._found(known, narrowed)
        return answer.progress(found, self.options, left, trials, seconds)

    def spent(self) -> tuple[int, float]:
        """Trials that ended and count, and the seconds of them and their setups."""
        seen = [e for e in effective(self.events) if isinstance(e, Observation)]
        return len(seen), sum(one.seconds + one.setup for one in seen)

    def known(self) -> Known:
        """What the events say."""
        options = self.options
        found = tallies(self.counted(), others=1 if options.exact else OTHER_TRIALS)
        names = list(self.candidates)
        if answer.fix(options, turned=False):
            names.reverse()
        line, absent = self._line(names, found)
        step = ends(names, line, absent, options)
        if isinstance(step, Ends) and step.turned:
            names.reverse()
            line, absent = self._line(names, found)
            step = turned_ends(names, line, options)
        split = blocks(line, absent)
        if not isinstance(step, Ends):
            return Known(names, line, split, step, False)
        even = steady(line, step.low, step.high, options)
        return Known(names, line, split, interval(line, split, step, even, options), even)

    def _line(
        self, names: Sequence[str], found: Mapping[str, Tally]
    ) -> tuple[list[Tally], frozenset[int]]:
        absent = frozenset(i for i, name in enumerate(names) if name in self.unavailable)
        line = on_line(names, found)
        # what is said of a build that cannot be had is not believed
        return [NEVER if i in absent else one for i, one in enumerate(line)], absent

    def _step(self, known: Known) -> list[tuple[str, str]] | Result:
        """(build, purpose) of trials, or the result; budget and machine aside."""
        names, line = known.names, known.line
        if isinstance(known.step, Refused):
            return answer.nothing(known.step.reason, Ending.ENDS, answer.others(names, line))
        if isinstance(known.step, Wanted):
            wanted = [(at, why) for at, count, why in known.step.trials for _ in range(count)]
            return [(names[at], why) for at, why in wanted[: self.options.jobs]]
        narrowed = known.step
        if narrowed.unsettled is not None:
            name = names[narrowed.unsettled]
            return [(name, "clean, though a build before it is bad")]
        high = narrowed.high
        if line[high].cleans_since_bad and self._latest() == names[high]:
            # Clean trials make the fault look rarer, and all that was clean before weigh less. To
            # turn back at once would mean to go to and fro; the next fault settles both.
            return self._again(known, narrowed)
        if picks := self._narrowing(known, narrowed):
            return picks
        if tries := probes(known.blocks, narrowed.cells[-2], high, self.options.jobs):
            return [(names[at], "presumed untestable") for at in tries]
        if not self.options.exact and not self._shown(known, narrowed):
            return self._again(known, narrowed)
        found = self._found(known, narrowed)
        if found.mass[-1] >= self.options.confidence:
            return self._answer(found, Ending.LOCATED)
        if picks := self._telling(known, narrowed):
            return picks
        return self._answer(found, Ending.UNCONFIRMED, "no trial that can be run tells any more")

    def _shown(self, known: Known, narrowed: Interval) -> bool:
        """Whether the bad build showed the fault again after the one before it was clean."""
        bad, good = known.line[narrowed.high], known.line[narrowed.cells[-2]]
        again = bad.bads > 1 and bad.last_bad_at > good.first_clean_at
        return again or bad.marked is not None

    def _again(self, known: Known, narrowed: Interval) -> list[tuple[str, str]] | Result:
        """The bad build once more: its fault must not have been a matter of that day."""
        name, bad = known.names[narrowed.high], known.line[narrowed.high]
        if bad.cleans_since_bad + bad.idle < self.options.end_trials and not bad.worn:
            return [(name, "once more")] * (1 if known.steady else self.options.jobs)
        reason = f"{named(name)} did not show the fault again"
        return self._answer(self._found(known, narrowed), Ending.UNCONFIRMED, reason)

    def _failure(self, build: str) -> str:
        """What the machine failed of when a build was tried last."""
        said = [
            event.verdict.reason
            for event in self.counted()
            if isinstance(event, Observation)
            and event.build == build
            and isinstance(event.verdict, Infra)
        ]
        return printable(said[-1]) if said else "no reason was given"

    def _latest(self) -> str | None:
        """The build that was tried last."""
        seen = [e for e in effective(self.events) if isinstance(e, Observation)]
        return seen[-1].build if seen else None

    def _found(self, known: Known, narrowed: Interval) -> answer.Found:
        """What is found so far, with its probabilities."""
        rate = None
        if known.steady and (self.options.exact or self.options.deterministic):
            mass = choose.shares(known.line, narrowed.cells, narrowed.share)
        else:
            from .posterior import rate as expected

            table = self._table(known, narrowed)
            mass = [float(share) for share in table.sum(axis=1)]
            rate = None if known.steady else expected(table)
        return answer.Found(known.names, known.line, known.blocks, narrowed, mass, rate)

    def _narrowing(self, known: Known, narrowed: Interval) -> list[tuple[str, str]]:
        """Trials that narrow the interval; none where its last cell holds the boundary."""
        if known.steady:
            mass = choose.shares(known.line, narrowed.cells, narrowed.share)
            cells = choose.cuts(mass, self._doubt(known, narrowed), self.options.jobs)
            return [(known.names[narrowed.cells[cell]], "narrowing") for cell in cells]
        found = self._found(known, narrowed).mass
        wanted = self.options.confidence
        if not self._shown(known, narrowed):
            # clean trials before the next fault of the bad build will take some of it away
            wanted = (1 + wanted) / 2
        if found[-1] >= wanted:
            return []
        likely = max(range(len(found) - 1), key=found.__getitem__)
        if found[likely] >= self.options.confidence:
            return [
                (known.names[narrowed.cells[likely]], "should show the fault")
            ] * self.options.jobs
        return self._telling(known, narrowed)

    def _telling(self, known: Known, narrowed: Interval) -> list[tuple[str, str]]:
        names, cells = known.names, narrowed.cells
        events = self.counted()
        cost = measured(events, self.options.costs)
        seen = [event.build for event in events if isinstance(event, Observation)]
        ready, installed = set(seen[-self.options.jobs :]), set(seen)

        def setup(cell: int) -> float:
            return cost.of(names[cells[cell]], ready, installed)

        picks = choose.telling(
            self._table(known, narrowed),
            self._doubt(known, narrowed),
            setup,
            cost.trial,
            self.options.jobs,
        )
        return [(names[cells[cell]], "narrowing") for cell in picks]

    def _table(self, known: Known, narrowed: Interval) -> Array:
        from .posterior import joint

        ends = [cell - narrowed.low for cell in narrowed.cells]
        line = known.line[narrowed.low : narrowed.last + 1]
        return joint(line, ends, narrowed.share, self.options.flaky)

    def _doubt(self, known: Known, narrowed: Interval) -> choose.Doubt:
        return lambda cell: doubt(known.blocks, narrowed.cells[cell])

    def _cut(self, known: Known, ending: Ending, reason: str) -> Result:
        """The result where the search stops before its end."""
        if not isinstance(known.step, Interval):
            return answer.nothing(reason, ending, answer.others(known.names, known.line))
        return self._answer(self._found(known, known.step), ending, reason)

    def _answer(self, found: answer.Found, ending: Ending, *notes: str) -> Result:
        return answer.answer(found, self.options, ending, self.unavailable, notes)
