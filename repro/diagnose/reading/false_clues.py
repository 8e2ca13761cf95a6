"""Lines that reporters take for the cause and that are not: said, so that nobody counts them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .line import Following, Found, Line, Parser, State

_CLUES: tuple[tuple[str, str, str], ...] = (
    ("leaked semaphore", "leaked_semaphore", "printed whenever a process is ended from outside"),
    (
        "leaked shared_memory",
        "leaked_semaphore",
        "printed whenever a process is ended from outside",
    ),
    ("current process just got forked", "tokenizer_fork", "a note of the tokenizers package"),
    ("chat template", "chat_template", "about prompts, not about kernels"),
    ("Chat template", "chat_template", "about prompts, not about kernels"),
    ("destroy_process_group() was not called", "resource_tracker", "follows any early end"),
    (
        "Default sampling parameters have been overridden",
        "sampling_defaults",
        "settings of the model, not a fault",
    ),
    ("is deprecated", "deprecated", "a note for the future"),
    ("will be deprecated", "deprecated", "a note for the future"),
    ("Failed to warm up", "warmup", "the engine goes on without it"),
)


def _clue(line: Line, _: Following, __: State) -> Iterator[Found]:
    for words, name, why in _CLUES:
        if words in line.text:
            yield Found("false_clue", {"name": name, "why": why})
            return


def _repeats(line: Line, _: Following, __: State) -> Iterator[Found]:
    found = re.search(r"(\S)\1{23,}", line.text[:4000])
    if found and found[1] == "!":
        yield Found("garbage", {"sign": "repeated_token", "token": "!"})


PARSERS = (
    Parser(tuple(words for words, _, _ in _CLUES), _clue),
    Parser(("!" * 24,), _repeats),
)
