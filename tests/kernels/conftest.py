"""One op, one launch, by its Python reference or by its PTX on the emulator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from specrepro.repro.compiled import check_arguments, load
from specrepro.repro.emulator.launch import Buffer, launch
from specrepro.repro.ops import Launch, Ops, Owners, Tensor
from specrepro.repro.records import Kind

Array = np.ndarray[Any, Any]


@dataclass
class Run:
    """What one launch left behind. wrong: (kind, tensor) -> elements; lines: source line of each"""

    tensors: dict[str, Array]
    wrong: dict[tuple[Kind, str], list[int]]
    lines: dict[tuple[Kind, str], set[int]] = field(default_factory=dict)


class _Recorder:
    def __init__(self, requests: Array | None) -> None:
        self.requests = requests
        self.seen: dict[tuple[Kind, str], set[int]] = defaultdict(set)

    def wrong(self, kind: Kind, tensor: Tensor, elements: Array, row: int) -> None:
        self.seen[kind, tensor.name].update(elements.tolist())

    def request(self, row: int) -> int | None:
        if self.requests is None or self.requests[row] < 0:
            return None
        return int(self.requests[row])


class _Recorded:
    """A device that only keeps the launch it was given."""

    launched: Launch | None = None

    def launch(self, launch: Launch) -> None:
        self.launched = launch


class Bench:
    """`reference` and `emulator` take the arguments of a method of `Ops`, arrays for tensors.

    A strided array keeps its strides; its gaps are storage too. A Tensor may claim strides that
    its storage does not have. owners, behind: by tensor name.
    """

    def reference(self, op: str, **given: Any) -> Run:
        launched, tensors = self._launch(op, given)
        if launched is None:
            return Run(_contents(tensors.values()), {})
        recorder = _Recorder(launched.requests)
        for tensor in tensors.values():
            tensor.recorder = recorder
        function = getattr(import_module(f"specrepro.kernels.{op}.reference"), op)
        function(**launched.args, rows=launched.grid[0])
        wrong = {key: sorted(elements) for key, elements in recorder.seen.items()}
        return Run(_contents(tensors.values()), wrong)

    def emulator(self, op: str, **given: Any) -> Run:
        launched, tensors = self._launch(op, given)
        if launched is None:
            return Run(_contents(tensors.values()), {})
        kernel = load(op)
        check_arguments(kernel.manifest, launched.args)
        arguments: list[Buffer | int | float | None] = []
        for name in kernel.manifest.arguments:
            value = launched.args[name]
            if isinstance(value, Tensor):
                arguments.append(Buffer(value.name, value.data, value.owners, value.behind))
            else:
                arguments.append(value)
        report = launch(
            kernel.parsed(),
            grid=launched.grid,
            block=kernel.manifest.threads,
            args=arguments,
            shared_bytes=kernel.manifest.shared_bytes,
            requests=launched.requests,
        )
        wrong: dict[tuple[Kind, str], set[int]] = defaultdict(set)
        lines: dict[tuple[Kind, str], set[int]] = defaultdict(set)
        for access in report.accesses:
            key = (access.kind, access.buffer or "")
            wrong[key].update(access.elements.tolist())
            lines[key].add(access.line)
            assert access.file == kernel.manifest.source
        merged = {key: sorted(elements) for key, elements in wrong.items()}
        return Run(_contents(tensors.values()), merged, dict(lines))

    def _launch(self, op: str, given: dict[str, Any]) -> tuple[Launch | None, Mapping[str, Tensor]]:
        owners: Mapping[str, Owners] = given.pop("owners", {})
        behind: Mapping[str, Array] = given.pop("behind", {})
        tensors = {
            name: _tensor(name, value, owners.get(name), behind.get(name))
            for name, value in given.items()
            if isinstance(value, (np.ndarray, Tensor)) and name != "requests"
        }
        device = _Recorded()
        getattr(Ops(device), op)(**{**given, **tensors})  # type: ignore[arg-type]
        return device.launched, tensors


def _tensor(
    name: str, values: Array | Tensor, owners: Owners | None, behind: Array | None
) -> Tensor:
    if isinstance(values, Tensor):
        copy = _tensor(name, values.data, owners, behind)
        return Tensor(name, copy.data, values.shape, strides=values.strides)
    strides = tuple(stride // values.itemsize for stride in values.strides)
    size = _span(values.shape, strides)
    raw = np.zeros(size * values.itemsize + 256, np.uint8)
    start = -raw.__array_interface__["data"][0] % 256
    data = raw[start : start + size * values.itemsize].view(values.dtype)
    if size:
        as_strided(data, values.shape, values.strides)[...] = values
    return Tensor(name, data, values.shape, strides=strides, owners=owners, behind=behind)


def _contents(tensors: Iterable[Tensor]) -> dict[str, Array]:
    return {
        t.name: as_strided(t.data, t.shape, [s * t.dtype.itemsize for s in t.strides]).copy()
        for t in tensors
        if t.size >= _span(t.shape, t.strides)
    }


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


@pytest.fixture(scope="session")
def bench() -> Bench:
    return Bench()
