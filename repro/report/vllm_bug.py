"""A report in the form of vLLM's bug template (`.github/ISSUE_TEMPLATE/400-bug-report.yml`).

Its two required fields are the environment, as `collect_env` prints it, and the description. They
have no ids, so that they cannot be filled by an address; the text has to stand in the issue as the
form would have written it.
"""

from __future__ import annotations

TITLE = "[Bug]: "
NO_ENVIRONMENT = (
    "Not stored with this run: it did not run an engine. "
    "`python collect_env.py` prints it where the engine runs."
)


def vllm_bug(description: str, collect_env: str | None) -> str:
    """The body of an issue. description: Markdown. collect_env: its output, None without."""
    environment = NO_ENVIRONMENT
    if collect_env is not None:
        fence = "`" * max(3, _longest_run(collect_env) + 1)
        environment = (
            "<details>\n<summary>The output of <code>python collect_env.py</code></summary>\n\n"
            f"{fence}text\n{collect_env.rstrip()}\n{fence}\n\n</details>"
        )
    return (
        f"### Your current environment\n\n{environment}\n\n### 🐛 Describe the bug\n\n{description}"
    )


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
