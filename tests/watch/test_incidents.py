"""Events of one fault are one incident, those of two are two, and no text makes reading fail."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.watch.events import KERNEL_LOG, NVML, Event, pci
from specrepro.repro.watch.incidents import AFTER, WINDOW, group
from specrepro.repro.watch.xid import Xid, read_xid

BUS, OTHER = "0000:3b:00", "0000:86:00"


def logged(at: float, code: int, bus: str = BUS, pid: int | None = 1) -> Event:
    return Event(KERNEL_LOG, at, code, bus, Xid(code, bus, "", pid=pid))


def told(at: float, code: int, bus: str | None = BUS) -> Event:
    return Event(NVML, at, code, bus)


def codes(events: list[Event]) -> list[list[int]]:
    return [[event.code for event in incident.events] for incident in group(events)]


def test_consequences_belong_to_the_fault_before_them() -> None:
    assert codes([logged(0, 31), logged(1, 43), logged(9, 45)]) == [[31, 43, 45]]


def test_a_consequence_long_after_a_fault_stands_alone() -> None:
    assert codes([logged(0, 31), logged(AFTER + 1, 45)]) == [[31], [45]]


def test_the_same_fault_again_later_is_another_one() -> None:
    assert codes([logged(0, 31), logged(WINDOW + 1, 31)]) == [[31], [31]]


def test_two_different_faults_of_one_source_at_once_are_two() -> None:
    assert codes([logged(0, 31), logged(0.1, 48)]) == [[31], [48]]


def test_two_processes_that_fault_at_once_are_two() -> None:
    assert codes([logged(0, 31, pid=1), logged(0.1, 31, pid=2)]) == [[31], [31]]


def test_the_kernel_log_names_the_cause_that_nvml_told_as_43() -> None:
    [incident] = group([told(0, 43), logged(0.5, 31)])
    assert incident.first.code == 31
    assert incident.sources == (NVML, KERNEL_LOG)


def test_a_consequence_alone_is_the_first_for_want_of_a_better() -> None:
    [incident] = group([logged(0, 45)])
    assert incident.first.code == 45


def test_an_event_without_a_place_joins_what_happens_then() -> None:
    [incident] = group([told(0, 79, bus=None), logged(0.2, 79)])
    assert incident.bus == BUS


EVENTS = st.builds(
    Event,
    st.sampled_from([NVML, KERNEL_LOG]),
    st.floats(0, 60),
    st.sampled_from([13, 31, 43, 45, 48, 79, 154, 9999]),
    st.sampled_from([BUS, OTHER, None]),
)


@given(st.lists(EVENTS, max_size=40))
def test_every_event_is_in_one_incident_and_no_incident_mixes_gpus(events: list[Event]) -> None:
    incidents = group(events)
    assert sorted(id(e) for i in incidents for e in i.events) == sorted(map(id, events))
    for incident in incidents:
        assert len({e.bus for e in incident.events} - {None}) <= 1
        assert incident.first in incident.events
        assert list(incident.events) == sorted(incident.events, key=lambda e: e.at)


@given(st.lists(EVENTS, max_size=20), st.randoms(use_true_random=False))
def test_the_order_in_which_two_sources_are_read_does_not_matter(
    events: list[Event], random: object
) -> None:
    moments = {event.at for event in events}
    if len(moments) == len(events):  # a tie has no order
        shuffled = list(events)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        assert codes(shuffled) == codes(events)


LINE = (
    "[   12.3] NVRM: Xid (PCI:0000:3b:00): 31, pid=4211, name=python, Ch 00000008, intr 0. "
    "MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_2 faulted @ 0x7ec9_34000000. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
)


@given(st.data())
def test_no_mutation_of_a_line_makes_reading_fail_or_its_code_another(data: st.DataObject) -> None:
    text = LINE
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 6))
        text = text[:at] + data.draw(st.text(max_size=4)) + text[at + length :]
    found = read_xid(text)
    if found is not None:
        assert isinstance(found.code, int)
        assert f"): {found.code}" in text


def test_an_address_is_one_whichever_way_it_is_written() -> None:
    forms = ["0000:3b:00", "00000000:3B:00.0", "3b:00.0", "0000:3b:00.0", " 0000:3B:00"]
    assert {pci(form) for form in forms} == {"0000:3b:00"}
    assert pci("0001:3b:00") == "0001:3b:00"
    assert pci("nowhere") is None
