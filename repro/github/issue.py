"""Which issue or repository is meant: `OWNER/REPO#N`, or the address of a page. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import UsageError
from ..escape import quoted

GITHUB = "github.com"
# what GitHub allows: an owner has letters, digits and single hyphens; a repository also . and _
_OWNER, _NAME = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})", r"[A-Za-z0-9._-]{1,100}"
_SHORT = re.compile(rf"({_OWNER})/({_NAME})#(\d{{1,9}})")
_REPOSITORY = re.compile(rf"({_OWNER})/({_NAME})")
_PAGE = re.compile(rf"/({_OWNER})/({_NAME})/(?:issues|pull)/(\d{{1,9}})(?:/.*)?")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on a server."""

    host: str
    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def path(self) -> str:
        """Where the REST interface has it."""
        return f"repos/{self.owner}/{self.name}"


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue or pull request; GitHub gives both numbers of one row."""

    repository: Repository
    number: int

    def __str__(self) -> str:
        return f"{self.repository}#{self.number}"

    @property
    def path(self) -> str:
        """Where the REST interface has it."""
        return f"{self.repository.path}/issues/{self.number}"


def issue(text: str, environ: Mapping[str, str]) -> Issue:
    """The issue that `text` names; UsageError for what names none, or is on a server that the
    environment does not know: a token goes to no server but the user's."""
    if short := _SHORT.fullmatch(text):
        return Issue(_repository(servers(environ)[0], short[1], short[2]), int(short[3]))
    parts = urlsplit(text)
    page = _PAGE.fullmatch(parts.path)
    if parts.scheme != "https" or not page or parts.hostname is None:
        raise UsageError(
            f"{quoted(text)} names no issue", hint="OWNER/REPO#NUMBER, or the issue's address"
        )
    if parts.hostname not in servers(environ):
        raise UsageError(
            f"{quoted(parts.hostname)} is not a GitHub server that you use",
            hint="GH_HOST names a server of your own",
        )
    return Issue(_repository(parts.hostname, page[1], page[2]), int(page[3]))


def repository(text: str, environ: Mapping[str, str]) -> Repository:
    """The repository that `OWNER/REPO` names; UsageError for what names none."""
    match = _REPOSITORY.fullmatch(text)
    if not match:
        raise UsageError(f"{quoted(text)} names no repository", hint="OWNER/REPO")
    return _repository(servers(environ)[0], match[1], match[2])


def servers(environ: Mapping[str, str]) -> list[str]:
    """The hosts of GitHub servers that the user uses, the one that short names mean first."""
    own = environ.get("GH_HOST") or urlsplit(environ.get("GITHUB_SERVER_URL", "")).hostname
    return list(dict.fromkeys((own.lower(), GITHUB) if own else (GITHUB,)))


def _repository(host: str, owner: str, name: str) -> Repository:
    if name in (".", ".."):
        raise UsageError(f"{quoted(name)} is not the name of a repository")
    return Repository(host, owner, name)
