"""Random sampling in the draft loop: what a column frozen in a captured step does to the output.

Many independent rows draft k tokens, draft j from a distribution of its own. The sampler keeps the
processed logits of draft j in column j; the rejection sampler verifies draft j with the
probabilities of that column. If they are those it was drawn from, output token j of a row follows
the target's distribution, whatever they are: tested by chi-square over the rows that get so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops import Array, Ops, Tensor, Timeline
from ..records import Finding, Kind, Scalar
from .draft_loop import AT_LIMIT_IGNORE
from .serving import starts
from .significance import chi_square_p
from .toy_model import VOCAB

SIGNIFICANT = 1e-6  # below this a count is called wrong; the seed is fixed, so it does not flicker
ENOUGH = 5 * VOCAB  # rows that a chi-square needs
FALLING = 0.8 ** np.arange(VOCAB)
TARGET: NDArray[np.float64] = FALLING / FALLING.sum()
NOWHERE = -1
ONE_SEQUENCE = 1 << 30  # block size: the rows' positions need no block table of their own


def proposal(draft: int) -> NDArray[np.float64]:
    """The distribution of draft number `draft`: the target's, and a favourite token of its own."""
    favourite = np.zeros(VOCAB)
    favourite[(5 + draft) % VOCAB] = 1
    return 0.6 * TARGET + 0.4 * favourite


class Sampler:
    """The sampling part of a draft loop: a launch of `gumbel_sample` a draft, `rows` at once."""

    def __init__(
        self,
        ops: Ops,
        timeline: Timeline,
        point: Mapping[str, Scalar],
        settings: Mapping[str, Scalar],
    ) -> None:
        self.ops, self.timeline = ops, timeline
        self.k = int(point["num_speculative_tokens"])
        self.rows = int(point["samples"])
        self.seed = int(point["seed"])
        self.captured = point["mode"] == "captured"
        self.whole_loop = settings["sampler_capture"] == "whole_loop"
        self.by_value = settings["column"] == "value"
        rows, device = self.rows, timeline
        # every row has positions of its own, hence random numbers of its own
        self.positions = device.tensor("positions", np.arange(rows, dtype=np.int64) * self.k)
        self.seq_lens = device.tensor("seq_lens", np.ones(rows, np.int32))
        self.block_table = device.tensor("block_table", np.zeros((rows, 1), np.int32))
        self.slots = device.tensor("slots", np.zeros(rows, np.int64))
        self.processed = device.tensor("processed", np.zeros((rows, self.k, VOCAB), np.float32))
        self.column = device.tensor("current_draft_step", np.zeros(1, np.int32))
        self.columns: list[int] = []  # where the logits of each draft were found, or NOWHERE

    def _logits(self, draft: int) -> Array:
        return np.tile(np.log(proposal(draft)).astype(np.float32), (self.rows, 1))

    def _buffers(self, draft: int) -> tuple[Tensor, Tensor]:
        """Logits of a draft, and a place for the token sampled from them."""
        return (
            self.timeline.tensor("logits", self._logits(draft)),
            self.timeline.tensor("sampled", np.zeros(self.rows, np.int32)),
        )

    def drafts(self) -> Array:
        """Sampled tokens int32[rows, k]; their processed logits are left in `processed`."""
        logits, sampled = self._buffers(0)
        self._sample(logits, sampled, 0)  # the first draft has a pass of its own: column 0
        made = [self._made(sampled, 0)]
        if not self.captured:
            for draft in range(1, self.k):
                self.timeline.write(self.column, [draft])
                self.timeline.write(logits, self._logits(draft))
                self._step(logits, sampled, draft)
                made.append(self._made(sampled, draft))
        elif self.whole_loop:
            made += self._replay_loop()
        elif self.k > 1:
            with self.timeline.capture() as graphs:
                self._step(logits, sampled, 1)
            for draft in range(1, self.k):
                self.timeline.write(self.column, [draft])
                self.timeline.write(logits, self._logits(draft))
                self.timeline.replay(graphs[0], self.ops.number, draft)
                made.append(self._made(sampled, draft))
        return np.stack(made, axis=1)

    def _replay_loop(self) -> list[Array]:
        """All steps in one graph: each is captured once, with a column of its own."""
        buffers = [self._buffers(draft) for draft in range(1, self.k)]
        with self.timeline.capture() as graphs:
            for draft, (logits, sampled) in enumerate(buffers, start=1):
                self._step(logits, sampled, draft)
        self.timeline.replay(graphs[0], self.ops.number, None)
        return [self._made(sampled, draft) for draft, (_, sampled) in enumerate(buffers, start=1)]

    def _made(self, sampled: Tensor, draft: int) -> Array:
        """The tokens of a draft; notes the column in which its processed logits are found."""
        columns = self.timeline.read(self.processed)
        same = np.isclose(columns, self._logits(draft)[:, None], rtol=1e-5).all(axis=(0, 2))
        found = np.flatnonzero(same)
        self.columns.append(int(found[0]) if found.size else NOWHERE)
        return self.timeline.read(sampled)

    def _step(self, logits: Tensor, sampled: Tensor, draft: int) -> None:
        self.ops.step = draft
        self.ops.draft_step(
            self.positions,
            self.seq_lens,
            self.block_table,
            self.slots,
            block_size=ONE_SEQUENCE,
            limit=ONE_SEQUENCE,
            at_limit=AT_LIMIT_IGNORE,
        )
        self._sample(logits, sampled, draft)

    def _sample(self, logits: Tensor, sampled: Tensor, draft: int) -> None:
        by_device = draft > 0 and not self.by_value
        self.ops.gumbel_sample(
            logits,
            self.positions,
            sampled,
            self.processed,
            self.column if by_device else None,
            column=draft,
            seed=self.seed,
            temperature=1.0,
        )

    def probabilities(self) -> NDArray[np.float32]:
        """fp32[rows, k, vocab]: softmax of what the columns hold."""
        weights = np.exp(self.timeline.read(self.processed).astype(np.float64))
        normalised: NDArray[np.float64] = weights / weights.sum(axis=2, keepdims=True)
        return normalised.astype(np.float32)


def experiment(
    ops: Ops, timeline: Timeline, point: Mapping[str, Scalar], settings: Mapping[str, Scalar]
) -> tuple[dict[str, Any], list[Finding]]:
    """Draft, verify, and test every output position: what was counted, and what is wrong."""
    sampler = Sampler(ops, timeline, point, settings)
    rows, k = sampler.rows, sampler.k
    ops.step = 0
    tokens = sampler.drafts()
    probabilities = sampler.probabilities()
    rng = np.random.default_rng(sampler.seed)
    output = timeline.tensor("output_tokens", np.full((rows, k + 1), -1, np.int32))
    ops.step = None
    ops.rejection_sample(
        timeline.tensor("draft_start", starts([k] * rows)),
        timeline.tensor("draft_tokens", tokens.reshape(-1)),
        timeline.tensor("draft_probs", probabilities.reshape(rows * k, VOCAB)),
        timeline.tensor("target_probs", np.tile(TARGET.astype(np.float32), (rows * k, 1))),
        timeline.tensor("bonus_tokens", rng.choice(VOCAB, rows, p=TARGET).astype(np.int32)),
        timeline.tensor("uniform", rng.random(rows * k, np.float32)),
        timeline.tensor("noise", rng.exponential(size=(rows, VOCAB)).astype(np.float32)),
        output,
        greedy=False,
    )
    made = timeline.read(output)
    p_values: list[float | None] = []
    reached = [int((made[:, position] >= 0).sum()) for position in range(k)]
    for position, count in enumerate(reached):
        column = made[:, position]
        counts = np.bincount(column[column >= 0], minlength=VOCAB).tolist()
        p_values.append(chi_square_p(counts, TARGET.tolist()) if count >= ENOUGH else None)
    told: dict[str, Any] = {
        "rows": rows,
        "columns_used": sampler.columns,
        "rows_by_position": reached,
        "chi_square_p_by_position": p_values,
    }
    bad = [at for at, p in enumerate(p_values) if p is not None and p < SIGNIFICANT]
    if not bad:
        return told, []
    worst = min(p for p in p_values if p is not None)
    told["who"] = (
        f"drafts {', '.join(str(step) for step in range(k))} left their logits in columns "
        f"{', '.join(map(str, sampler.columns))}"
    )
    told["effect"] = (
        f"random sampling: output tokens {', '.join(map(str, bad))} of a row do not follow the "
        f"target (chi-square p = {worst:.2g}, {rows} rows)"
    )
    finding = Finding(
        Kind.WRONG_VALUE,
        launch=ops.launches - 1,
        op="rejection_sample",
        tensor="output_tokens",
        expected="output distribution as the target's",
        got=f"p = {worst:.2g}",
    )
    return told, [finding]
