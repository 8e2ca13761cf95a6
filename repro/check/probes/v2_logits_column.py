"""How runner V2's sampler is told the column of a draft's cached logits."""

from __future__ import annotations

from ..probing import runner_v2
from ..probing.lift import parameters
from ..probing.probe import Answer, NotFoundError, Probe, Sources

FILES = ("v1/worker/gpu/sample/gumbel.py",)


def answer(sources: Sources) -> Answer:
    if (none := runner_v2.missing(sources)) is not None:
        return none
    path, _, node = sources.function(FILES, "gumbel_sample")
    cached = [n for n in parameters(node) if "logits" in n and n != "logits"]
    columns = [n for n in cached if n.endswith("_col")]
    value = "no cache"
    if columns:
        value = "device"
    elif len(cached) == 1:
        value = "slice"
    elif cached:
        raise NotFoundError(f"gumbel_sample takes {', '.join(cached)}")
    said = f"gumbel_sample takes {', '.join(cached) or 'nothing for them'}"
    return Answer(value, path, node.lineno, False, said)


PROBE = Probe(
    "v2_logits_column",
    "where does the sampler take the column of a draft's cached logits from?",
    (runner_v2.ENVIRONMENT, *FILES),
    {
        "no cache": "logits of drafts are not kept",
        "slice": "a slice made by the host: constant once a single step is captured",
        "device": "a tensor, read at each step",
        runner_v2.NONE: "there is no runner V2",
    },
    answer,
)
