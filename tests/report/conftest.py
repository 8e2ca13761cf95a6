"""Stored runs to report, the command line as a shell starts it, and a server for them.

The server behaves as GitHub's REST interface does, as far as comments, issues and gists go. It
keeps what is posted, pages its lists with `Link`, knows tokens, and goes wrong as it is told.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

TOKEN = "ghp_" + "a1B2" * 9
APP = "ghs_" + "c3D4" * 9


@dataclass
class Fault:
    """What goes wrong with one change. cut: close without an answer, `before` or `after` it is
    made. short: announce more than is sent. raw: this body, of status 200."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    message: str = ""
    cut: str = ""
    short: bool = False
    raw: bytes = b""


@dataclass
class GitHub:
    """The state of the server, for a test to look at and to script."""

    # test modules cannot import this one
    TOKEN: ClassVar[str] = TOKEN
    APP: ClassVar[str] = APP

    address: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    issues: list[dict[str, Any]] = field(default_factory=list)
    gists: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)  # one a change, in order
    reads: list[Fault] = field(default_factory=list)  # one a read
    asked: list[tuple[str, str]] = field(default_factory=list)
    page_size: int = 100
    locked: bool = False

    def environ(self, token: str | None = TOKEN) -> dict[str, str]:
        """The environment of someone who uses this server and has no gh."""
        found = {"GITHUB_API_URL": self.address, "PATH": ""}
        return found if token is None else found | {"GH_TOKEN": token}

    def goes_wrong(self, **how: Any) -> None:
        """One more change goes wrong, after those told before."""
        self.faults.append(Fault(**how))

    def reads_go(self, *how: dict[str, Any]) -> None:
        """The reads that follow, one by one; {} is well."""
        self.reads = [Fault(**each) for each in how]

    def add(self, body: str, author: str) -> dict[str, Any]:
        number = len(self.comments) + 1
        made = {
            "id": number,
            "body": body,
            "user": {"login": author},
            "html_url": f"https://github.com/o/r/issues/5#issuecomment-{number}",
        }
        self.comments.append(made)
        return made


@pytest.fixture
def github() -> Iterator[GitHub]:
    state = GitHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            """Tests look at `asked`."""

        def do_GET(self) -> None:
            self.handled("GET")

        def do_POST(self) -> None:
            self.handled("POST")

        def do_PATCH(self) -> None:
            self.handled("PATCH")

        def handled(self, method: str) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else {}
            parts = urlsplit(self.path)
            state.asked.append((method, parts.path))
            query = parts.path == "/graphql"
            script = state.reads if method == "GET" or query else state.faults
            fault = script.pop(0) if script else Fault()
            if fault.cut == "before":
                return self.hang_up()
            if fault.status:
                return self.answer(fault.status, {"message": fault.message}, fault.headers)
            if fault.raw:
                return self.sent(200, fault.raw)
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            if token not in (TOKEN, APP):
                return self.answer(401, {"message": "Bad credentials"})
            status, said, headers = self.done(method, parts.path, parse_qs(parts.query), body)
            if fault.cut == "after":
                return self.hang_up()
            return self.answer(status, said, headers, short=fault.short)

        def done(
            self, method: str, path: str, query: dict[str, list[str]], body: Any
        ) -> tuple[int, Any, dict[str, str]]:
            app = self.headers["Authorization"].endswith(APP)
            me = "specrepro-app[bot]" if app else "me"
            match method, path.strip("/").split("/"):
                case "GET", ["user"]:
                    if app:
                        return 403, {"message": "Resource not accessible by integration"}, {}
                    return 200, {"login": me}, {}
                case "POST", ["graphql"]:
                    return 200, {"data": {"viewer": {"login": me}}}, {}
                case "GET", ["repos", "o", "r", "issues", "5", "comments"]:
                    return self.page(state.comments, path, query)
                case "POST", ["repos", "o", "r", "issues", "5", "comments"]:
                    if state.locked:
                        return 403, {"message": "Unable to create comment: locked"}, {}
                    if len(body["body"]) > 65536:
                        return 422, {"message": "Body is too long (maximum is 65536)"}, {}
                    return 201, state.add(body["body"], me), {}
                case "PATCH", ["repos", "o", "r", "issues", "comments", number]:
                    [found] = [c for c in state.comments if c["id"] == int(number)]
                    if found["user"]["login"] != me:
                        return 403, {"message": "Must be the author"}, {}
                    found["body"] = body["body"]
                    return 200, found, {}
                case "GET", ["repos", "o", "r", "issues"]:
                    return self.page(state.issues[::-1], path, query)
                case "POST", ["repos", "o", "r", "issues"]:
                    made = {
                        "id": 900 + len(state.issues),
                        "number": len(state.issues) + 1,
                        "user": {"login": me},
                        "html_url": f"https://github.com/o/r/issues/{len(state.issues) + 1}",
                        **body,
                    }
                    state.issues.append(made)
                    return 201, made, {}
                case "PATCH", ["repos", "o", "r", "issues", number]:
                    [found] = [i for i in state.issues if i["number"] == int(number)]
                    if found["user"]["login"] != me:
                        return 403, {"message": "Must have admin rights"}, {}
                    found.update(body)
                    return 200, found, {}
                case "GET", ["gists"]:
                    return self.page(state.gists[::-1], path, query)
                case "POST", ["gists"]:
                    number = str(len(state.gists) + 1)
                    made = {"id": number, "html_url": f"https://github.com/gist/{number}", **body}
                    state.gists.append(made)
                    return 201, made, {}
                case "GET" | "PATCH", ["gists", number]:
                    [found] = [g for g in state.gists if g["id"] == number] or [None]
                    if found is None:
                        return 404, {"message": "Not Found"}, {}
                    found.update(body)
                    return 200, found, {}
                case _, ["repos", "o", "r", "issues", "410", *_]:
                    return 410, {"message": "This issue was deleted"}, {}
                case _, ["repos", "o", "moved", *_]:
                    return 301, {"message": "Moved Permanently"}, {"Location": "/elsewhere"}
            return 404, {"message": "Not Found"}, {}

        def page(
            self, items: list[Any], path: str, query: dict[str, list[str]]
        ) -> tuple[int, Any, dict[str, str]]:
            number, size = int(query["page"][0]), state.page_size
            headers = {}
            if number * size < len(items):
                following = f"<{state.address}{path}?per_page=100&page={number + 1}>"
                headers["Link"] = f'{following}; rel="next", {following}; rel="last"'
            return 200, items[(number - 1) * size : number * size], headers

        def answer(
            self, status: int, said: Any, headers: dict[str, str] | None = None, short: bool = False
        ) -> None:
            self.sent(status, json.dumps(said).encode(), headers, short)

        def sent(
            self,
            status: int,
            content: bytes,
            headers: dict[str, str] | None = None,
            short: bool = False,
        ) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content) + (100 if short else 0)))
            self.end_headers()
            self.wfile.write(content)
            if short:
                self.hang_up()

        def hang_up(self) -> None:
            self.close_connection = True
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)

    server = ThreadingHTTPServer(("localhost", 0), Handler)
    server.daemon_threads = True
    state.address = f"http://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


CODE = "import sys; from specrepro.cli import main; main()"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def command() -> Command:
    def run(*words: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
        environ = {k: v for k, v in os.environ.items() if k not in ("GH_TOKEN", "GITHUB_TOKEN")}
        return subprocess.run(
            [sys.executable, "-c", CODE, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=more.pop("timeout", 120),
            env=environ | {"COLUMNS": "100", "NO_COLOR": "1"} | more.pop("env", {}),
            **more,
        )

    return run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    """A folder of runs with one that is finished, of the reference alone."""
    folder = tmp_path_factory.mktemp("runs")
    done = command("run", "mtp-tail-overflow", "--lane", "reference", "--runs", folder, "-q")
    assert done.returncode == 125  # no lane that executes kernels ran
    return folder


@pytest.fixture
def runs(finished: Path, tmp_path: Path) -> Path:
    """The same, for a test to change."""
    folder = tmp_path / "runs"
    shutil.copytree(finished, folder, symlinks=True)
    return folder
