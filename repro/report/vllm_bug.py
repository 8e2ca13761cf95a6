"""A report in the form of vLLM's bug template (`.github/ISSUE_TEMPLATE/400-bug-report.yml`).

Its two required fields are the environment, as `collect_env` prints it, and the description. They
have no ids, so that they cannot be filled by an address; the text has to stand in the issue as the
form would have written it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .collected import Told, told, without
from .documents import document_of
from .gfm import code_lines, fence_of, prose
from .markdown import LIMIT, markdown

TITLE = "[Bug]: "
MOST = 20_000  # characters of all environments together
LONGEST_REASON = 500
COMMAND = "<code>python collect_env.py</code>"


def vllm_bug(record: Mapping[str, Any], removed: Mapping[str, int]) -> str:
    """The body of an issue, in at most LIMIT characters, of a record without what was removed."""
    environment = _environment(told(record))
    head = f"### Your current environment\n\n{environment}\n\n### 🐛 Describe the bug\n\n"
    document = document_of(without(record), removed)
    return head + markdown(document, LIMIT - len(head))


def _environment(found: list[Told]) -> str:
    parts, room = [], MOST
    for one in found:
        what = f" of {prose(one.of)[:200]}" if one.of else ""
        if not one.output:
            parts.append(f"Not known{what}: {prose(one.reason[:LONGEST_REASON])}.")
            continue
        lines = _kept(code_lines(one.output), room)
        fence = fence_of(lines)
        text = "\n".join(lines)
        room -= len(text)
        parts.append(
            f"<details>\n<summary>The output of {COMMAND}</summary>\n\n"
            f"{fence}text\n{text}\n{fence}\n\n</details>"
        )
        if one.of:
            parts[-1] = f"{prose(one.of)[:200]}:\n\n{parts[-1]}"
    return "\n\n".join(parts)


def _kept(lines: list[str], room: int) -> list[str]:
    """The first lines that fit; the last says what is gone."""
    kept: list[str] = []
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return [*kept, f"… {len(lines) - number:,} lines cut; the run has them …"]
        kept.append(line)
    return kept
