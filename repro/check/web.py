"""HTTP with limits: whole pages, byte ranges that are checked, long downloads that are hashed."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO, TypeVar
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from ..errors import UnreachableError, UntestableError
from ..escape import printable, quoted
from .settings import Settings
from .tree import Told

if TYPE_CHECKING:
    import requests

T = TypeVar("T")

LARGEST_PAGE = 64 << 20  # bytes, decoded
CHUNK = 1 << 16
LONGEST_SHOWN = 200  # characters of a URL in a message
# A body may take the time limit of an answer, and the time it needs at this rate.
SLOWEST = 16 << 10  # bytes/s
BUSY = {429, 500, 502, 503, 504}


class RangesRefusedError(UntestableError):
    """The server answers a range with the whole file. `size` is what it announced, in bytes."""

    def __init__(self, url: str, size: int | None) -> None:
        announced = f"{size / 1e6:.1f} MB" if size is not None else "a file of unknown size"
        super().__init__(
            f"the server of {file_name(url)} does not serve ranges; it would send {announced}",
            hint="--allow-full-download takes it whole",
        )
        self.size = size


class _TransientError(Exception):
    """Worth another attempt."""


def shown(url: str) -> str:
    """The URL as a message may show it: without credentials, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return printable(urlunsplit((parts.scheme, host, parts.path, "", "")))[:LONGEST_SHOWN]


def file_name(url: str) -> str:
    """The last part of the path of a URL, quoted for a message."""
    return quoted(unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2]))


class Web:
    """One session: connections are kept, and `requests` and `received` (bytes) counted.

    Proxies and netrc as the environment says, certificates and time limits as `settings` say.
    Not for several threads at once. Every method raises UntestableError where there is no answer.
    """

    def __init__(
        self, settings: Settings, told: Told, pauses: tuple[float, ...] = (0.3, 1.0)
    ) -> None:
        import requests

        self.requests = 0
        self.received = 0
        self._settings = settings
        self._told = told
        self._pauses = pauses
        self._session = requests.Session()
        self._session.hooks["response"].append(self._refuse_plain_redirect)
        self._session.auth = _Credentials(settings)
        self._session.cert = settings.client_certificate
        if settings.proxy:
            self._session.proxies = {"http": settings.proxy, "https": settings.proxy}

    def close(self) -> None:
        self._session.close()

    def page(self, url: str, accept: str) -> tuple[str, str, bytes] | None:
        """Address after redirects, content type and body; None if there is no such page."""

        def attempt() -> tuple[str, str, bytes] | None:
            response = self._send(url, {"Accept": accept})
            with response:
                if response.status_code in {404, 410}:
                    return None
                if response.status_code != 200:
                    raise _status(url, response)
                body = b"".join(self._body(response, LARGEST_PAGE))
                return response.url, response.headers.get("Content-Type", "text/html"), body

        return self._attempts(url, attempt)

    def part(self, url: str, start: int, end: int, size: int) -> bytes:
        """The bytes `start` … `end`-1 of a file of `size` bytes. RangesRefusedError if it can't."""
        asked = f"bytes={start}-{end - 1}"
        return self._attempts(url, lambda: self._range(url, asked, (start, end, size))[0])

    def tail(self, url: str, length: int) -> tuple[bytes, int]:
        """The last `length` bytes of a file, or all of a shorter one; and its size."""
        return self._attempts(url, lambda: self._range(url, f"bytes=-{length}", length))

    def there(self, url: str) -> bool:
        """Whether there is such a file, of which one byte is asked for."""

        def attempt() -> bool:
            headers = {"Range": "bytes=0-0", "Accept-Encoding": "identity"}
            with self._send(url, headers) as response:
                if response.status_code in {404, 410}:
                    return False
                if response.status_code not in {200, 206}:
                    raise _status(url, response)
                return True

        return self._attempts(url, attempt)

    def pour(self, url: str, into: BinaryIO, limit: int) -> str:
        """Copy a whole file of at most `limit` bytes, telling how far it is; its sha256, hex."""

        def attempt() -> str:
            into.seek(0)
            into.truncate()
            digest = hashlib.sha256()
            with self._send(url, {"Accept-Encoding": "identity"}) as response:
                if response.status_code != 200:
                    raise _status(url, response)
                size = _length(response)
                done, told = 0, time.monotonic()
                for chunk in self._body(response, limit):
                    into.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    if time.monotonic() - told >= 1:
                        told = time.monotonic()
                        of = f" of {size / 1e6:.1f}" if size else ""
                        self._told(f"{file_name(url)}: {done / 1e6:.1f}{of} MB")
            return digest.hexdigest()

        return self._attempts(url, attempt)

    def _range(
        self, url: str, asked: str, expected: tuple[int, int, int] | int
    ) -> tuple[bytes, int]:
        response = self._send(url, {"Range": asked, "Accept-Encoding": "identity"})
        # leaving the block early drops the connection: nothing of a whole wheel is drained
        with response:
            if response.status_code == 200:
                raise RangesRefusedError(url, _length(response))
            if response.status_code != 206:
                raise _status(url, response)
            answered = response.headers.get("Content-Range", "")
            match = re.fullmatch(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})", answered.strip())
            if not match or response.headers.get("Content-Encoding", "identity") != "identity":
                raise UntestableError(
                    f"the server of {file_name(url)} answers a range with {quoted(answered)}"
                )
            start, end, size = int(match[1]), int(match[2]) + 1, int(match[3])
            if isinstance(expected, int):
                expected = (max(0, size - expected), size, size)
            if (start, end, size) != expected:
                raise UntestableError(
                    f"the server of {file_name(url)} was asked for {asked} of a file of "
                    f"{expected[2]} bytes and answered {quoted(answered)}"
                )
            body = b"".join(self._body(response, end - start))
        if len(body) != end - start:
            raise _TransientError(f"{len(body)} of {end - start} bytes came")
        return body, size

    def _send(self, url: str, headers: dict[str, str]) -> requests.Response:
        import requests

        self._refuse_plain(url)
        limit = self._settings.timeout
        verify = self._settings.certificates or True
        try:
            response = self._session.get(
                url, headers=headers, stream=True, timeout=limit, verify=verify
            )
        except requests.exceptions.SSLError as error:
            raise UntestableError(
                f"no trusted connection to {shown(url)}: {_reason(error)}",
                hint="PIP_CERT or SSL_CERT_FILE names the certificates of your own authority",
            ) from error
        except (requests.ConnectionError, requests.Timeout) as error:
            raise _TransientError(_reason(error)) from error
        except requests.RequestException as error:
            raise UntestableError(f"{shown(url)} cannot be read: {_reason(error)}") from error
        self.requests += 1 + len(response.history)
        if response.status_code in BUSY:
            response.close()
            raise _TransientError(f"status {response.status_code}")
        return response

    def _body(self, response: requests.Response, limit: int) -> Iterator[bytes]:
        import urllib3

        patience = time.monotonic() + self._settings.timeout
        done = 0
        try:
            # a plain read would wait for a whole chunk, however slowly it comes
            while chunk := response.raw.read1(CHUNK, decode_content=True):
                done += len(chunk)
                self.received += len(chunk)
                if done > limit:
                    raise UntestableError(
                        f"{shown(response.url)} is longer than the {limit} bytes it may have"
                    )
                if time.monotonic() > patience + done / SLOWEST:
                    raise _TransientError(f"too slow: {done} bytes came in time")
                yield chunk
        except urllib3.exceptions.HTTPError as error:
            raise _TransientError(f"cut after {done} bytes: {_reason(error)}") from error

    def _attempts(self, url: str, attempt: Callable[[], T]) -> T:
        for pause in self._pauses:
            try:
                return attempt()
            except _TransientError as error:
                self._told(f"{file_name(url)}: {error}; trying again")
                time.sleep(pause)
        try:
            return attempt()
        except _TransientError as error:
            times = len(self._pauses) + 1
            raise UnreachableError(
                f"{shown(url)} cannot be read, tried {times} times: {error}",
                hint="--offline answers from what was read before",
            ) from error

    def _refuse_plain_redirect(self, response: requests.Response, **options: object) -> None:
        """Look where an answer leads before the session goes there."""
        if response.is_redirect:
            target = urljoin(response.url, response.headers["Location"])
            try:
                self._refuse_plain(target)
            except UntestableError:
                response.close()
                raise

    def _refuse_plain(self, url: str) -> None:
        parts = urlsplit(url)
        host = parts.hostname or ""
        plain = parts.scheme == "http" and (_loopback(host) or self._settings.trusts(parts.netloc))
        if plain or parts.scheme == "https":
            return
        raise UntestableError(
            f"{shown(url)} is not https, and what comes from it would be executed",
            hint="PIP_TRUSTED_HOST names hosts that may be read without it",
        )


class _Credentials:
    """Those in the URLs of the user's indexes, for these hosts; netrc for others."""

    def __init__(self, settings: Settings) -> None:
        self._known = {}
        for url in (*settings.indexes, *settings.find_links):
            parts = urlsplit(url)
            if parts.username is not None:
                pair = (unquote(parts.username), unquote(parts.password or ""))
                self._known[parts.netloc.rpartition("@")[2]] = pair

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        from requests.auth import HTTPBasicAuth
        from requests.utils import get_auth_from_url, get_netrc_auth

        url = request.url or ""
        host = urlsplit(url).netloc.rpartition("@")[2]
        own = get_auth_from_url(url)
        pair = own if any(own) else self._known.get(host) or get_netrc_auth(url)
        return HTTPBasicAuth(*pair)(request) if pair else request


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _length(response: requests.Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if re.fullmatch(r"\d{1,15}", text) else None


def _status(url: str, response: requests.Response) -> UntestableError:
    code = response.status_code
    hint = {
        401: "the index wants credentials: in its URL, or in netrc",
        403: "the index refuses these credentials",
        404: "the index lists a file that its server does not have",
        416: "the file is shorter than the index says",
    }.get(code)
    return UntestableError(f"{shown(url)} answered {code}", hint=hint)


def _reason(error: BaseException) -> str:
    """The innermost thing that went wrong, without the URL that libraries put around it."""
    seen = [error]
    while True:
        inner = getattr(seen[-1], "reason", None)
        if not isinstance(inner, BaseException):
            inner = next((a for a in seen[-1].args if isinstance(a, BaseException)), None)
        if inner is None or inner in seen:
            break
        seen.append(inner)
    text = str(seen[-1]).rpartition(">: ")[2] or type(seen[-1]).__name__
    return quoted(text)
