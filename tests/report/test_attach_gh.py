"""Posting through `gh`: a stand-in for the program, which speaks as `gh api --include` does."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from specrepro.repro.errors import NotPostedError
from specrepro.repro.github.client import Client
from specrepro.repro.github.issue import Issue, Repository
from specrepro.repro.github.post import comment, mark
from specrepro.repro.github.transport import Gh, Rest, transport

ISSUE = Issue(Repository("github.com", "o", "r"), 5)
MARK = mark("c", "r1")

# Keeps comments in a file beside it; `mode` beside it says how it behaves.
PROGRAM = """#!{python}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
mode = (here / "mode").read_text()
words = sys.argv[1:]
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(words) + "\\n")
if words[:2] == ["auth", "status"]:
    sys.exit(1 if mode == "logged out" else 0)
method, path = words[words.index("--method") + 1], words[words.index("--method") + 2]
asked = json.loads(sys.stdin.read()) if "--input" in words else None
file = here / "comments"
comments = json.loads(file.read_text()) if file.exists() else []
status, answer = "200 OK", None
if path == "user":
    answer = {{"login": "me"}}
elif mode == "refused":
    status, answer = "404 Not Found", {{"message": "Not Found"}}
elif mode == "no network":
    sys.exit("error connecting to api: check your internet connection")
elif method == "GET":
    answer = comments
elif method == "POST":
    answer = {{"id": len(comments) + 1, "user": {{"login": "me"}}, **asked}}
    comments.append(answer)
    file.write_text(json.dumps(comments))
    if mode == "cut":
        (here / "mode").write_text("well")
        sys.exit("unexpected EOF")
else:
    answer = comments[int(path.rpartition("/")[2]) - 1]
    answer.update(asked)
    file.write_text(json.dumps(comments))
body = json.dumps(answer)
sys.stdout.write(f"HTTP/2.0 {{status}}\\r\\nContent-Type: application/json\\r\\n\\r\\n{{body}}")
sys.exit(0 if status.startswith("2") else 1)
"""


@pytest.fixture
def gh(tmp_path: Path) -> Path:
    program = tmp_path / "gh"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    (tmp_path / "mode").write_text("well")
    return tmp_path


def environ(folder: Path) -> dict[str, str]:
    return {"PATH": str(folder), "HOME": os.environ.get("HOME", "/"), "GH_TOKEN": "ghp_any"}


def client(folder: Path) -> Client:
    return Client(Gh("github.com", environ(folder)), lambda line: None, lambda seconds: None)


def comments(folder: Path) -> list[str]:
    return [one["body"] for one in json.loads((folder / "comments").read_text())]


def test_a_gh_that_is_logged_in_is_taken_before_a_token(gh: Path) -> None:
    assert isinstance(transport("github.com", environ(gh)), Gh)


def test_a_gh_that_is_logged_out_leaves_it_to_the_token(gh: Path) -> None:
    (gh / "mode").write_text("logged out")
    assert isinstance(transport("github.com", environ(gh)), Rest)


def test_a_comment_is_created_and_then_changed(gh: Path) -> None:
    assert comment(client(gh), ISSUE, MARK, "one").how == "created"
    assert comment(client(gh), ISSUE, MARK, "two").how == "updated"
    assert comments(gh) == [f"{MARK}\ntwo"]


def test_no_text_and_no_token_is_on_a_command_line(gh: Path) -> None:
    comment(client(gh), ISSUE, MARK, "the text")
    calls = (gh / "calls").read_text()
    assert "the text" not in calls
    assert "ghp_any" not in calls


def test_a_gh_that_is_cut_after_it_posted_makes_one_comment(gh: Path) -> None:
    (gh / "mode").write_text("cut")
    assert comment(client(gh), ISSUE, MARK, "one").how == "found"
    assert comments(gh) == [f"{MARK}\none"]


@pytest.mark.parametrize(("mode", "said"), [("refused", "404"), ("no network", "no connection")])
def test_what_gh_cannot_do_is_told(gh: Path, mode: str, said: str) -> None:
    (gh / "mode").write_text(mode)
    with pytest.raises(NotPostedError, match=said):
        comment(client(gh), ISSUE, MARK, "one")
