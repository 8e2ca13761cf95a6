"""The user's pip settings in uv's words: uv reads no pip configuration. Pure.

uv's own settings win, one by one. Where the further indexes are pip's, all indexes are looked
through for the best version, which is what pip does; uv would stop at the first that has a package.
Settings travel as variables of the environment, never as arguments: an index URL may hold a
secret, and arguments are for everyone to read in the process list.
Sources: "Configuration" of pip's documentation; "Environment variables" and "Package indexes"
of uv's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from ..settings import NO

# variables of uv that say where packages come from and how they are reached
PASSED = (
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SSL_CLIENT_CERT",
    "NETRC",
    "UV_CONCURRENT_BUILDS",
    "UV_CONCURRENT_DOWNLOADS",
    "UV_CONCURRENT_INSTALLS",
    "UV_EXCLUDE_NEWER",
    "UV_HTTP_RETRIES",
    "UV_INDEX_STRATEGY",
    "UV_INSECURE_HOST",
    "UV_KEYRING_PROVIDER",
    "UV_NATIVE_TLS",
    "UV_OFFLINE",
    "UV_PRERELEASE",
    "UV_PYTHON_INSTALL_DIR",
    "UV_SYSTEM_CERTS",
    "UV_TORCH_BACKEND",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)
# a name of ours: uv has an option for it and no variable
CLOSED = "UV_NO_INDEX"
CREDENTIALS = re.compile(r"UV_INDEX_[A-Z0-9_]+_(?:USERNAME|PASSWORD)")
SHORTEST_SECRET = 4  # characters; shorter ones would blot out parts of words
URL = re.compile(r"\b([a-z][a-z0-9+.-]*://)(?:[^/\s@'\"`]*@)?([^\s?#'\"`]*)([?#][^\s'\"`),]*)?")


def uv_variables(variables: Mapping[str, str], *, first: Iterable[str] = ()) -> dict[str, str]:
    """uv's variables for the settings in `variables` (files and environment, `settings.variables`).

    `first`: URLs of indexes to ask before all others. Relative paths become absolute: uv is
    started in a folder of ours.
    """
    found = {name: variables[name] for name in PASSED if variables.get(name)}
    found |= {name: value for name, value in variables.items() if CREDENTIALS.fullmatch(name)}

    def words(*names: str, separator: str = r"\s+") -> list[str]:
        for name in names:
            if entries := [e for e in re.split(separator, variables.get(name, "")) if e]:
                return entries
        return []

    own_more = words("UV_INDEX", "UV_EXTRA_INDEX_URL")
    more = own_more or words("PIP_EXTRA_INDEX_URL")
    links = words("UV_FIND_LINKS", separator=r"[\s,]+") or words("PIP_FIND_LINKS")
    lists = {
        "UV_DEFAULT_INDEX": words("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")[:1],
        "UV_INDEX": [*first, *more],
        "UV_CONSTRAINT": words("UV_CONSTRAINT", "PIP_CONSTRAINT"),
        "UV_OVERRIDE": words("UV_OVERRIDE"),
    }
    found |= {name: " ".join(map(_absolute, entries)) for name, entries in lists.items() if entries}
    if links:
        found["UV_FIND_LINKS"] = ",".join(map(_absolute, links))
    if more and not own_more:
        found.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    if any(variables.get(name, "").lower() not in NO for name in ("PIP_NO_INDEX", "UV_NO_INDEX")):
        # as with pip, the other ones are not asked; one that was named for this build is
        found.pop("UV_DEFAULT_INDEX", None)
        found.pop("UV_INDEX", None)
        if named := [*first]:
            found["UV_DEFAULT_INDEX"] = " ".join(named[:1])
        else:
            found[CLOSED] = "1"
    for own, pips in (("SSL_CERT_FILE", "PIP_CERT"), ("SSL_CLIENT_CERT", "PIP_CLIENT_CERT")):
        if path := variables.get(pips):
            found.setdefault(own, _absolute(path))
    if proxy := variables.get("PIP_PROXY"):
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            found[name] = proxy
    for name in ("UV_HTTP_TIMEOUT", "PIP_TIMEOUT", "PIP_DEFAULT_TIMEOUT"):
        if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text := variables.get(name, "")):
            found["UV_HTTP_TIMEOUT"] = str(max(1, round(float(text))))
            break
    return found


def secrets(variables: Mapping[str, str]) -> frozenset[str]:
    """What must not be shown: credentials in URLs of the settings, and those of named indexes."""
    found: set[str] = set()
    for name, value in variables.items():
        if CREDENTIALS.fullmatch(name) and name.endswith("_PASSWORD"):
            found.add(value)
        for word in re.split(r"[\s,]+", value):
            # `name=URL` is uv's way to name an index
            address = word[word.index("=") + 1 :] if re.match(r"[\w.-]+=\w+://", word) else word
            if "://" not in address or "@" not in address:
                continue
            user, _, password = urlsplit(address).netloc.rpartition("@")[0].partition(":")
            found |= {password or user, unquote(password or user)}
    return frozenset(secret for secret in found if len(secret) >= SHORTEST_SECRET)


def redacted(text: str, hidden: Iterable[str]) -> str:
    """`text` without credentials, queries and fragments of URLs, and without `hidden` words."""
    text = URL.sub(lambda match: match[1] + match[2], text)
    for secret in sorted(hidden, key=len, reverse=True):
        for form in {secret, quote(secret, safe="")}:
            text = text.replace(form, "***")
    return text


def _absolute(entry: str) -> str:
    """A path as an absolute one; a URL, or uv's `name=URL`, as it is."""
    if "://" in entry:
        return entry
    return str(Path(entry).expanduser().absolute())
