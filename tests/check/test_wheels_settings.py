"""The user's indexes, certificates and credentials, as pip and uv are told them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypi_simple
import pytest

from specrepro.repro.check.settings import from_variables, pip_file, read_settings, uv_file
from specrepro.repro.check.web import shown
from specrepro.repro.errors import UntestableError, UsageError

A, B, C = (f"https://{name}.example/simple" for name in "abc")
# the option of a file that stands for a variable
ONE = "PIP_INDEX_URL".removeprefix("PIP_").lower().replace("_", "-")


def test_without_settings_the_index_is_the_library_default() -> None:
    assert from_variables({}).indexes == (pypi_simple.PYPI_SIMPLE_ENDPOINT,)


def test_indexes_of_pip_come_before_those_of_uv_and_each_once() -> None:
    found = from_variables(
        {"PIP_INDEX_URL": A, "PIP_EXTRA_INDEX_URL": f"{B}\n {A}", "UV_INDEX": f"own={C}"}
    )
    assert found.indexes == (A, B, C)
    assert from_variables({"UV_DEFAULT_INDEX": B, "UV_INDEX_URL": C}).indexes == (B,)


def test_no_index_leaves_links_only() -> None:
    found = from_variables({"PIP_NO_INDEX": "1", "PIP_INDEX_URL": A, "PIP_FIND_LINKS": "x y"})
    assert (found.indexes, found.find_links) == ((), ("x", "y"))
    assert from_variables({"PIP_NO_INDEX": "false", "PIP_INDEX_URL": A}).indexes == (A,)


def test_credentials_of_a_named_index_are_joined_to_its_url() -> None:
    found = from_variables(
        {
            "UV_INDEX": "my-own=https://a.example/simple",
            "UV_INDEX_MY_OWN_USERNAME": "me",
            "UV_INDEX_MY_OWN_PASSWORD": "p@ss/word",
        }
    )
    assert found.indexes[-1] == "https://me:p%40ss%2Fword@a.example/simple"
    assert shown(found.indexes[-1]) == "https://a.example/simple"


def test_certificates_are_pips_then_those_of_requests_then_of_uv(tmp_path: Path) -> None:
    names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
    variables = {}
    for name in names:
        path = tmp_path / name
        path.touch()
        variables[name] = str(path)
        assert from_variables(variables).certificates == str(path)
    with pytest.raises(UsageError, match=r"PIP_CERT names .*gone, which does not exist"):
        from_variables({"PIP_CERT": str(tmp_path / "gone")})


@pytest.mark.parametrize(("text", "seconds"), [("7", 7.0), ("2.5", 2.5), ("0", 15.0), ("x", 15.0)])
def test_the_time_limit_is_pips_or_its_default(text: str, seconds: float) -> None:
    assert from_variables({"PIP_DEFAULT_TIMEOUT": text}).timeout == seconds


def test_files_of_pip_are_laid_over_each_other_and_the_environment_over_them(
    tmp_path: Path,
) -> None:
    own = tmp_path / ".config" / "pip"
    own.mkdir(parents=True)
    (own / "pip.conf").write_text(
        f"[global]\n{ONE} = {A}\ntimeout = 3\n[install]\n{ONE.replace('-', '_')} = {B}\n"
        f"[list]\nextra-{ONE} = {C}\n"
    )
    environ = {"HOME": str(tmp_path), "UV_NO_CONFIG": "1", "XDG_CONFIG_DIRS": str(tmp_path)}
    assert read_settings(environ).indexes[0] == B
    assert C not in read_settings(environ).indexes
    assert read_settings(environ).timeout == 3.0
    assert read_settings({**environ, "PIP_INDEX_URL": C}).indexes[0] == C
    assert read_settings({**environ, "PIP_CONFIG_FILE": os.devnull}).indexes[0] not in {A, B, C}
    named = tmp_path / "named.conf"
    named.write_text(f"[global]\n{ONE} = {C}\n")
    assert read_settings({**environ, "PIP_CONFIG_FILE": str(named)}).indexes[0] == C


def test_a_uv_file_has_tables_lists_and_a_pip_section(tmp_path: Path) -> None:
    path = tmp_path / "uv.toml"
    path.write_text(
        f'no-index = false\nfind-links = ["x", "y"]\n[pip]\nextra-{ONE} = ["{C}"]\n'
        f'[[index]]\nurl = "{A}"\nname = "one"\n'
        f'[[index]]\nurl = "{B}"\ndefault = true\n'
        f'[[index]]\nurl = "{C}/explicit"\nname = "two"\nexplicit = true\n'
    )
    found = from_variables(uv_file(path))
    assert found.indexes == (B, A, C)
    assert found.find_links == ("x", "y")
    own = read_settings({"HOME": "", "UV_CONFIG_FILE": str(path), "PIP_CONFIG_FILE": os.devnull})
    assert own.indexes == (B, A, C)


def test_a_settings_file_that_is_not_valid_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_text("no section = 1")
    with pytest.raises(UsageError, match="bad: not a configuration file of pip"):
        pip_file(path)
    with pytest.raises(UsageError, match="bad: not a configuration file of uv"):
        uv_file(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not a configuration file of pip"):
        pip_file(path)
    assert pip_file(tmp_path / "absent") == uv_file(tmp_path / "absent") == {}


def release(wheels: Any, server: Any) -> str:
    name: str = wheels.name("0.28.0")
    server.add_release(wheels.make(), name)
    server.add_index(name)
    return name


def authorisations(server: Any) -> set[str | None]:
    return {asked.headers.get("Authorization") for asked in server.asked}


def test_credentials_of_an_index_go_to_its_files_too(
    wheels: Any, server: Any, opened: Callable[..., Any], environ: dict[str, str]
) -> None:
    release(wheels, server)
    environ["PIP_INDEX_URL"] = server.url.replace("://", "://me:p%40ss@") + "/simple"
    opened().open("0.28.0")
    assert authorisations(server) == {"Basic bWU6cEBzcw=="}  # base64 of me:p@ss


def test_credentials_do_not_follow_to_another_host(
    wheels: Any, server: Any, opened: Callable[..., Any], environ: dict[str, str]
) -> None:
    name = release(wheels, server)
    other = server.url.replace("localhost", "127.1")
    link = f'<a href="{other}/files/{name}">{name}</a>'
    server.add_page("/simple/vllm/", link)
    environ["PIP_INDEX_URL"] = server.url.replace("://", "://me:secret@") + "/simple"
    environ["PIP_TRUSTED_HOST"] = "127.1"
    opened().open("0.28.0")
    assert [a.headers.get("Authorization") for a in server.of(f"/files/{name}")] == [None]


def test_netrc_is_read(
    wheels: Any,
    server: Any,
    opened: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release(wheels, server)
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login me password p@ss\n")
    monkeypatch.setenv("NETRC", str(netrc))
    opened().open("0.28.0")
    assert authorisations(server) == {"Basic bWU6cEBzcw=="}


def test_a_proxy_is_asked_in_place_of_the_index(
    wheels: Any,
    server: Any,
    opened: Callable[..., Any],
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("no_proxy", "NO_PROXY", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    environ |= {"PIP_INDEX_URL": "http://far.example/simple", "PIP_TRUSTED_HOST": "far.example"}
    environ["PIP_PROXY"] = server.url
    with pytest.raises(UntestableError, match="no index has vllm"):
        opened().open("0.28.0")
    assert [asked.path for asked in server.asked] == ["http://far.example/simple/vllm/"]


@pytest.mark.parametrize("host", ["far.example", "127.far.example", "localhost.far.example"])
def test_an_index_without_tls_is_refused_before_it_is_asked(
    host: str, opened: Callable[..., Any], environ: dict[str, str]
) -> None:
    environ["PIP_INDEX_URL"] = f"http://{host}/simple"
    with pytest.raises(UntestableError, match="is not https") as refused:
        opened().open("0.28.0")
    assert "PIP_TRUSTED_HOST" in (refused.value.hint or "")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_followed_and_its_target_keeps_the_range(
    status: int, wheels: Any, server: Any, opened: Callable[..., Any]
) -> None:
    name = release(wheels, server)
    server.paths["/moved/wheel"] = server.paths[f"/files/{name}"]
    server.add_redirect(f"/files/{name}", status, f"{server.url}/moved/wheel")
    assert opened().open("0.28.0").build.file == name
    assert all(asked.range for asked in server.of("/moved/wheel"))


def test_a_redirect_away_from_tls_or_to_a_file_is_not_followed(
    wheels: Any, server: Any, opened: Callable[..., Any], tmp_path: Path
) -> None:
    name = release(wheels, server)
    for target in ("http://far.example/wheel", (tmp_path / "file").as_uri(), "ftp://far.example/"):
        server.add_redirect(f"/files/{name}", 302, target)
        with pytest.raises(UntestableError, match="is not https"):
            opened().open("0.28.0")


def test_a_page_of_the_web_cannot_name_files_of_this_machine(
    wheels: Any, server: Any, opened: Callable[..., Any], tmp_path: Path
) -> None:
    name = wheels.name("0.28.0")
    (tmp_path / name).write_bytes(wheels.make())
    server.add_page("/simple/vllm/", f'<a href="{(tmp_path / name).as_uri()}">{name}</a>')
    with pytest.raises(UntestableError, match="no index has vllm"):
        opened().open("0.28.0")


def test_a_listing_may_come_packed(wheels: Any, server: Any, opened: Callable[..., Any]) -> None:
    name = release(wheels, server)
    served = server.paths["/simple/vllm/"]
    served.content = gzip.compress(served.content)
    served.headers["Content-Encoding"] = "gzip"
    assert opened().open("0.28.0").build.file == name


def test_a_listing_without_end_is_refused(server: Any, opened: Callable[..., Any]) -> None:
    server.add_page("/simple/vllm/", "")
    served = server.paths["/simple/vllm/"]
    served.content = gzip.compress(bytes(80 << 20))
    served.headers["Content-Encoding"] = "gzip"
    with pytest.raises(UntestableError, match="longer than the"):
        opened().open("0.28.0")
