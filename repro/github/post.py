"""A comment of a run on an issue: made once, and the same one changed when it is posted again.

A comment of ours begins with a mark that no reader sees, with the case and the run. It is looked
for before anything is sent, and again where a connection ended without an answer: so a cut network
makes no second comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote

from ..errors import NotPostedError
from .client import Client
from .issue import Issue, Repository
from .transport import CutError

LIMIT = 65_536  # characters of a body that GitHub takes
NEWEST = 300  # issues among which one that was opened a moment ago is looked for
_WORD = re.compile(r"[A-Za-z0-9._-]{1,100}")
_ID = re.compile(r"[A-Za-z0-9]{1,64}")  # of a gist


@dataclass(frozen=True, slots=True)
class Posted:
    """What became of a text. how: `created`, `updated`, or `found` after a cut connection."""

    url: str
    how: str


def mark(case: str, run: str) -> str:
    """The line by which a comment of ours is found again."""
    words = [word if _WORD.fullmatch(word) else "unnamed" for word in (case, run)]
    return f"<!-- specrepro case={words[0]} run={words[1]} -->"


def comment(client: Client, issue: Issue, marked: str, text: str) -> Posted:
    """Post `text`, or change the comment of the same mark and author. NotPostedError if neither.

    Only a comment of who is logged in is changed; where that is not known, none is.
    """
    body = _body(marked, text)
    author = client.login()
    comments = f"{issue.path}/comments"
    found = _last(client.listed(comments), marked, author)
    if found is not None and author is None:
        raise NotPostedError(
            f"{_url(found)} is of this run, and the login does not say whether it is yours",
            hint="a token of a user, or gh, can change it",
        )
    if found is not None:
        path = f"{issue.repository.path}/issues/comments/{int(found['id'])}"
        return _changed(client, path, {"body": body})

    def again() -> Mapping[str, Any] | None:
        return _last(client.listed(comments), marked, author)

    return _created(client, comments, {"body": body}, again)


def new_issue(client: Client, repository: Repository, title: str, marked: str, text: str) -> Posted:
    """Open an issue, or change the one of the same mark and author. NotPostedError if neither.

    Of the issues only the newest are looked through; where the login is not known, none is changed.
    """
    body = _body(marked, text)
    author = client.login()
    query = f"state=all&creator={quote(author)}&" if author else "state=all&"

    def again() -> Mapping[str, Any] | None:
        # the newest come first, and ours is a moment old
        newest = islice(client.listed(f"{repository.path}/issues", query), NEWEST)
        return _last(newest, marked, author)

    there = again()
    if there is not None and author is None:
        raise NotPostedError(
            f"{_url(there)} is of this run, and the login does not say whether it is yours",
            hint="a token of a user, or gh, can change it",
        )
    if there is not None:
        path = f"{repository.path}/issues/{_number(there)}"
        return _changed(client, path, {"title": title, "body": body})
    return _created(client, f"{repository.path}/issues", {"title": title, "body": body}, again)


def reachable(client: Client, place: Issue | Repository) -> None:
    """NotPostedError for a place that is not there or cannot be seen, before anything is made."""
    where, query = (
        (f"{place.path}/comments", "")
        if isinstance(place, Issue)
        else (f"{place.path}/issues", "state=all&")
    )
    next(iter(client.listed(where, query)), None)


def gist(
    client: Client, description: str, files: Mapping[str, str], known: str | None = None
) -> Posted:
    """A secret gist with these files (name → text): made once, and the same one changed afterwards.

    known: the id of the one made before, where that is known. Else it is looked for among the
    newest of who is logged in, by its description, which has to be its own alone.
    """
    content = {name: {"content": text} for name, text in files.items()}
    asked = {"description": description, "files": content}

    def again() -> Mapping[str, Any] | None:
        mine = (one for one in islice(client.listed("gists"), NEWEST) if _gist_id(one))
        return next((one for one in mine if one.get("description") == description), None)

    before = client.there(f"gists/{known}") if known and _ID.fullmatch(known) else None
    there = before or again()
    if there is not None:
        return _changed(client, f"gists/{_gist_id(there)}", asked)
    return _created(client, "gists", {**asked, "public": False}, again)


def _created(
    client: Client,
    path: str,
    asked: Mapping[str, Any],
    again: Callable[[], Mapping[str, Any] | None],
) -> Posted:
    for last in (False, True):
        try:
            return Posted(_url(client.change("POST", path, asked)), "created")
        except CutError as cut:
            # it may have arrived: look before it is sent again
            there = _looked(again, cut)
            if there is not None:
                return Posted(_url(there), "found")
            if last:
                raise NotPostedError(
                    f"the connection to GitHub ended twice ({cut}), and nothing is there",
                    hint="the same command again",
                ) from cut
    raise AssertionError("the last try has returned or raised")


def _looked(
    again: Callable[[], Mapping[str, Any] | None], cut: CutError
) -> Mapping[str, Any] | None:
    try:
        return again()
    except NotPostedError as error:
        raise NotPostedError(
            f"the connection to GitHub ended ({cut}); whether it was posted is not known",
            hint="the same command looks first, and posts nothing twice",
        ) from error


def _changed(client: Client, path: str, asked: Mapping[str, Any]) -> Posted:
    for last in (False, True):
        try:
            return Posted(_url(client.change("PATCH", path, asked)), "updated")
        except CutError as cut:  # to change it twice makes no second comment
            if last:
                raise NotPostedError(
                    f"the connection to GitHub ended twice ({cut})", hint="the same command again"
                ) from cut
    raise AssertionError("the last try has returned or raised")


def _last(
    items: Iterable[Mapping[str, Any]], marked: str, author: str | None
) -> Mapping[str, Any] | None:
    """The last item with the mark, by the author where one is given; None without one."""
    found = None
    for item in items:
        body = item.get("body")
        ours = isinstance(body, str) and body.startswith(marked) and isinstance(item.get("id"), int)
        if ours and author in (None, _login(item)):
            found = item
    return found


def _number(item: Mapping[str, Any]) -> int:
    number = item.get("number")
    if not isinstance(number, int):
        raise NotPostedError("GitHub does not say which issue is of this run")
    return number


def _gist_id(item: Mapping[str, Any]) -> str:
    """The id of a gist; "" where GitHub gives none that can stand in an address."""
    found = item.get("id")
    return found if isinstance(found, str) and _ID.fullmatch(found) else ""


def _login(item: Mapping[str, Any]) -> str | None:
    user = item.get("user")
    name = user.get("login") if isinstance(user, Mapping) else None
    return name if isinstance(name, str) else None


def _url(item: Mapping[str, Any]) -> str:
    url = item.get("html_url")
    if not isinstance(url, str) or not url.startswith(("https://", "http://127.")):
        return "(GitHub did not say where)"
    return url


def _body(marked: str, text: str) -> str:
    body = f"{marked}\n{text}"
    if len(body) > LIMIT:
        raise NotPostedError(
            f"the text has {len(body):,} characters, GitHub takes {LIMIT:,}",
            hint="--gist puts the long evidence into a secret gist",
        )
    return body
