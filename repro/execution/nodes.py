"""The nodes of a cluster: what is known of them, which may take a task, and why not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from .fit import is_type, unmet_by_driver, unmet_by_gpu
from .task import Attempt, Needs

SHORT = 8  # characters of a node's id that tell it from others
SHOWN = 4  # nodes that a message names


@dataclass(frozen=True, slots=True)
class Gpu:
    """name: by which a place knows it. kind: the device's name. free: bytes; None: not told."""

    name: str
    kind: str | None
    free: int | None


@dataclass(frozen=True, slots=True)
class Node:
    """One node. cpus, gpus_counted: what the cluster may give away there. kinds: types of GPU as
    the cluster names them, for GPUs that NVML does not show. gpus: that NVML shows. refused: why it
    can take nothing."""

    id: str
    said: str
    cpus: float
    gpus_counted: float
    kinds: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    refused: str = ""

    @property
    def short(self) -> str:
        """Its id for a record: no name of a machine."""
        return self.id[:SHORT]


def unmet(node: Node, needs: Needs) -> str:
    """Why a node cannot take a task with these needs, "" if it can."""
    if node.refused:
        return node.refused
    if node.cpus < needs.cpus:
        return f"has {node.cpus:g} CPUs, needs {needs.cpus}"
    if not needs.gpus:
        return ""
    if node.gpus_counted < needs.gpus:
        return f"has {node.gpus_counted:g} GPUs, needs {needs.gpus}"
    if problems := unmet_by_driver(needs, node.driver):
        return "; ".join(problems)
    if not node.gpus:
        if needs.gpu_types and not any(
            is_type(kind, wanted) for kind in node.kinds for wanted in needs.gpu_types
        ):
            has = ", ".join(node.kinds) or "GPUs of an unknown type"
            return f"needs {' or '.join(needs.gpu_types)}, has {has}"
        return "does not tell how much memory is free" if needs.free_memory else ""
    problems_of = [unmet_by_gpu(needs, gpu.kind, gpu.free) for gpu in node.gpus]
    if sum(not problems for problems in problems_of) >= needs.gpus:
        return ""
    return "; ".join(dict.fromkeys(p for problems in problems_of for p in problems))


def eligible(
    nodes: Iterable[Node], attempt: Attempt, avoided: Collection[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Ids of the nodes that may take an attempt, and of those among them that are preferred: where
    it was not tried yet, and nothing is avoided.

    A node whose GPUs are all avoided takes no task for a GPU. One without GPUs that is avoided
    takes tasks only where no other can.
    """
    able = [node for node in nodes if not unmet(node, attempt.task.needs)]
    if attempt.task.needs.gpus:
        able = [node for node in able if _gpus_left(node, avoided) >= attempt.task.needs.gpus]
    clean = [node for node in able if not _touched(node, avoided)]
    fresh = [node for node in clean if not _touched(node, attempt.not_at)]
    wanted = fresh or clean or able
    return frozenset(node.id for node in able), frozenset(node.id for node in wanted)


def nothing_fits(nodes: Collection[Node], needs: Needs, avoided: Mapping[str, str]) -> str:
    """Why no node can take a task with these needs, node by node."""
    if not nodes:
        return "the cluster has no node left"
    said = []
    for node in list(nodes)[:SHOWN]:
        why = unmet(node, needs) or "; ".join(
            f"{key.partition('/')[2] or 'it'} is avoided: {reason}"
            for key, reason in avoided.items()
            if key.partition("/")[0] == node.short
        )
        said.append(f"node {node.short} ({node.said}): {why or 'is in use'}")
    if len(nodes) > SHOWN:
        said.append(f"and {len(nodes) - SHOWN} more")
    return f"no node can take it: {'; '.join(said)}"


def _gpus_left(node: Node, avoided: Collection[str]) -> float:
    mine = [key for key in avoided if key.startswith(f"{node.short}/")]
    return node.gpus_counted - len(mine)


def _touched(node: Node, keys: Collection[str]) -> bool:
    """Whether one of these keys is of this node, or of a GPU there."""
    return any(key.partition("/")[0] == node.short for key in keys)
