"""A comment is posted once, changed when it is posted again, and never lost or doubled."""

from __future__ import annotations

from typing import Any

import pytest

from specrepro.repro.errors import NotPostedError, UsageError
from specrepro.repro.github.client import Client
from specrepro.repro.github.issue import Issue, Repository, issue, repository
from specrepro.repro.github.post import Posted, comment, gist, mark, new_issue
from specrepro.repro.github.transport import Rest, transport

REPOSITORY = Repository("github.com", "o", "r")
ISSUE = Issue(REPOSITORY, 5)
MARK = mark("mtp-tail-overflow", "20261130-run-abc")
SECONDARY = "You have exceeded a secondary rate limit"
RESET = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}
FIRST = "https://github.com/o/r/issues/5#issuecomment-1"


class Clock:
    """Stands for sleeping: what was waited for."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.said: list[str] = []

    def client(self, github: Any, token: str | None = None) -> Client:
        way = transport("github.com", github.environ(token or github.TOKEN))
        return Client(way, self.said.append, self.waits.append)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_first_comment_is_created_with_its_mark(github: Any, clock: Clock) -> None:
    assert comment(clock.client(github), ISSUE, MARK, "text") == Posted(FIRST, "created")
    assert [c["body"] for c in github.comments] == [f"{MARK}\ntext"]


def test_the_same_run_posted_again_changes_its_comment(github: Any, clock: Clock) -> None:
    github.page_size = 2
    for number in range(5):
        github.add(f"comment {number}", "other")
    comment(clock.client(github), ISSUE, MARK, "one")
    again = comment(clock.client(github), ISSUE, MARK, "two")
    assert again.how == "updated"
    assert len(github.comments) == 6
    assert github.comments[-1]["body"] == f"{MARK}\ntwo"


def test_another_run_of_the_case_is_a_comment_of_its_own(github: Any, clock: Clock) -> None:
    comment(clock.client(github), ISSUE, MARK, "one")
    other = comment(clock.client(github), ISSUE, mark("mtp-tail-overflow", "later"), "two")
    assert other.how == "created"
    assert len(github.comments) == 2


def test_somebody_elses_copy_of_the_mark_is_never_changed(github: Any, clock: Clock) -> None:
    github.add(f"{MARK}\ntheirs", "other")
    assert comment(clock.client(github), ISSUE, MARK, "ours").how == "created"
    assert [c["body"] for c in github.comments] == [f"{MARK}\ntheirs", f"{MARK}\nours"]


def test_a_mark_that_is_quoted_in_a_comment_is_no_mark(github: Any, clock: Clock) -> None:
    github.add(f"> {MARK}\nsee above", "me")
    assert comment(clock.client(github), ISSUE, MARK, "text").how == "created"


def test_the_token_of_an_app_finds_its_own_comment(github: Any, clock: Clock) -> None:
    comment(clock.client(github, github.APP), ISSUE, MARK, "one")
    assert comment(clock.client(github, github.APP), ISSUE, MARK, "two").how == "updated"


def test_without_a_name_nothing_is_changed_and_nothing_doubled(github: Any, clock: Clock) -> None:
    comment(clock.client(github), ISSUE, MARK, "one")
    github.reads_go({"status": 403}, {"status": 403})
    with pytest.raises(NotPostedError, match="does not say whether it is yours"):
        comment(clock.client(github), ISSUE, MARK, "two")
    assert [c["body"] for c in github.comments] == [f"{MARK}\none"]


@pytest.mark.parametrize(
    ("fault", "how"),
    [
        ({"cut": "before"}, "created"),
        ({"cut": "after"}, "found"),
        ({"short": True}, "found"),
    ],
)
def test_a_cut_connection_makes_one_comment(
    github: Any, clock: Clock, fault: dict[str, Any], how: str
) -> None:
    github.goes_wrong(**fault)
    assert comment(clock.client(github), ISSUE, MARK, "text") == Posted(FIRST, how)
    assert len(github.comments) == 1


def test_a_connection_cut_twice_is_said_and_nothing_is_there(github: Any, clock: Clock) -> None:
    github.goes_wrong(cut="before")
    github.goes_wrong(cut="before")
    with pytest.raises(NotPostedError, match="ended twice"):
        comment(clock.client(github), ISSUE, MARK, "text")
    assert github.comments == []


def test_where_it_cannot_be_looked_after_it_is_not_sent_again(github: Any, clock: Clock) -> None:
    github.goes_wrong(cut="after")
    # login and the first list are read, then the network is gone
    github.reads_go({}, {}, {"cut": "before"}, {"cut": "before"})
    with pytest.raises(NotPostedError, match="whether it was posted is not known"):
        comment(clock.client(github), ISSUE, MARK, "text")
    assert [method for method, path in github.asked].count("POST") == 1


def test_an_issue_is_opened_once_also_over_a_cut_connection(github: Any, clock: Clock) -> None:
    github.goes_wrong(cut="after")
    made = new_issue(clock.client(github), REPOSITORY, "[Bug]: title", MARK, "text")
    assert made == Posted("https://github.com/o/r/issues/1", "found")
    assert [(i["title"], i["body"]) for i in github.issues] == [("[Bug]: title", f"{MARK}\ntext")]


def test_the_same_run_as_an_issue_again_changes_that_issue(github: Any, clock: Clock) -> None:
    new_issue(clock.client(github), REPOSITORY, "[Bug]: title", MARK, "text")
    again = new_issue(clock.client(github), REPOSITORY, "[Bug]: better", MARK, "other text")
    assert again == Posted("https://github.com/o/r/issues/1", "updated")
    assert [(i["title"], i["body"]) for i in github.issues] == [
        ("[Bug]: better", f"{MARK}\nother text")
    ]


def test_somebody_elses_issue_of_the_mark_is_left_alone(github: Any, clock: Clock) -> None:
    theirs = {"id": 1, "number": 1, "body": f"{MARK}\ntheirs", "user": {"login": "other"}}
    github.issues.append(theirs | {"html_url": "https://github.com/o/r/issues/1"})
    made = new_issue(clock.client(github), REPOSITORY, "[Bug]: title", MARK, "text")
    assert made == Posted("https://github.com/o/r/issues/2", "created")
    assert github.issues[0]["body"] == f"{MARK}\ntheirs"


def test_an_answer_nested_without_end_is_refused(github: Any, clock: Clock) -> None:
    github.reads_go({}, {"raw": b"[" * 200_000})
    with pytest.raises(NotPostedError, match="no list"):
        comment(clock.client(github), ISSUE, MARK, "text")
    assert github.comments == []


def test_a_wait_that_is_no_number_is_a_minute(github: Any, clock: Clock) -> None:
    github.goes_wrong(status=429, headers={"Retry-After": "\xb2"})
    assert comment(clock.client(github), ISSUE, MARK, "text").how == "created"
    assert clock.waits == [60.0]


def test_a_gist_is_secret(github: Any, clock: Clock) -> None:
    made = gist(clock.client(github), "evidence", {"run.json": "{}"})
    assert made == Posted("https://github.com/gist/1", "created")
    [there] = github.gists
    assert there["public"] is False
    assert there["files"] == {"run.json": {"content": "{}"}}


@pytest.mark.parametrize("known", [None, "1", "77", "../../repos/o/r"])
def test_the_gist_of_a_run_is_changed_and_never_made_again(
    github: Any, clock: Clock, known: str | None
) -> None:
    github.page_size = 2
    gist(clock.client(github), "specrepro 1", {"run.json": "old"})
    for number in range(2, 6):
        gist(clock.client(github), f"specrepro {number}", {"run.json": "other"})
    again = gist(clock.client(github), "specrepro 1", {"run.json": "new"}, known)
    assert again == Posted("https://github.com/gist/1", "updated")
    assert [one["files"]["run.json"]["content"] for one in github.gists] == [
        "new",
        *["other"] * 4,
    ]
    assert not [path for _, path in github.asked if "repos" in path]


def test_a_gist_that_was_deleted_is_made_anew(github: Any, clock: Clock) -> None:
    gist(clock.client(github), "specrepro 1", {"run.json": "old"})
    github.gists.clear()
    assert gist(clock.client(github), "specrepro 1", {"run.json": "new"}, "1").how == "created"


@pytest.mark.parametrize(
    ("fault", "how"),
    [({"cut": "before"}, "created"), ({"cut": "after"}, "found"), ({"short": True}, "found")],
)
def test_a_cut_connection_makes_one_gist(
    github: Any, clock: Clock, fault: dict[str, Any], how: str
) -> None:
    github.goes_wrong(**fault)
    made = gist(clock.client(github), "specrepro 1", {"run.json": "{}"})
    assert made == Posted("https://github.com/gist/1", how)
    assert len(github.gists) == 1


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        ({"status": 429, "headers": {"Retry-After": "7"}}, [7.0]),
        ({"status": 403, "headers": {"Retry-After": "3"}, "message": SECONDARY}, [3.0]),
        ({"status": 403, "message": SECONDARY}, [60.0]),
        ({"status": 429, "headers": RESET}, [0.0]),
    ],
)
def test_a_limit_is_waited_for_as_github_says(
    github: Any, clock: Clock, fault: dict[str, Any], waits: list[float]
) -> None:
    github.goes_wrong(**fault)
    assert comment(clock.client(github), ISSUE, MARK, "text").how == "created"
    assert clock.waits == waits
    assert len(clock.said) == 1


def test_a_limit_of_an_hour_is_told_and_not_waited_for(github: Any, clock: Clock) -> None:
    github.goes_wrong(status=429, headers={"Retry-After": "3600"})
    with pytest.raises(NotPostedError, match="60 minutes"):
        comment(clock.client(github), ISSUE, MARK, "text")
    assert clock.waits == []


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (403, "403: Unable"),
        (404, "404: Unable"),
        (410, "410: Unable"),
        (422, "422: Unable"),
        (500, "500: Unable"),
    ],
)
def test_a_refusal_is_told_with_what_to_do(
    github: Any, clock: Clock, status: int, said: str
) -> None:
    github.goes_wrong(status=status, message="Unable to \x1b[31mcomment")
    with pytest.raises(NotPostedError) as caught:
        comment(clock.client(github), ISSUE, MARK, "text")
    assert said in caught.value.message
    assert "\x1b" not in caught.value.message
    assert caught.value.hint
    assert github.comments == []


def test_a_text_that_is_too_long_is_not_sent(github: Any, clock: Clock) -> None:
    with pytest.raises(NotPostedError, match="65,536") as caught:
        comment(clock.client(github), ISSUE, MARK, "x" * 65_536)
    assert "--gist" in (caught.value.hint or "")
    assert github.asked == []


def test_a_wrong_token_is_told_and_not_shown(github: Any, clock: Clock) -> None:
    with pytest.raises(NotPostedError, match="401") as caught:
        comment(clock.client(github, "ghp_wrong"), ISSUE, MARK, "text")
    assert "ghp_wrong" not in f"{caught.value}{caught.value.hint}"


def test_a_moved_repository_is_told_and_the_token_does_not_follow(
    github: Any, clock: Clock
) -> None:
    moved = Issue(Repository("github.com", "o", "moved"), 5)
    with pytest.raises(NotPostedError, match="moved"):
        comment(clock.client(github), moved, MARK, "text")
    assert "/elsewhere" not in [path for _, path in github.asked]


def test_without_a_login_the_way_to_one_is_told(github: Any) -> None:
    with pytest.raises(NotPostedError) as caught:
        transport("github.com", github.environ(None))
    assert "gh auth login" in (caught.value.hint or "")


@pytest.mark.parametrize("address", ["http://api.example", "ftp://localhost", "api.example"])
def test_a_token_is_not_sent_in_the_open(address: str) -> None:
    with pytest.raises(NotPostedError, match="not https"):
        Rest("github.com", "ghp_any", {"GITHUB_API_URL": address})


@pytest.mark.parametrize(
    "text",
    ["o/r#5", "https://github.com/o/r/issues/5", "https://github.com/o/r/pull/5#issuecomment-1"],
)
def test_an_issue_is_named_shortly_or_by_its_address(text: str) -> None:
    assert issue(text, {}) == ISSUE


@pytest.mark.parametrize(
    "text",
    ["", "o/r", "#5", "o/r#", "o/../#5", "../r#5", "http://github.com/o/r/issues/5", "o/..#5",
     "https://github.com/o/r/issues/5x", "https://evil.example/o/r/issues/5", "o/r#5\n"],
)  # fmt: skip
def test_what_names_no_issue_of_a_known_server_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        issue(text, {})


def test_a_server_of_ones_own_is_known_by_the_environment() -> None:
    environ = {"GH_HOST": "git.example"}
    assert issue("https://git.example/o/r/issues/5", environ).repository.host == "git.example"
    assert repository("o/r", environ).host == "git.example"
    assert issue("https://github.com/o/r/issues/5", environ) == ISSUE


def test_a_mark_holds_no_text_of_a_case() -> None:
    assert mark("a --> b", "1") == "<!-- specrepro case=unnamed run=1 -->"
