"""The device of the GPU lanes over a driver made up, whose kernels the emulator executes."""

from __future__ import annotations

import gc
import io
import json
from typing import Any

import numpy as np
import pytest

from specrepro.repro import compiled
from specrepro.repro.case import load_cases, points, settings
from specrepro.repro.lanes.cuda_device import CudaDevice
from specrepro.repro.lanes.cuda_driver import CudaError, Driver
from specrepro.repro.lanes.emulator import EmulatorDevice
from specrepro.repro.ops import Ops, Tensor, Timeline
from specrepro.repro.sanitizer.journal import Journal, Writer, parse
from specrepro.repro.scenarios import registry

GIB = 1 << 30


def made(card: Any, *, waiting: bool = False) -> tuple[CudaDevice, io.StringIO]:
    text = io.StringIO()
    device = CudaDevice(
        Driver(),
        80 * GIB,
        Writer(text),
        waiting=waiting,
        kernels=lambda op, _: compiled.load(op),
    )
    return device, text


def journal(text: io.StringIO) -> Journal:
    return parse(text.getvalue().encode())


def test_what_is_written_is_read_in_every_shape(card: Any) -> None:
    device, _ = made(card)
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensor = device.tensor("x", values)
    assert (device.read(tensor) == values).all()
    device.write(tensor, np.zeros(24))
    assert not device.read(tensor).any()
    view = Tensor("x", tensor.data[4:12], (4, 2))
    device.write(view, np.arange(8))
    assert (device.read(view) == np.arange(8).reshape(4, 2)).all()
    assert device.read(tensor).reshape(-1)[:5].tolist() == [0, 0, 0, 0, 0]
    assert device.read(tensor).reshape(-1)[11] == 7
    assert device.read(device.tensor("none", np.zeros((0, 3), np.int32))).shape == (0, 3)


@pytest.mark.parametrize("count", [1, 7, 8, 1024, 1 << 20, (1 << 20) + 8])
def test_a_tensor_ends_with_its_mapping_and_has_its_reach_alone(card: Any, count: int) -> None:
    device, text = made(card)
    device.tensor("x", np.zeros(count, np.float16))
    device.tensor("y", np.zeros(count, np.float16))
    x, y = journal(text).placed
    granularity = 2 << 20
    end = x.address + count * 2
    assert -end % granularity < 16
    assert x.address % 16 == 0
    assert x.reach[1] - end >= 16 * GIB - 1
    assert x.address - x.reach[0] >= 16 * GIB
    assert x.reach[1] < y.reach[0] or y.reach[1] < x.reach[0]


def test_what_a_scenario_states_to_lie_behind_is_there(card: Any) -> None:
    import ctypes

    device, text = made(card)
    behind = np.array([70, 71], np.int32)
    tensor = device.tensor("x", np.arange(4, dtype=np.int32), behind=behind)
    (placed,) = journal(text).placed
    assert device.read(tensor).tolist() == [0, 1, 2, 3]
    assert (ctypes.c_int32 * 6).from_address(placed.address)[:] == [0, 1, 2, 3, 70, 71]


def test_memory_goes_when_nobody_holds_it_and_the_device_was_waited_for(card: Any) -> None:
    device, _ = made(card)
    tensor = device.tensor("x", np.zeros(8, np.float32))
    view = Tensor("x", tensor.data[2:], (6,))
    del tensor
    gc.collect()
    device.wait()
    assert (card.library.fake_mapped(), device.read(view).tolist()) == (1, [0.0] * 6)
    del view
    gc.collect()
    assert card.library.fake_mapped() == 1
    device.wait()
    assert (card.library.fake_mapped(), card.library.fake_reserved()) == (0, 0)


def test_more_than_the_device_has_is_refused(card: Any) -> None:
    device, _ = made(card)
    assert device.allocate("x", GIB)
    assert not device.allocate("x", 100 * GIB)  # more than the scenario's device has
    assert not device.allocate("x", 70 * GIB)  # more than this one gives


def run_case(name: str, variant: str, ops: Ops) -> Any:
    case = load(name)
    declaration = registry.declaration(case.scenario)
    point = points(case)[0]
    given = settings(case, variant, declaration)
    return registry.load(case.scenario).run(ops, point, given, dict(case.owners))


def load(name: str) -> Any:

    (loaded,) = load_cases([name])
    return loaded.case


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("mtp-tail-overflow", "fixed"),
        ("draft-length-gate", "inherited"),
        ("mtp-plan-buffer-race", "fence"),
        ("mtp-plan-buffer-race", "same_layout"),
        ("stale-draft-metadata", "faulty"),
        ("stale-draft-metadata", "rebuild_in_place"),
        ("stale-draft-metadata", "frozen_column"),
        ("gdn-pipeline-state", "correct"),
    ],
)
def test_a_scenario_comes_out_as_in_the_emulator(card: Any, name: str, variant: str) -> None:
    device, text = made(card)
    ours = run_case(name, variant, Ops(device))
    device.finish()
    emulated = EmulatorDevice(80 * GIB)
    theirs = run_case(name, variant, Ops(emulated))
    assert (ours.service, ours.findings) == (theirs.service, theirs.findings)
    assert json.dumps(ours.metrics, default=str) == json.dumps(theirs.metrics, default=str)
    kept = journal(text)
    assert kept.complete
    assert [one.op for one in kept.launched] == card.launches
    assert len(kept.launched) > 20


def test_a_fault_comes_as_the_error_of_a_later_call_and_names_no_launch(card: Any) -> None:
    device, text = made(card)
    with pytest.raises(CudaError, match=r"ILLEGAL_ADDRESS \(700\)") as error:
        run_case("mtp-tail-overflow", "faulty", Ops(device))
    assert error.value.code == 700
    kept = journal(text)
    assert not kept.complete
    assert any(not one.ended for one in kept.launched)
    with pytest.raises(CudaError):
        device.finish()


def test_waiting_behind_each_launch_names_the_one_that_faulted(card: Any) -> None:
    device, text = made(card, waiting=True)
    with pytest.raises(CudaError):
        run_case("mtp-tail-overflow", "faulty", Ops(device))
    emulated = EmulatorDevice(80 * GIB)
    run_case("mtp-tail-overflow", "faulty", Ops(emulated))
    unended = [one for one in journal(text).launched if not one.ended]
    first = min(finding.launch for finding in emulated.findings)
    assert [(one.index, one.op) for one in unended] == [(first, "kv_write")]


def test_a_captured_graph_reads_what_its_pointers_hold_by_then(card: Any) -> None:
    device, text = made(card)
    timeline = Timeline(device)
    ops = Ops(timeline)
    source = timeline.tensor("source", np.array([[1, 2]], np.int32))
    out = timeline.tensor("out", np.zeros((1, 2), np.int32))
    rows = timeline.tensor("rows", np.zeros(1, np.int32))
    with timeline.capture() as graphs:
        ops.gather_block_tables(rows, source, out)
    timeline.write(source, np.array([[8, 9]]))
    timeline.replay(graphs[0], ops.number, None)
    assert timeline.read(out).tolist() == [[8, 9]]
    assert card.library.fake_graph_launches() == 1
    assert [one.index for one in journal(text).launched] == [1]  # the captured one never ran
    assert device.how() == "1 graphs captured by the driver, replayed 1 times"


def test_without_a_driver_it_is_said() -> None:
    import subprocess
    import sys

    script = (
        "from specrepro.repro.lanes.cuda_driver import Driver\n"
        "from specrepro.repro.errors import LaneError\n"
        "try: Driver()\nexcept LaneError as error: print(error, '|', error.hint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert "no CUDA driver" in done.stdout or "cuda-bindings is not installed" in done.stdout
