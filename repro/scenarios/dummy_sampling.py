"""Random sampling behind the gate: the zeros cost acceptance, the output distribution stays.

One launch of the rejection sampler with many independent rows, all with the same target
distribution. A zero without draft probabilities is accepted with the target's probability of 0, so
position i of k is accepted with p(0)^(i + 1): compared exactly with the binomial. The first token
of each row must follow the target's distribution whatever was proposed: compared by chi-square.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops import Ops
from ..records import Finding, Kind
from .serving import starts
from .significance import binomial_p, chi_square_p
from .toy_model import VOCAB

SIGNIFICANT = 1e-6  # below this a count is called wrong; the seed is fixed, so it does not flicker
P_ZERO = 0.3  # of token 0, so that a dummy 0 is accepted often enough to count
FALLING = 0.8 ** np.arange(VOCAB - 1)
TARGET: NDArray[np.float64] = np.append(P_ZERO, (1 - P_ZERO) * FALLING / FALLING.sum())
DRAFT: NDArray[np.float64] = 0.5 * TARGET + 0.5 / VOCAB


def experiment(
    ops: Ops, drafts: str, k: int, samples: int, seed: int
) -> tuple[dict[str, Any], list[Finding]]:
    """Sample `samples` rows with k "zeros", "honest" drafts or "none": counts, what is wrong."""
    rng = np.random.default_rng(seed)
    device = ops.device
    count = 0 if drafts == "none" else k
    rows = samples * count
    target = np.tile(TARGET.astype(np.float32), (max(rows, 1), 1))
    tokens = np.zeros(rows, np.int32)
    probabilities = None
    if drafts == "honest":
        tokens = rng.choice(VOCAB, rows, p=DRAFT).astype(np.int32)
        probabilities = device.tensor("draft_probs", np.tile(DRAFT.astype(np.float32), (rows, 1)))
    output = device.tensor("output_tokens", np.full((samples, count + 1), -1, np.int32))
    ops.step = None
    ops.rejection_sample(
        device.tensor("draft_start", starts([count] * samples)),
        device.tensor("draft_tokens", tokens),
        probabilities,
        device.tensor("target_probs", target),
        device.tensor("bonus_tokens", rng.choice(VOCAB, samples, p=TARGET).astype(np.int32)),
        device.tensor("uniform", rng.random(rows, np.float32)),
        device.tensor("noise", rng.exponential(size=(samples, VOCAB)).astype(np.float32)),
        output,
        greedy=False,
    )
    launch = ops.launches - 1
    made = device.read(output)
    first = np.bincount(made[:, 0], minlength=VOCAB)
    lengths = (made >= 0).sum(axis=1)
    accepted = [int((lengths > i + 1).sum()) for i in range(count)]
    chi = chi_square_p(first.tolist(), TARGET.tolist())
    told: dict[str, Any] = {
        "drafts": drafts,
        "rows": samples,
        "accepted_by_position": accepted,
        "first_token_chi_square_p": chi,
    }
    wrong = []
    if chi < SIGNIFICANT:
        wrong.append(_wrong(launch, "output distribution as the target's", f"p = {chi:.2g}"))
    if drafts == "zeros":
        expected = [float(TARGET[0]) ** (i + 1) for i in range(count)]
        p = [binomial_p(n, samples, q) for n, q in zip(accepted, expected, strict=True)]
        told["expected_acceptance"] = expected
        told["binomial_p"] = p
        if min(p) < SIGNIFICANT:
            wrong.append(_wrong(launch, f"acceptance {expected}", f"{accepted} of {samples}"))
    return told, wrong


def _wrong(launch: int, expected: str, got: str) -> Finding:
    return Finding(
        Kind.WRONG_VALUE,
        launch=launch,
        op="rejection_sample",
        tensor="output_tokens",
        expected=expected,
        got=got,
    )
