"""Single files of wheels on a server, with every way a server can answer wrongly."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.builds import Builds
from specrepro.repro.check.web import RangesRefusedError
from specrepro.repro.errors import Exit, UntestableError

NAME = "vllm-0.28.0-cp38-abi3-manylinux_2_28_x86_64.whl"
OTHER = "vllm-0.29.0-cp38-abi3-manylinux_2_28_x86_64.whl"
WHOLE = 3 << 20
SCHEDULER = "vllm/v1/core/sched/scheduler.py"
Opened = Callable[..., Builds]


@pytest.fixture
def wheel(wheels: Any, server: Any) -> bytes:
    content = wheels.make(padding=WHOLE)
    server.add_release(content, NAME)
    server.add_index(NAME)
    return content


def test_files_of_a_release_are_read_in_few_requests_and_bytes(
    wheels: Any, server: Any, wheel: bytes, opened: Opened
) -> None:
    builds = opened()
    tree = builds.open("0.28.0")
    tree.fetch(wheels.FILES)
    assert {name: tree.read(name) for name in wheels.FILES} == wheels.FILES
    assert tree.build.file == NAME
    assert tree.build.sha256 == hashlib.sha256(wheel).hexdigest()
    assert (tree.build.version, tree.build.commit, tree.build.origin) == (
        "0.28.0",
        "abc123def",
        "index",
    )
    # the listing, the end of the archive, one stretch of files
    assert [asked.path for asked in server.asked] == ["/simple/vllm/"] + 2 * [f"/files/{NAME}"]
    assert len({asked.connection for asked in server.asked}) == 1
    assert server.sent < len(wheel) / 3
    assert builds.traffic == (len(server.asked), server.sent)


def test_of_later_wheels_no_more_of_the_end_is_read_than_the_last_one_had(
    wheels: Any, server: Any, wheel: bytes, opened: Opened
) -> None:
    many = {f"vllm/{'folder' * 12}/m{n}.py": b"%d" % n for n in range(4000)}
    server.add_release(wheels.make(many, "0.29.0", padding=WHOLE), OTHER)
    server.add_index(NAME, OTHER)
    opened().open("0.28.0")
    before = server.sent
    tree = opened().open("0.29.0")
    # longer than the last one: what is missing is asked for once, RECORD with it
    assert len(server.of(f"/files/{OTHER}")) == 2
    assert server.sent - before < WHOLE / 3
    assert tree.read(tree.find("m7.py")[0]) == b"7"


def test_a_record_longer_than_expected_is_read_in_one_more_request(
    wheels: Any, server: Any, wheel: bytes, opened: Opened
) -> None:
    # short names: hashes make up more of the end than in any real wheel
    many = {f"vllm/{n}": b"%d" % n for n in range(4000)}
    server.add_release(wheels.make(many, "0.29.0", padding=WHOLE), OTHER)
    server.add_index(NAME, OTHER)
    opened().open("0.28.0")
    opened().open("0.29.0")
    assert len(server.of(f"/files/{OTHER}")) == 3


def test_a_file_found_by_its_suffix_is_named_by_whole_components(
    wheel: bytes, opened: Opened
) -> None:
    tree = opened().open("0.28.0")
    assert tree.find("sched/scheduler.py") == [SCHEDULER]
    assert tree.find("cheduler.py") == []
    assert tree.find(SCHEDULER) == [SCHEDULER]
    with pytest.raises(KeyError):
        tree.read("vllm/absent.py")


def test_a_second_look_asks_nobody_and_works_offline(
    wheels: Any, server: Any, wheel: bytes, opened: Opened
) -> None:
    opened().open("0.28.0").fetch(wheels.FILES)
    before = len(server.asked)
    for builds in (opened(), opened(offline=True)):
        tree = builds.open("0.28.0")
        tree.fetch(wheels.FILES)
        assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
    assert len(server.asked) == before


def test_a_file_that_two_releases_share_is_read_once(
    wheels: Any, server: Any, wheel: bytes, opened: Opened
) -> None:
    server.add_release(wheels.make(version="0.29.0", padding=WHOLE), OTHER)
    server.add_index(NAME, OTHER)
    opened().open("0.28.0").fetch(wheels.FILES)
    tree = opened().open("0.29.0")
    tree.fetch(wheels.FILES)
    assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
    # of the second release the end of the archive is all that is new
    assert len(server.of(f"/files/{OTHER}")) == 1


def test_offline_says_what_was_not_read_before(wheels: Any, wheel: bytes, opened: Opened) -> None:
    with pytest.raises(UntestableError, match="offline"):
        opened(offline=True).open("0.28.0")
    opened().open("0.28.0").read(SCHEDULER)
    tree = opened(offline=True).open("0.28.0")
    assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
    with pytest.raises(UntestableError, match="offline"):
        tree.read("vllm/v1/worker/runner.py")


@pytest.mark.parametrize("kind", ["files", "tails", "listings"])
def test_a_damaged_cache_is_read_anew(
    wheels: Any, kind: str, server: Any, wheel: bytes, opened: Opened, tmp_path: Path
) -> None:
    opened().open("0.28.0").fetch(wheels.FILES)
    before = len(server.asked)
    entries = [path for path in (tmp_path / "cache" / kind).rglob("*") if path.is_file()]
    assert entries
    for path in entries:
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(bytes(content))
    tree = opened().open("0.28.0")
    tree.fetch(wheels.FILES)
    assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
    assert len(server.asked) > before


def test_a_cache_that_cannot_be_written_is_told_of_and_done_without(
    wheels: Any, wheel: bytes, opened: Opened, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    told: list[str] = []
    assert opened(told=told.append).open("0.28.0").read(SCHEDULER) == wheels.FILES[SCHEDULER]
    assert len([line for line in told if "cached" in line]) == 1


def test_a_server_without_ranges_is_refused_with_the_size_it_would_send(
    server: Any, wheel: bytes, opened: Opened
) -> None:
    server.paths[f"/files/{NAME}"].behaviour = "whole"
    with pytest.raises(RangesRefusedError, match=r"would send 3\.1 MB") as refused:
        opened().open("0.28.0")
    assert refused.value.hint is not None
    assert "--allow-full-download" in refused.value.hint
    assert refused.value.exit_status == Exit.UNTESTABLE
    assert refused.value.size == len(wheel)


def test_of_a_whole_file_that_was_not_asked_for_little_is_drained(
    wheels: Any, server: Any, opened: Opened
) -> None:
    content = wheels.make(padding=40 << 20)
    server.add_release(content, NAME, behaviour="whole")
    server.add_index(NAME)
    with pytest.raises(RangesRefusedError):
        opened().open("0.28.0")
    # what a kernel buffers between two processes of one machine, and no more
    assert server.sent < len(content) / 2


def test_a_full_download_that_was_allowed_is_hashed_and_then_remembered(
    wheels: Any, server: Any, wheel: bytes, opened: Opened
) -> None:
    server.paths[f"/files/{NAME}"].behaviour = "whole"
    told: list[str] = []
    tree = opened(allow_full_download=True, told=told.append).open("0.28.0")
    tree.fetch(wheels.FILES)
    assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
    assert any("3.1 MB" in line for line in told)
    assert opened(offline=True).open("0.28.0").read(SCHEDULER) == wheels.FILES[SCHEDULER]


def test_a_full_download_with_another_hash_is_refused(
    server: Any, wheel: bytes, opened: Opened
) -> None:
    served = server.paths[f"/files/{NAME}"]
    served.behaviour = "whole"
    served.content = wheel[:-1] + b"?"
    with pytest.raises(UntestableError, match="came with sha256"):
        opened(allow_full_download=True).open("0.28.0")


@pytest.mark.parametrize("behaviour", ["shifted", "resized", "unsaid", "packed"])
def test_an_answer_that_is_not_the_range_asked_for_is_refused(
    behaviour: str, server: Any, wheel: bytes, opened: Opened
) -> None:
    server.paths[f"/files/{NAME}"].behaviour = behaviour
    with pytest.raises(UntestableError, match=r"range|answered"):
        opened().open("0.28.0")


def test_a_cut_answer_is_asked_for_again_and_then_given_up(
    server: Any, wheel: bytes, opened: Opened
) -> None:
    server.paths[f"/files/{NAME}"].behaviour = "cut"
    told: list[str] = []
    with pytest.raises(UntestableError, match="tried 3 times"):
        opened(told=told.append).open("0.28.0")
    assert len(server.of(f"/files/{NAME}")) == 3
    assert len([line for line in told if "trying again" in line]) == 2


def test_a_server_that_stumbles_once_is_asked_again(
    wheels: Any, server: Any, wheel: bytes, opened: Opened
) -> None:
    server.paths[f"/files/{NAME}"].failures = [500]
    server.paths["/simple/vllm/"].failures = [503]
    assert opened().open("0.28.0").read(SCHEDULER) == wheels.FILES[SCHEDULER]


@pytest.mark.parametrize("status", [401, 403, 404, 416])
def test_a_file_the_server_does_not_give_is_said_with_its_status(
    status: int, server: Any, wheel: bytes, opened: Opened
) -> None:
    server.paths[f"/files/{NAME}"].failures = [status]
    with pytest.raises(UntestableError, match=f"answered {status}") as refused:
        opened().open("0.28.0")
    assert refused.value.hint
    assert len(server.of(f"/files/{NAME}")) == 1


def test_a_server_that_dribbles_is_given_up(
    server: Any, wheel: bytes, opened: Opened, environ: dict[str, str]
) -> None:
    environ["PIP_TIMEOUT"] = "0.1"
    server.paths[f"/files/{NAME}"].behaviour = "trickle"
    with pytest.raises(UntestableError, match="too slow"):
        opened().open("0.28.0")


def test_a_wheel_without_a_hash_in_the_index_is_read_but_not_remembered(
    wheels: Any, server: Any, wheel: bytes, opened: Opened
) -> None:
    server.add_index(NAME, hashes=False)
    tree = opened().open("0.28.0")
    assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
    assert tree.build.sha256 is None
    assert any("no hash" in note for note in tree.notes())
    with pytest.raises(UntestableError, match="offline"):
        opened(offline=True).open("0.28.0")


def test_a_wheel_is_read_by_its_url_alone(
    wheels: Any, server: Any, wheel: bytes, opened: Opened
) -> None:
    digest = hashlib.sha256(wheel).hexdigest()
    tree = opened().open(f"{server.url}/files/{NAME}#sha256={digest}")
    assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
    assert (tree.build.origin, tree.build.sha256) == ("url", digest)
    assert server.of("/simple/vllm/") == []


def test_what_was_fetched_can_be_read_after_closing(
    wheels: Any, wheel: bytes, opened: Opened
) -> None:
    builds = opened()
    tree = builds.open("0.28.0")
    tree.fetch(wheels.FILES)
    tree.close()
    builds.close()
    assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
