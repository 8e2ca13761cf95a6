"""`specrepro attach`: shown, asked, posted; and what is left when it was not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SECRET = "ghp_" + "Qw9Lm2Xv7Bn4" * 3


def environ(github: Any) -> dict[str, str]:
    """Of someone without gh, whose server is the test's."""
    return {"GITHUB_API_URL": github.address, "GH_TOKEN": github.TOKEN, "PATH": "nowhere"}


def attach(command: Any, github: Any, runs: Path, *words: str, **more: Any) -> Any:
    where = () if "--new-issue" in words else ("--issue", "o/r#5")
    return command("attach", *where, *words, "--runs", runs, env=environ(github), **more)


def test_a_run_is_posted_with_its_mark_and_posted_again_it_is_changed(
    command: Any, github: Any, runs: Path
) -> None:
    first = attach(command, github, runs, "--yes")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == "created: https://github.com/o/r/issues/5#issuecomment-1\n"
    again = attach(command, github, runs, "--yes", "--json")
    assert json.loads(again.stdout)["how"] == "updated"
    [comment] = github.comments
    name = (runs / "latest").resolve().name
    assert comment["body"].startswith(f"<!-- specrepro case=mtp-tail-overflow run={name} -->\n###")


def test_the_text_is_kept_in_the_run_and_so_is_where_it_went(
    command: Any, github: Any, runs: Path
) -> None:
    attach(command, github, runs, "--yes")
    kept = (runs / "latest" / "attach.md").read_text(encoding="utf-8")
    assert github.comments[0]["body"].endswith(kept)
    [line] = (runs / "latest" / "attached.ndjson").read_text().splitlines()
    assert json.loads(line)["url"] == github.comments[0]["html_url"]


def test_a_dry_run_prints_the_very_text_and_sends_nothing(
    command: Any, github: Any, runs: Path
) -> None:
    done = attach(command, github, runs, "--dry-run")
    assert done.returncode == 0
    assert done.stdout == (runs / "latest" / "attach.md").read_text(encoding="utf-8")
    assert github.asked == []


def test_nothing_is_posted_where_nobody_can_be_asked(command: Any, github: Any, runs: Path) -> None:
    done = attach(command, github, runs, input="y\n")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert github.asked == []


def test_no_secret_of_a_record_is_posted(command: Any, github: Any, runs: Path) -> None:
    path = runs / "latest" / "run.json"
    path.write_text(path.read_text().replace('"claim": "', f'"claim": "with {SECRET} '))
    done = attach(command, github, runs, "--yes", "--gist")
    assert done.returncode == 0
    posted = json.dumps([github.comments, github.gists])
    assert SECRET not in posted + done.stdout + done.stderr
    assert "removed GitHub token" in posted


def test_a_gist_is_linked_and_holds_the_record(command: Any, github: Any, runs: Path) -> None:
    attach(command, github, runs, "--yes", "--gist")
    [made] = github.gists
    [(name, file)] = made["files"].items()
    assert json.loads(file["content"])["schema"] == "specrepro/run@1"
    assert name == f"{(runs / 'latest').resolve().name}.json"
    assert "<https://github.com/gist/1>" in github.comments[0]["body"]


def test_attached_again_the_gist_is_the_same_one(command: Any, github: Any, runs: Path) -> None:
    attach(command, github, runs, "--yes", "--gist")
    attach(command, github, runs, "--yes", "--gist")
    (runs / "latest" / "attached.ndjson").unlink()  # as from another machine
    attach(command, github, runs, "--yes", "--gist")
    assert len(github.gists) == len(github.comments) == 1
    assert "<https://github.com/gist/1>" in github.comments[0]["body"]


def test_no_gist_is_made_for_an_issue_that_is_not_there(
    command: Any, github: Any, runs: Path
) -> None:
    done = command(
        "attach", "--issue", "o/r#410", "--yes", "--gist", "--runs", runs, env=environ(github)
    )
    assert done.returncode == 1
    assert "deleted" in done.stderr
    assert github.gists == []


def test_a_gist_outlives_a_comment_that_was_refused(command: Any, github: Any, runs: Path) -> None:
    github.locked = True
    assert attach(command, github, runs, "--yes", "--gist").returncode == 1
    github.locked = False
    assert attach(command, github, runs, "--yes", "--gist").returncode == 0
    assert len(github.gists) == len(github.comments) == 1


def test_a_new_issue_has_the_form_of_vllm(command: Any, github: Any, runs: Path) -> None:
    done = attach(command, github, runs, "--yes", "--new-issue", "o/r")
    assert done.stdout == "created: https://github.com/o/r/issues/1\n"
    [issue] = github.issues
    assert issue["title"].startswith("[Bug]: mtp-tail-overflow: INCONCLUSIVE")
    body = issue["body"]
    assert body.index("### Your current environment") < body.index("### 🐛 Describe the bug")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"status": 404, "message": "Not Found"}, "GitHub says 404: Not Found"),
        ({"status": 410, "message": "Gone"}, "GitHub says 410: Gone"),
        ({"status": 429, "headers": {"Retry-After": "3600"}}, "60 minutes"),
    ],
)
def test_what_github_refuses_is_said_with_a_hint_and_the_text_is_kept(
    command: Any, github: Any, runs: Path, fault: dict[str, Any], said: str
) -> None:
    github.goes_wrong(**fault)
    done = attach(command, github, runs, "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert "hint:" in done.stderr
    assert github.TOKEN not in done.stderr
    assert (runs / "latest" / "attach.md").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--issue or --new-issue"),
        (("--issue", "o/r#5", "--new-issue", "o/r"), "--issue or --new-issue"),
        (("--issue", "here"), "`here` names no issue"),
        (("--issue", "https://evil.example/o/r/issues/5"), "not a GitHub server that you use"),
        (("--issue", "o/r#5", "--title", "x"), "--title"),
    ],
)
def test_a_place_that_is_none_is_said(
    command: Any, github: Any, runs: Path, words: tuple[str, ...], said: str
) -> None:
    done = command("attach", "latest", *words, "--yes", "--runs", runs, env=environ(github))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert github.asked == []
