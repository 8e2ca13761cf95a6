"""Small wheels, and a server that serves them by ranges, or badly."""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import importlib.util
import io
import json
import os
import re
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from specrepro.repro.check.builds import Builds

# No test asserts a time, and a machine may be busy.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

FILES = {
    "vllm/__init__.py": b"",
    "vllm/_version.py": b"__version__ = '0.28.0'\n__commit_id__ = commit_id = 'gabc123def'\n",
    "vllm/v1/core/sched/scheduler.py": b"def schedule(): return 1\n",
    "vllm/v1/worker/runner.py": b"def run(): return 2\n" * 50,
}


def wheel_name(version: str, build: str = "", platform: str = "manylinux_2_28_x86_64") -> str:
    tag = f"-{build}" if build else ""
    return f"vllm-{version}{tag}-cp38-abi3-{platform}.whl"


def hashed(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"


def make_wheel(
    files: Mapping[str, bytes] = FILES,
    version: str = "0.28.0",
    *,
    padding: int = 0,
    record: Callable[[list[list[str]]], list[list[str]]] = lambda rows: rows,
    extra: Callable[[zipfile.ZipFile], None] = lambda archive: None,
) -> bytes:
    """A wheel of `files`; `padding` bytes that do not pack lie between them and RECORD.

    `record` edits the rows of RECORD, `extra` adds to the archive what no wheel has.
    """
    rows = [[name, hashed(content), str(len(content))] for name, content in files.items()]
    name = f"vllm-{version}.dist-info/RECORD"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*record(rows), [name, "", ""]])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in files.items():
            archive.writestr(member, content)
        if padding:
            archive.writestr("vllm/_C.so", os.urandom(padding), zipfile.ZIP_STORED)
        extra(archive)
        archive.writestr(name, text.getvalue())
    return out.getvalue()


@dataclass
class Served:
    """One path of the server. `behaviour` is one of Server's; `failures` come before it."""

    content: bytes
    behaviour: str = "ranges"
    failures: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    path: str
    range: str | None
    headers: dict[str, str]
    connection: int


class Server:
    """Serves `paths` and keeps what it was `asked`.

    Behaviours: `ranges`, `whole` (200 whatever is asked), `shifted` (another range), `resized`
    (another total), `unsaid` (no Content-Range), `cut` (half a body), `trickle`, `packed`,
    `redirect`.
    """

    def __init__(self) -> None:
        self.paths: dict[str, Served] = {}
        self.asked: list[Asked] = []
        self.sent = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.answer(self)

            def handle(self) -> None:
                # a reader that hangs up is one of the things tested
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    super().handle()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("localhost", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://localhost:{self.http.server_port}"

    def add_release(self, content: bytes, name: str, **served: object) -> str:
        """Serve a wheel or sdist; its URL."""
        self.paths[f"/files/{name}"] = Served(content, **served)  # type: ignore[arg-type]
        return f"{self.url}/files/{name}"

    def add_index(
        self,
        *names: str,
        yanked: Mapping[str, str] | None = None,
        path: str = "/simple/vllm/",
        hashes: bool = True,
    ) -> None:
        """An index page in JSON with the files that are served under these names."""
        files = []
        for name in names:
            content = self.paths[f"/files/{name}"].content
            digests = {"sha256": hashlib.sha256(content).hexdigest()} if hashes else {}
            file = {"filename": name, "url": f"{self.url}/files/{name}", "hashes": digests}
            if hashes:
                file["size"] = len(content)
            if yanked and name in yanked:
                file["yanked"] = yanked[name]
            files.append(file)
        page = {"meta": {"api-version": "1.1"}, "name": "vllm", "files": files}
        self.paths[path] = Served(
            json.dumps(page).encode(),
            "whole",
            headers={"Content-Type": "application/vnd.pypi.simple.v1+json"},
        )

    def add_page(self, path: str, text: str, kind: str = "text/html") -> None:
        self.paths[path] = Served(text.encode(), "whole", headers={"Content-Type": kind})

    def add_redirect(self, path: str, status: int, target: str) -> None:
        self.paths[path] = Served(b"", "redirect", [status] * 9, {"Location": target})

    def of(self, path: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.path == path]

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = request.headers.get("Range")
        headers = dict(request.headers.items())
        self.asked.append(Asked(request.path, asked, headers, request.client_address[1]))
        served = self.paths.get(request.path)
        status = 404 if served is None else served.failures.pop(0) if served.failures else 0
        if served is None or status:
            self._send(request, status, served.headers if served else {}, b"")
            return
        content = served.content
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", asked or "")
        if served.behaviour == "whole" or not wanted:
            self._send(request, 200, served.headers, content)
            return
        if wanted[1]:
            start, end = int(wanted[1]), min(int(wanted[2]) + 1, len(content))
        else:
            start, end = max(0, len(content) - int(wanted[2])), len(content)
        said = f"bytes {start}-{end - 1}/{len(content)}"
        if served.behaviour == "shifted":
            said = f"bytes {start + 1}-{end}/{len(content)}"
        elif served.behaviour == "resized":
            said = f"bytes {start}-{end - 1}/{len(content) + 1}"
        more = {"Content-Range": said, **served.headers}
        if served.behaviour == "unsaid":
            del more["Content-Range"]
        elif served.behaviour == "packed":
            more["Content-Encoding"] = "gzip"
        self._send(request, 206, more, content[start:end], served.behaviour)

    def _send(
        self,
        request: BaseHTTPRequestHandler,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        behaviour: str = "",
    ) -> None:
        request.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        try:
            if behaviour == "cut":
                request.wfile.write(body[: len(body) // 2])
                request.close_connection = True
                return
            if behaviour == "trickle":
                for byte in body:
                    request.wfile.write(bytes([byte]))
                    time.sleep(0.02)
                return
            for at in range(0, len(body), 1 << 16):
                request.wfile.write(body[at : at + (1 << 16)])
                self.sent += len(body[at : at + (1 << 16)])
        except (BrokenPipeError, ConnectionResetError):
            request.close_connection = True


class Wheels:
    """What tests make wheels with."""

    FILES = FILES
    make = staticmethod(make_wheel)
    name = staticmethod(wheel_name)


@pytest.fixture
def wheels() -> Wheels:
    return Wheels()


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()
    thread = threading.Thread(target=served.http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield served
    served.http.shutdown()
    served.http.server_close()
    thread.join()


@pytest.fixture
def environ(server: Server, tmp_path: Path) -> dict[str, str]:
    """An environment whose only index is the server."""
    return {
        "HOME": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "UV_NO_CONFIG": "1",
        "PIP_INDEX_URL": f"{server.url}/simple",
        "PIP_TIMEOUT": "5",
    }


@pytest.fixture
def opened(environ: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Builds]]:
    """Makes `Builds` that know the server only, and closes them."""
    made: list[Builds] = []

    def make(**options: object) -> Builds:
        builds = Builds(cache=tmp_path / "cache", environ=environ, **options)  # type: ignore[arg-type]
        made.append(builds)
        return builds

    yield make
    for builds in made:
        builds.close()


@pytest.fixture(scope="session")
def made_up_gpu(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Any]:
    """Makes a machine with a GPU in a folder (tests/lanes/box.py); skips without a compiler."""
    folder = Path(__file__).parent / "lanes"
    modules = {}
    for name in ("conftest", "box"):
        spec = importlib.util.spec_from_file_location(f"made_up_{name}", folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        modules[name] = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = modules[name]
        spec.loader.exec_module(modules[name])
    library = modules["conftest"].compiled(tmp_path_factory.mktemp("cuda"))
    return lambda at: modules["box"].made(at, library)
