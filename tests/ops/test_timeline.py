"""Streams, events, asynchronous copies, capture and replay, on a schedule.

One op makes everything visible: `draft_step` adds one to `positions` and `seq_lens`, so a counter
says which launches have run, and on what they have run.
"""

from collections.abc import Callable

import numpy as np
import pytest

from specrepro.repro.lanes.reference import ReferenceDevice
from specrepro.repro.ops import Array, Event, Graph, Launch, Ops, Schedule, Tensor, Timeline

FAR = Schedule(host_ahead=1000, exactly=True)  # the device does nothing before it has to


class Box:
    """A device with one counter a name, and the ops on a timeline in front of it."""

    def __init__(self, schedule: Schedule) -> None:
        self.device = ReferenceDevice(memory=1 << 20)
        self.timeline = Timeline(self.device, schedule)
        self.ops = Ops(self.timeline)
        self.table = self.device.tensor("block_table", np.zeros((1, 1), np.int32))
        self.slots = self.device.tensor("slots", np.zeros(1, np.int64))
        self.lengths = self.device.tensor("seq_lens", np.zeros(1, np.int32))

    def counter(self, name: str = "positions", value: int = 0) -> Tensor:
        return self.device.tensor(name, np.array([value], np.int64))

    def advance(self, counter: Tensor, limit: int = 100) -> None:
        """counter = min(counter + 1, limit - 1)"""
        self.ops.draft_step(
            counter,
            self.lengths,
            self.table,
            self.slots,
            block_size=1000,
            limit=limit,
            at_limit=2,
            requests=[0],
        )

    def now(self, counter: Tensor) -> int:
        """The counter as it stands on the device, without waiting for anything."""
        return int(self.device.read(counter)[0])


def test_a_host_that_is_not_ahead_finds_everything_done_at_once() -> None:
    box = Box(Schedule(host_ahead=0))
    counter = box.counter()
    box.advance(counter)
    assert box.now(counter) == 1
    box.timeline.copy_async(counter, np.array([7]))
    assert box.now(counter) == 7
    assert box.timeline.record().done


@pytest.mark.parametrize("ahead", [1, 2, 3])
def test_a_host_ahead_by_exactly_n_leaves_the_last_n_undone(ahead: int) -> None:
    box = Box(Schedule(host_ahead=ahead, exactly=True))
    counter = box.counter()
    for _ in range(5):
        box.advance(counter)
    assert box.now(counter) == 5 - ahead


@pytest.mark.parametrize("seed", range(5))
def test_work_of_a_stream_keeps_its_order(seed: int) -> None:
    box = Box(Schedule(host_ahead=3, seed=seed))
    counter, hosts = box.counter(), [np.array([10 * n]) for n in range(4)]
    for host in hosts:  # 0, 10, 20, 30, each with one added
        box.timeline.copy_async(counter, host)
        box.advance(counter)
    box.timeline.synchronize()
    assert box.now(counter) == 31


def test_a_copy_reads_its_source_when_it_executes_not_when_it_is_issued() -> None:
    host = np.array([5])

    def copied(schedule: Schedule) -> int:
        box, source = Box(schedule), host.copy()
        counter = box.counter()
        box.timeline.copy_async(counter, source)
        source[0] = 6
        box.timeline.synchronize()
        return box.now(counter)

    assert copied(Schedule(host_ahead=0)) == 5
    assert copied(FAR) == 6


def test_an_event_after_the_copy_makes_its_source_free_again() -> None:
    box, source = Box(FAR), np.array([5])
    counter = box.counter()
    box.timeline.copy_async(counter, source)
    copied = box.timeline.record()
    box.advance(counter)
    assert not copied.done
    box.timeline.synchronize(copied)
    source[0] = 6
    assert box.now(counter) == 5  # what stands behind the event has not run
    box.timeline.synchronize()
    assert box.now(counter) == 6


def test_a_copy_of_another_size_is_refused_when_it_is_issued() -> None:
    box = Box(FAR)
    with pytest.raises(ValueError, match="1 elements, the source 2"):
        box.timeline.copy_async(box.counter(), np.array([1, 2]))


@pytest.mark.parametrize("blocking", ["read", "write"])
def test_a_blocking_copy_waits_for_every_stream(blocking: str) -> None:
    box = Box(FAR)
    main, side = box.counter(), box.counter("side")
    box.advance(main)
    with box.timeline.on("other"):
        box.advance(side)
    assert (box.now(main), box.now(side)) == (0, 0)
    if blocking == "read":
        assert box.timeline.read(main)[0] == 1
    else:
        box.timeline.write(main, [8])
    assert (box.now(main), box.now(side)) == ({"read": 1, "write": 8}[blocking], 1)


def test_work_goes_back_to_the_stream_before_even_after_an_error() -> None:
    box = Box(FAR)
    with pytest.raises(KeyError), box.timeline.on("other"):
        raise KeyError
    assert box.timeline.stream == "main"


def order_of_streams(seed: int, pieces: int = 8) -> list[str]:
    """Which of two streams runs next, as their launches reach the device."""
    box = Box(Schedule(host_ahead=2 * pieces, exactly=True, seed=seed))
    ran: list[str] = []
    counters = {"a": box.counter("a"), "b": box.counter("b")}
    real = box.device.launch

    def noted(launch: Launch) -> None:
        counter = launch.args["positions"]
        assert isinstance(counter, Tensor)
        ran.append(counter.name)
        real(launch)

    box.device.launch = noted  # type: ignore[method-assign]
    for name, counter in counters.items():
        with box.timeline.on(name):
            for _ in range(pieces):
                box.advance(counter)
    box.timeline.synchronize()
    assert [box.now(counter) for counter in counters.values()] == [pieces, pieces]
    return ran


def test_the_seed_alone_decides_the_order_between_streams() -> None:
    assert order_of_streams(3) == order_of_streams(3)
    assert len({tuple(order_of_streams(seed)) for seed in range(6)}) > 1


def test_the_seed_alone_decides_how_far_the_host_is_ahead() -> None:
    def distances(seed: int) -> list[int]:
        box = Box(Schedule(host_ahead=4, seed=seed))
        counter, left = box.counter(), []
        for issued in range(1, 20):
            box.advance(counter)
            left.append(issued - box.now(counter))
        return left

    assert distances(1) == distances(1) != distances(2)
    assert set(distances(1)) <= {0, 1, 2, 3, 4}
    assert len(set(distances(1))) > 1


@pytest.mark.parametrize("seed", range(5))
def test_a_stream_that_waits_for_an_event_comes_after_it(seed: int) -> None:
    box = Box(Schedule(host_ahead=50, exactly=True, seed=seed))
    counter = box.counter()
    with box.timeline.on("copies"):
        box.timeline.copy_async(counter, np.array([40]))
        copied = box.timeline.record()
    box.timeline.wait(copied)
    box.advance(counter)
    box.timeline.synchronize()
    assert box.now(counter) == 41


def test_without_the_event_some_schedule_runs_the_other_way_round() -> None:
    def ends(seed: int) -> int:
        box = Box(Schedule(host_ahead=50, exactly=True, seed=seed))
        counter = box.counter()
        with box.timeline.on("copies"):
            box.timeline.copy_async(counter, np.array([40]))
        box.advance(counter)
        box.timeline.synchronize()
        return box.now(counter)

    assert {ends(seed) for seed in range(10)} == {40, 41}


def test_a_wait_for_an_event_that_nothing_records_is_refused() -> None:
    box = Box(Schedule())
    box.timeline.wait(Event())
    box.advance(box.counter())
    with pytest.raises(RuntimeError, match="nothing records"):
        box.timeline.synchronize()


def test_the_host_does_not_wait_for_an_event_that_nothing_records() -> None:
    with pytest.raises(RuntimeError, match="nothing records"):
        Box(Schedule()).timeline.synchronize(Event())


def test_streams_that_wait_for_each_other_in_a_circle_are_refused() -> None:
    box = Box(FAR)
    first, second = Event(), Event()
    for event in (first, second):
        with box.timeline.on(str(id(event))):
            box.timeline.wait(event)
    with pytest.raises(RuntimeError, match="nothing records"):
        box.timeline.synchronize()


def captured(box: Box, *counters: Tensor, limit: int = 100) -> Graph:
    with box.timeline.capture() as graphs:
        for counter in counters:
            box.advance(counter, limit)
    [graph] = graphs
    return graph


def test_a_capture_executes_nothing_and_a_replay_everything_in_order() -> None:
    box = Box(Schedule())
    counter = box.counter()
    graph = captured(box, counter, counter)
    assert box.now(counter) == 0
    box.timeline.replay(graph, box.ops.number, None)
    assert box.now(counter) == 2


def test_a_replay_reads_what_the_pointer_holds_by_then() -> None:
    box = Box(Schedule())
    counter = box.counter()
    graph = captured(box, counter)
    for value in (10, 20):
        box.timeline.write(counter, [value])
        box.timeline.replay(graph, box.ops.number, None)
        assert box.now(counter) == value + 1


def test_a_replay_does_not_know_the_tensor_that_took_the_captured_ones_place() -> None:
    box = Box(Schedule())
    counter = box.counter()
    graph = captured(box, counter)
    old, counter = counter, box.counter(value=50)
    box.timeline.replay(graph, box.ops.number, None)
    assert (box.now(old), box.now(counter)) == (1, 50)


def test_a_replay_keeps_the_scalars_of_the_capture() -> None:
    box = Box(Schedule())
    counter, limit = box.counter(), 3
    with box.timeline.capture() as graphs:
        box.advance(counter, limit)
    limit = 100
    for _ in range(limit):
        box.timeline.replay(graphs[0], box.ops.number, None)
    assert box.now(counter) == 2


def test_a_replay_repeats_no_decision_of_the_host() -> None:
    box = Box(Schedule())
    counter, last = box.counter(), True
    with box.timeline.capture() as graphs:
        box.advance(counter)
        if not last:
            box.advance(counter)
    last = False
    box.timeline.replay(graphs[0], box.ops.number, None)
    assert box.now(counter) == 1


def test_a_replay_queues_like_any_other_work() -> None:
    box = Box(FAR)
    counter = box.counter()
    graph = captured(box, counter)
    box.timeline.replay(graph, box.ops.number, None)
    assert box.now(counter) == 0
    box.timeline.synchronize()
    assert box.now(counter) == 1


def launches_of(box: Box) -> list[Launch]:
    seen: list[Launch] = []
    box.device.launch = seen.append  # type: ignore[assignment, method-assign]
    return seen


def test_replayed_launches_have_numbers_and_labels_of_their_own() -> None:
    box = Box(Schedule())
    graph = captured(box, box.counter())
    seen = launches_of(box)
    box.timeline.replay(graph, box.ops.number, 4, requests=[7])
    box.timeline.replay(graph, box.ops.number, 5)
    numbers = [launch.index for launch in seen]
    assert numbers == sorted(set(numbers))
    assert graph.launches[0].index not in numbers
    assert [launch.step for launch in seen] == [4, 5]
    assert [launch.requests.tolist() for launch in seen if launch.requests is not None] == [
        [7],
        [0],
    ]


def test_labels_for_another_number_of_rows_are_refused() -> None:
    box = Box(Schedule())
    graph = captured(box, box.counter())
    with pytest.raises(ValueError, match="1 rows, but requests for"):
        box.timeline.replay(graph, box.ops.number, None, requests=[0, 1])


Asked = Callable[[Timeline, Tensor], object]
NOT_CAPTURED: dict[str, Asked] = {
    "copy": lambda t, c: t.copy_async(c, np.array([1])),
    "record": lambda t, c: t.record(),
    "wait": lambda t, c: t.wait(Event(done=True)),
    "read": lambda t, c: t.read(c),
    "write": lambda t, c: t.write(c, [1]),
    "synchronize": lambda t, c: t.synchronize(),
    "replay": lambda t, c: t.replay(Graph((launch(c),)), lambda: 0, None),
}


def launch(counter: Tensor) -> Launch:
    return Launch(0, "draft_step", {"positions": counter}, (1, 1, 1), None, None)


@pytest.mark.parametrize("asked", NOT_CAPTURED)
def test_what_a_graph_does_not_hold_is_refused_while_it_is_captured(asked: str) -> None:
    box = Box(Schedule())
    counter = box.counter()
    with pytest.raises(RuntimeError, match="cannot be captured"), box.timeline.capture():
        NOT_CAPTURED[asked](box.timeline, counter)
    box.advance(counter)  # the failed capture is over
    assert box.now(counter) == 1


def test_two_captures_at_once_are_refused() -> None:
    timeline = Box(Schedule()).timeline
    with (
        timeline.capture(),
        pytest.raises(RuntimeError, match="already running"),
        timeline.capture(),
    ):
        pass


def test_a_timeline_is_a_device_for_tensors_and_memory() -> None:
    timeline = Box(Schedule()).timeline
    values: Array = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert timeline.read(timeline.tensor("index", values)).tolist() == values.tolist()
    assert timeline.allocate("pool", 1 << 10)
    assert not timeline.allocate("pool", 1 << 30)
