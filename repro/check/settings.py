"""Where the user's package indexes are, and how to reach them, as pip and uv are told it.

An option of a pip or uv file and the environment variable of its name are the same setting, so
files are read into variables, and the environment is laid over them. Sources: the chapters
"Configuration" of pip's and uv's documentation. Not read: `pyproject.toml` of the folder one
happens to stand in, keyrings.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from ..errors import UsageError

# pip's own default, seconds without a byte
PATIENCE = 15.0
NO = {"", "0", "false", "no", "off", "n", "f"}


@dataclass(frozen=True, slots=True)
class Settings:
    """`indexes` and `find_links`: URLs or paths, first one first. Paths of certificates as given.

    `timeout` in seconds; `trusted_hosts` may be spoken to without TLS.
    """

    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    certificates: str | None = None
    client_certificate: str | None = None
    proxy: str | None = None
    timeout: float = PATIENCE
    trusted_hosts: tuple[str, ...] = ()

    def trusts(self, netloc: str) -> bool:
        """Whether `host` or `host:port` of a URL was named as one that needs no TLS."""
        address = netloc.rpartition("@")[2]
        return address in self.trusted_hosts or address.partition(":")[0] in self.trusted_hosts


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this user, in this environment. UsageError for a file that is not valid."""
    return from_variables(read_variables(environ))


def read_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment over the variables that stand for the user's files of pip and uv."""
    return {**_pip_files(environ), **_uv_files(environ), **environ}


def from_variables(variables: Mapping[str, str]) -> Settings:
    """Settings from `PIP_…`, `UV_…` and certificate variables (pure, but for existing paths)."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    def words(name: str, separator: str = r"\s+") -> list[str]:
        return [word for word in re.split(separator, variables.get(name, "")) if word]

    first = [
        *words("PIP_INDEX_URL"),
        *_named(words("UV_DEFAULT_INDEX"), variables),
        *words("UV_INDEX_URL"),
        PYPI_SIMPLE_ENDPOINT,
    ][:1]
    more = [
        *words("PIP_EXTRA_INDEX_URL"),
        *_named(words("UV_INDEX"), variables),
        *words("UV_EXTRA_INDEX_URL"),
    ]
    closed = any(
        variables.get(name, "").lower() not in NO for name in ("PIP_NO_INDEX", "UV_NO_INDEX")
    )
    links = [*words("PIP_FIND_LINKS"), *words("UV_FIND_LINKS", r"[\s,]+")]
    trust = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    return Settings(
        indexes=() if closed else tuple(dict.fromkeys((*first, *more))),
        find_links=tuple(dict.fromkeys(links)),
        certificates=_existing(trust, variables),
        client_certificate=_existing(("PIP_CLIENT_CERT",), variables),
        proxy=variables.get("PIP_PROXY") or None,
        timeout=_seconds(variables),
        trusted_hosts=tuple(words("PIP_TRUSTED_HOST")),
    )


def _existing(names: Iterable[str], variables: Mapping[str, str]) -> str | None:
    for name in names:
        if path := variables.get(name):
            if not Path(path).exists():
                raise UsageError(f"{name} names {path}, which does not exist")
            return path
    return None


def _seconds(variables: Mapping[str, str]) -> float:
    for name in ("PIP_TIMEOUT", "PIP_DEFAULT_TIMEOUT", "UV_HTTP_TIMEOUT"):
        text = variables.get(name, "")
        if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text) and float(text) > 0:
            return float(text)
    return PATIENCE


def _named(entries: Iterable[str], variables: Mapping[str, str]) -> list[str]:
    """uv's `name=URL`, with the credentials that variables hold for a named index."""
    urls = []
    for entry in entries:
        match = re.fullmatch(r"([A-Za-z0-9._-]+)=(.+)", entry)
        if not match:
            urls.append(entry)
            continue
        prefix = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", match[1].upper())
        user = variables.get(f"{prefix}_USERNAME")
        secret = variables.get(f"{prefix}_PASSWORD")
        parts = urlsplit(match[2])
        if user is None and secret is None:
            urls.append(match[2])
        else:
            pair = f"{quote(user or '', safe='')}:{quote(secret or '', safe='')}"
            host = parts.netloc.rpartition("@")[2]
            urls.append(urlunsplit(parts._replace(netloc=f"{pair}@{host}")))
    return urls


def _pip_files(environ: Mapping[str, str]) -> dict[str, str]:
    home = Path(environ.get("HOME") or Path.home())
    own = environ.get("PIP_CONFIG_FILE")
    if own == os.devnull:
        return {}
    shared = [Path(f) / "pip" for f in _folders(environ)]
    files = [*shared, Path("/etc")]
    if not (own and Path(own).exists()):
        files += [home / ".pip", _config_home(environ) / "pip"]
    paths = [*(folder / "pip.conf" for folder in files), Path(sys.prefix) / "pip.conf"]
    variables: dict[str, str] = {}
    for path in (*paths, *([Path(own)] if own else [])):
        variables |= pip_file(path)
    return variables


def pip_file(path: Path) -> dict[str, str]:
    """The variables that stand for a pip configuration file; none for a file that is not there."""
    parser = configparser.RawConfigParser()
    try:
        text = path.read_text(encoding="utf-8")
        parser.read_string(text)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except (configparser.Error, UnicodeDecodeError, OSError) as error:
        line = str(error).splitlines()[0]
        raise UsageError(f"not a configuration file of pip: {line}", where=str(path)) from error
    return {
        _variable("PIP", option): value
        for section in ("global", "install")
        if parser.has_section(section)
        for option, value in parser.items(section)
    }


def _uv_files(environ: Mapping[str, str]) -> dict[str, str]:
    if environ.get("UV_NO_CONFIG", "").lower() not in NO:
        return {}
    own = environ.get("UV_CONFIG_FILE")
    shared = [*(Path(f) / "uv" for f in _folders(environ)), Path("/etc/uv")]
    folders = [*shared, _config_home(environ) / "uv"]
    variables: dict[str, str] = {}
    for path in [Path(own)] if own else [folder / "uv.toml" for folder in folders]:
        variables |= uv_file(path)
    return variables


def uv_file(path: Path) -> dict[str, str]:
    """The variables that stand for a `uv.toml`; none for a file that is not there."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"not a configuration file of uv: {error}", where=str(path)) from error
    variables: dict[str, str] = {}
    for table in (content.get("pip"), content):
        if isinstance(table, dict):
            variables |= _uv_table(table)
    return variables


def _uv_table(table: Mapping[str, Any]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for option, value in table.items():
        if isinstance(value, bool):
            variables[_variable("UV", option)] = str(value).lower()
        elif isinstance(value, str):
            variables[_variable("UV", option)] = value
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            variables[_variable("UV", option)] = " ".join(value)
    entries: dict[str, list[str]] = {"UV_INDEX": [], "UV_DEFAULT_INDEX": []}
    listed = table.get("index")
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("url"), str):
            name = entry.get("name")
            text = f"{name}={entry['url']}" if isinstance(name, str) else entry["url"]
            # an explicit index is asked for packages that name it, which vLLM does not
            if not entry.get("explicit"):
                entries["UV_DEFAULT_INDEX" if entry.get("default") else "UV_INDEX"].append(text)
    return variables | {name: " ".join(found) for name, found in entries.items() if found}


def _variable(tool: str, option: str) -> str:
    return f"{tool}_{option.upper().replace('-', '_')}"


def _config_home(environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or Path.home())
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def _folders(environ: Mapping[str, str]) -> list[str]:
    """System folders, most important last."""
    return [f for f in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")[::-1] if f]
