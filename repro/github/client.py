"""What GitHub's answers mean: waits that it asks for, pages, and errors with what to do next.

Rules of GitHub's REST documentation, "Rate limits" and "Best practices": after 403 or 429 wait as
`retry-after` says, else until `x-ratelimit-reset` where none remain, else a minute.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import NotPostedError
from ..escape import printable
from .transport import Answer, CutError, Transport

LONGEST_WAIT = 900.0  # seconds that are waited for a limit; beyond, the user is told
A_MINUTE = 60.0
MOST_PAGES = 100
TRIES = 4  # of one request that is put off by a limit, or fails on the server's side
_NEXT = re.compile(r'<([^>]{1,2000})>;\s*rel="next"')
_PAGE = re.compile(r"[?&]page=(\d{1,6})(?:&|$)")

Told = Callable[[str], None]


class Client:
    """Calls over a transport. `told` hears of waits; `wait` sleeps so many seconds."""

    def __init__(
        self, transport: Transport, told: Told, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._transport = transport
        self._told = told
        self._wait = wait

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        return self._call("GET", path, None).body

    def there(self, path: str) -> Mapping[str, Any] | None:
        """The object at a path, None where there is none that this login may see."""
        answer = self._asked("GET", path, None)
        if answer.status == 404:
            return None
        if answer.status >= 300:
            raise _refused("GET", answer)
        return answer.body if isinstance(answer.body, Mapping) else None

    def listed(self, path: str, query: str = "") -> Iterator[Mapping[str, Any]]:
        """Every object of a list, page by page. query: what else is asked, `a=b&`."""
        number = 1
        for _ in range(MOST_PAGES):
            answer = self._call("GET", f"{path}?{query}per_page=100&page={number}", None)
            if not isinstance(answer.body, list):
                raise NotPostedError("GitHub's answer is no list")
            yield from (item for item in answer.body if isinstance(item, Mapping))
            following = _NEXT.search(answer.headers.get("link", "")[:20_000])
            page = _PAGE.search(following[1]) if following else None
            if not page or int(page[1]) <= number:
                return
            number = int(page[1])
        raise NotPostedError(f"more than {MOST_PAGES} pages of {printable(path)}")

    def change(self, method: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a change. CutError where it is not known whether it was made."""
        answer = self._call(method, path, body)
        if not isinstance(answer.body, Mapping):
            raise NotPostedError("GitHub's answer cannot be read; look at the issue")
        return answer.body

    def login(self) -> str | None:
        """The name of who is logged in; None where it cannot be told."""
        answer = self._asked("GET", "user", None)
        if answer.status == 401:
            raise _refused("GET", answer)
        found = _inside(answer.body, "login")
        if answer.status != 200:  # the token of an app may not ask for its user, but for its viewer
            query = {"query": "query { viewer { login } }"}
            found = _inside(self._asked("POST", "graphql", query).body, "data", "viewer", "login")
        return found if isinstance(found, str) and found else None

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> Answer:
        for number in range(1, TRIES + 1):
            if method == "GET":
                answer = self._asked(method, path, body)
            else:
                answer = self._transport.send(method, path, body)
            if answer.status < 300:
                return answer
            seconds = pause(answer, time.time(), number)
            if seconds is None or number == TRIES:
                raise _refused(method, answer)
            if seconds > LONGEST_WAIT:
                raise NotPostedError(
                    f"GitHub's limit of requests is reached for {seconds / 60:.0f} minutes",
                    hint="the same command then",
                )
            self._told(f"GitHub asks to wait {seconds:.0f} s")
            self._wait(seconds)
        raise AssertionError("the last try has returned or raised")

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None) -> Answer:
        """The answer to what changes nothing, asked again where the connection ends."""
        for last in (False, True):
            try:
                return self._transport.send(method, path, body)
            except CutError as cut:
                if last:
                    raise NotPostedError(
                        f"no connection to GitHub ({cut})", hint="the same command again"
                    ) from cut
        raise AssertionError("the last try has returned or raised")


def pause(answer: Answer, now: float, number: int) -> float | None:
    """Seconds to wait before the request is sent again, None if that is no use. Pure.

    now: seconds since 1970. number: of the try, from 1. A change that met 5xx may have been made;
    only what a limit put off was certainly not.
    """
    headers = answer.headers
    limited = answer.status == 429 or (
        answer.status == 403
        and (
            "retry-after" in headers
            or headers.get("x-ratelimit-remaining") == "0"
            or "rate limit" in message(answer).lower()
        )
    )
    if not limited:
        return None
    after = headers.get("retry-after", "")
    if after.isdecimal():
        return float(after)
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return max(0.0, float(reset) - now)
    return A_MINUTE * 2.0 ** (number - 1)


def message(answer: Answer) -> str:
    """What GitHub said, printable and short."""
    said = answer.body.get("message") if isinstance(answer.body, Mapping) else None
    return printable(said)[:200] if isinstance(said, str) else ""


def _refused(method: str, answer: Answer) -> NotPostedError:
    said = message(answer)
    told = f"GitHub says {answer.status}" + (f": {said}" if said else "")
    match answer.status:
        case 301 | 302 | 307 | 308:
            return NotPostedError(f"{told}; the repository has moved", hint="name its new place")
        case 401:
            return NotPostedError(told, hint="the token is not valid: gh auth login, or a new one")
        case 403:
            return NotPostedError(
                told, hint="the token may not write issues there, or the issue is locked"
            )
        case 404:
            return NotPostedError(told, hint="no such issue, or one that this login may not see")
        case 410:
            return NotPostedError(told, hint="the issue was deleted, or the repository has none")
        case 422:
            return NotPostedError(told, hint="the text may be too long, or the issue is locked")
        case status if status >= 500:
            hint = "look at the issue before the same command again" if method != "GET" else None
            return NotPostedError(told, hint=hint)
    return NotPostedError(told)


def _inside(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
