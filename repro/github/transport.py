"""How a request reaches GitHub: by `requests` with a token, or by `gh`, which has its own login.

Both carry one request and bring one answer; what answers mean is for `client.py`.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from ..errors import NotPostedError
from ..escape import printable
from .issue import GITHUB

SECONDS = 30.0  # of one request
LARGEST = 16 << 20  # bytes of an answer
LONGEST_NUMBER = 19  # digits; more are no number of bytes
_STATUS = re.compile(r"HTTP/[\d.]{1,4} (\d{3})")


@dataclass(frozen=True, slots=True)
class Answer:
    """status: of HTTP. headers: names in small letters. body: JSON, None where it is none."""

    status: int
    headers: Mapping[str, str]
    body: Any


class CutError(Exception):
    """The connection ended before the answer: whether the request was carried out is not known."""


class Transport(Protocol):
    """Carries a request. path: behind the address of the interface. CutError, NotPostedError."""

    name: str

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer: ...


class Rest:
    """Requests with a token, which goes to `host` and nowhere else: redirects are not followed."""

    name = "REST, with a token from the environment"

    def __init__(self, host: str, token: str, environ: Mapping[str, str]) -> None:
        if importlib.util.find_spec("requests") is None:
            raise NotPostedError(
                "to post without gh, specrepro needs requests",
                hint="pip install 'specrepro[attach]', or log in with gh",
            )
        import requests

        self._base = base(host, environ)
        self._session = requests.Session()
        self._session.trust_env = True  # proxies and certificates
        self._session.auth = _nothing  # or netrc would replace the header
        self._session.headers.update(
            {
                "Authorization": f"Bearer {token}",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "specrepro",
            }
        )

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        import requests

        try:
            with self._session.request(
                method,
                f"{self._base}/{path}",
                json=body,
                timeout=SECONDS,
                allow_redirects=False,
                stream=True,
            ) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                if response.is_redirect:  # whose body requests has read
                    return Answer(response.status_code, headers, None)
                content = response.raw.read(LARGEST + 1, decode_content=True)
                if len(content) > LARGEST:
                    raise NotPostedError("GitHub's answer is too large to be one")
                announced = headers.get("content-length", "")
                plain = "content-encoding" not in headers
                known = announced.isdecimal() and len(announced) < LONGEST_NUMBER
                if plain and known and int(announced) > len(content):
                    raise CutError("the answer is cut")
                return Answer(response.status_code, headers, _json(content))
        except requests.exceptions.InvalidHeader as error:
            raise NotPostedError("the token holds characters that no token has") from error
        except (requests.RequestException, OSError, _protocol_error()) as error:
            raise CutError(printable(type(error).__name__)) from error


class Gh:
    """`gh api`, with gh's own login. The token stays with gh."""

    name = "gh"

    def __init__(self, host: str, environ: Mapping[str, str]) -> None:
        self._host = host
        self._environ = {**environ, "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"}
        self._program = shutil.which("gh", path=environ.get("PATH")) or ""

    def usable(self) -> bool:
        """Whether gh is here and logged in to the host."""
        if not self._program:
            return False
        try:
            status = self._run(["auth", "status", "--hostname", self._host], None)
        except CutError:
            return False
        return status.returncode == 0

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        words = ["api", "--include", "--hostname", self._host, "--method", method, path]
        done = self._run(words if body is None else [*words, "--input", "-"], body)
        head, _, content = done.stdout.replace(b"\r\n", b"\n").partition(b"\n\n")
        lines = head.decode("utf-8", "replace").splitlines()
        status = _STATUS.match(lines[0]) if lines else None
        if not status:  # gh ended before an answer came
            raise CutError(f"gh ended with status {done.returncode}")
        pairs = (line.partition(":") for line in lines[1:])
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return Answer(int(status[1]), headers, _json(content))

    def _run(
        self, words: list[str], body: Mapping[str, Any] | None
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                [self._program, *words],
                input=b"" if body is None else json.dumps(body).encode(),
                capture_output=True,
                timeout=SECONDS,
                env=self._environ,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CutError(f"gh: {printable(type(error).__name__)}") from error


def transport(host: str, environ: Mapping[str, str]) -> Transport:
    """gh where it is logged in, else REST with GH_TOKEN or GITHUB_TOKEN; NotPostedError if none."""
    gh = Gh(host, environ)
    if gh.usable():
        return gh
    token = environ.get("GH_TOKEN") or environ.get("GITHUB_TOKEN")
    if not token:
        raise NotPostedError(
            f"not logged in to {host}",
            hint="gh auth login, or a token in GH_TOKEN that may write issues",
        )
    return Rest(host, token.strip(), environ)


def base(host: str, environ: Mapping[str, str]) -> str:
    """The address of the REST interface. NotPostedError for one that would show the token."""
    given = environ.get("GITHUB_API_URL", "").rstrip("/")
    if not given:
        return f"https://api.{GITHUB}" if host == GITHUB else f"https://{host}/api/v3"
    parts = urlsplit(given)
    if parts.scheme == "https" or (parts.scheme == "http" and _loopback(parts.hostname or "")):
        return given
    raise NotPostedError("GITHUB_API_URL is not https: the token would be readable on its way")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _nothing(request: Any) -> Any:
    return request


def _protocol_error() -> type[Exception]:
    from urllib3.exceptions import HTTPError

    return HTTPError


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):  # nested without end is no JSON of GitHub's either
        return None
