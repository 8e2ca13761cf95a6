"""A reading becomes a diagnosis: each incident with its situation, classes and experiments."""

from __future__ import annotations

from typing import NamedTuple

from .advise import Asked, Proposal, missing, proposals
from .defaults import note_defaults
from .facts import Certainty, Reading
from .match import Ranked, left, match
from .restored import start_command
from .rules import Knowledge, load
from .settings import note_settings
from .situation import Notes, Situation
from .symptoms import note_symptoms
from .timeline import Course, courses


class Diagnosis(NamedTuple):
    """What can be said of one incident."""

    course: Course
    situation: Situation
    classes: tuple[Ranked, ...]
    missing: tuple[Asked, ...]
    proposals: tuple[Proposal, ...]

    @property
    def found(self) -> bool:
        """Whether anything went wrong in it that can be told."""
        return bool(self.course.failures) or self.situation.get("symptom") is not None

    @property
    def left(self) -> list[Ranked]:
        return left(self.classes)


def diagnose(reading: Reading) -> list[Diagnosis]:
    """The incidents of a reading that have something wrong, in their order.

    Where nothing is wrong anywhere, the one thing that was read, so that its settings can be shown.
    """
    known = load()
    every = [_diagnosis(course, known) for course in courses(reading)]
    found = [one for one in every if one.found]
    return found or every[:1]


def main_incident(diagnoses: list[Diagnosis]) -> Diagnosis | None:
    """The incident to lead with: the first that was observed, else the first."""
    for one in diagnoses:
        if any(f.certainty is Certainty.OBSERVED for f in one.course.first):
            return one
    return diagnoses[0] if diagnoses else None


def situation_of(course: Course, known: Knowledge) -> Situation:
    """Every name that is known of an incident."""
    notes = Notes()
    note_settings(notes, course.facts, known.engines)
    note_symptoms(notes, course, known.claims)
    note_defaults(notes, known.engines)
    return notes.done()


def _diagnosis(course: Course, known: Knowledge) -> Diagnosis:
    situation = situation_of(course, known)
    classes = match(known.classes, situation)
    return Diagnosis(
        course,
        situation,
        classes,
        tuple(missing(classes, situation, known)),
        tuple(proposals(classes, situation, known, start_command(course.facts))),
    )
