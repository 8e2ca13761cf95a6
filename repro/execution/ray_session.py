"""The calls of Ray: connect, look at nodes, hand over, wait, cancel. Everything Ray raises becomes
an error of ours here."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

from ... import __version__
from ..errors import ClusterError, LaneError
from ..escape import printable, quoted
from .digest import code_digest
from .nodes import Gpu, Node

INSTALL = "pip install 'specrepro[ray]'"
LOCAL, AUTO = "local", "auto"
ADDRESS = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}")
CONNECT = 10.0  # seconds that the head has to answer
SURVEY = 120.0  # seconds that a node has to say what it is: its first worker has to start
GONE = 30.0  # seconds without an answer of the head, less than after which Ray ends this process
STORE = 256 << 20  # bytes of the object store of a cluster that is started for this alone
# Ray reports usage, and copies the project of `uv run` to the nodes, unless it is told not to
SILENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
KIND = "accelerator_type:"
THREAD = "ray_listen_error_messages"  # prints to stdout what nodes complain of


@dataclass(slots=True)
class Session:
    """A connection to a cluster. head: its address, to see whether it still answers."""

    ray: Any
    head: tuple[str, int] | None
    carry: Any
    survey: Any
    answered: float = field(default_factory=time.monotonic)

    def error(self, message: str) -> ClusterError:
        """An error about the cluster as a whole."""
        return ClusterError(message, hint="ray status shows what the cluster has")

    def nodes(self, known: Mapping[str, Node]) -> dict[str, Node]:
        """The nodes that are alive; those that are not `known` are asked what they are.

        ClusterError once the head has not answered for GONE seconds.
        """
        if not self._answers():
            if time.monotonic() - self.answered > GONE:
                raise ClusterError(f"the head of the cluster has not answered for {GONE:g} s")
            return dict(known)
        self.answered = time.monotonic()
        try:
            alive = [one for one in self.ray.nodes() if one["Alive"]]
        except self.ray.exceptions.RayError as error:
            raise ClusterError(f"the cluster does not say what nodes it has: {error}") from error
        new = {one["NodeID"]: one for one in alive if one["NodeID"] not in known}
        told = self._surveyed(new)
        return {
            one["NodeID"]: known.get(one["NodeID"]) or node_from(one, told[one["NodeID"]])
            for one in alive
        }

    def submit(
        self,
        parcel: Mapping[str, Any],
        cpus: int,
        gpus: int,
        wanted: Collection[str],
        others: Collection[str],
    ) -> Any:
        """Hand a task over, for one of the nodes `wanted`, and none of the `others`."""
        options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus}
        if others:
            few = len(others) <= len(wanted)
            names = ",".join(sorted(others if few else wanted))
            options["label_selector"] = {"ray.io/node-id": f"{'!' if few else ''}in({names})"}
        return self.carry.options(**options).remote(dict(parcel))

    def ready(self, flights: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Those that have something to say, waiting for the first one up to `seconds`."""
        found, _ = self.ray.wait(list(flights), num_returns=1, timeout=seconds, fetch_local=False)
        if found and len(flights) > 1:  # the others that are ready too, without waiting
            found, _ = self.ray.wait(
                list(flights), num_returns=len(flights), timeout=0, fetch_local=False
            )
        return list(found)

    def next(self, flight: Any, seconds: float) -> dict[str, Any]:
        """What a task says next; LaneError where worker, node or result are lost."""
        errors = self.ray.exceptions
        try:
            said = self.ray.get(next(flight), timeout=seconds)
        except StopIteration:
            raise LaneError("it ended without a result") from None
        except errors.NodeDiedError as error:
            raise LaneError("its node was lost") from error
        except errors.WorkerCrashedError as error:
            raise LaneError("its worker was lost") from error
        except errors.OutOfMemoryError as error:
            raise LaneError("its worker was ended: the node was out of memory") from error
        except (errors.ObjectLostError, errors.GetTimeoutError) as error:
            raise LaneError("its result was lost with its node") from error
        except errors.RayError as error:
            first = str(error).strip().splitlines()[-1:] or [""]
            raise LaneError(printable(f"{type(error).__name__}: {first[0]}")) from error
        if not isinstance(said, dict):
            raise LaneError("its result is no result of ours")
        return said

    def cancel(self, flight: Any) -> None:
        """End a task, begun or not. What its worker started ends with the worker."""
        with suppress(self.ray.exceptions.RayError):
            self.ray.cancel(flight, force=True)

    def clear(self, play: str) -> None:
        """Have every node remove what a play left there; a node that does not answer keeps it."""
        from . import node as there

        if not self._answers():
            return  # Ray would wait for it, and then end this process
        with suppress(self.ray.exceptions.RayError):
            asked = [
                self.ray.remote(num_cpus=0, max_retries=0)(there.clear)
                .options(label_selector={"ray.io/node-id": one["NodeID"]})
                .remote(play)
                for one in self.ray.nodes()
                if one["Alive"]
            ]
            self.ray.wait(asked, num_returns=len(asked), timeout=CONNECT)

    def _answers(self) -> bool:
        if self.head is None:
            return True
        with suppress(OSError), socket.create_connection(self.head, timeout=CONNECT):
            return True
        return False

    def _surveyed(self, new: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """What each node says of itself, or `{"refused": why}`."""
        if not new:
            return {}
        asked = {
            name: self.survey.options(label_selector={"ray.io/node-id": name}).remote()
            for name in new
        }
        self.ray.wait(list(asked.values()), num_returns=len(asked), timeout=SURVEY)
        told: dict[str, dict[str, Any]] = {}
        for name, reference in asked.items():
            try:
                told[name] = dict(self.ray.get(reference, timeout=0))
            except self.ray.exceptions.GetTimeoutError:
                self.cancel(reference)
                told[name] = {"refused": f"no worker has answered there within {SURVEY:g} s"}
            except self.ray.exceptions.RayError as error:
                missing = "No module named 'specrepro" in str(error)
                last = printable(str(error).strip().splitlines()[-1])
                told[name] = {"refused": "specrepro is not installed there" if missing else last}
        return told


def node_from(one: Mapping[str, Any], told: Mapping[str, Any]) -> Node:
    """A node from what Ray and what its own worker say of it."""
    resources = one["Resources"]
    said = f"{printable(str(told.get('host') or one['NodeManagerHostname']))}"
    refused = str(told.get("refused", ""))
    if not refused and (told["version"], told["digest"]) != (__version__, code_digest()):
        has = printable(str(told["version"]))
        other = f"specrepro {has} there" if has != __version__ else "specrepro there has other code"
        refused = f"{other}, {__version__} here: results of two codes are not put together"
    return Node(
        one["NodeID"],
        said,
        float(resources.get("CPU", 0.0)),
        float(resources.get("GPU", 0.0)),
        tuple(key.removeprefix(KIND) for key in resources if key.startswith(KIND)),
        tuple(Gpu(str(name), kind, free) for name, kind, free in told.get("gpus", ())),
        told.get("driver"),
        refused,
    )


@contextmanager
def session(address: str) -> Iterator[Session]:
    """A connection; ClusterError where there is no Ray here, or nobody answers at `address`."""
    if address not in (LOCAL, AUTO) and not ADDRESS.fullmatch(address):
        raise ClusterError(
            f"{quoted(re.sub('[^@/]*@', '…@', address))} is no address of a cluster",
            hint="--ray HOST:PORT (6379 as a rule), --ray auto, or --ray local",
        )
    os.environ.update(SILENT)
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise ClusterError("Ray is not installed here", hint=INSTALL) from error
    if ray.is_initialized():
        raise ClusterError("this process is connected to a cluster already")
    from . import node as there

    head = _reachable(address)
    handler = signal.getsignal(signal.SIGTERM)
    with redirect_stdout(WithoutRay(sys.stdout)):
        try:
            _connect(ray, address)
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)  # Ray puts its own there
            yield Session(
                ray,
                head or _head(ray),
                ray.remote(num_returns="streaming", max_retries=0)(there.on_ray),
                ray.remote(num_cpus=0, max_retries=2)(there.survey),
            )
        finally:
            ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    try:
        if address == LOCAL:
            ray.init(address="local", include_dashboard=False, object_store_memory=STORE, **quiet)
        else:
            ray.init(address=address, **quiet)
    except ConnectionError as error:
        raise ClusterError(
            f"no cluster answers at {address}: {_short(error)}", hint="ray status asks it as well"
        ) from error
    except Exception as error:  # a node of Ray's that does not start in time raises a bare one
        raise ClusterError(f"the cluster at {address} cannot be used: {_short(error)}") from error


def _short(error: Exception) -> str:
    """An error of Ray's in a line."""
    return printable(" ".join(str(error).split()))[:400]


def _reachable(address: str) -> tuple[str, int] | None:
    """The head by host and port; ClusterError where nobody listens there."""
    if address in (LOCAL, AUTO):
        return None
    host, _, port = address.rpartition(":")
    head = host.strip("[]"), int(port)
    try:
        socket.create_connection(head, timeout=CONNECT).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"no cluster answers at {address}: {error}", hint="ray status, on its head, shows it"
        ) from error
    return head


def _head(ray: Any) -> tuple[str, int] | None:
    host, _, port = str(ray.get_runtime_context().gcs_address).rpartition(":")
    return (host.strip("[]"), int(port)) if port.isdigit() else None


class WithoutRay:
    """stdout, but for what Ray's own thread prints there: complaints of nodes, which are no data.

    The outcomes of tasks say the same.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if threading.current_thread().name == THREAD:
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
