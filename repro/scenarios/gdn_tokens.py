"""The toy hybrid model in integers: what a healthy run must serve, without any op.

A token enters every layer with a carry of 0..15. A GDN layer mixes it with the token before (the
convolution), keeps the mix under the token's id (the delta rule: the newest value of each id), and
adds the sum over all ids. An attention layer adds the sum of all carries so far. So each state that
is lost, stale or of another place changes what comes after it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

VOCAB = 16
PERIOD = 4  # three GDN layers, then one attention layer
CONV_WEIGHT = ((1, 2), (3, 1))  # of carry and token: the token before, the token itself


def is_attention(layer: int) -> bool:
    """Whether layer `layer` (global, from 0) is one of full attention."""
    return layer % PERIOD == PERIOD - 1


def after_gdn(carry: int, total: int, layer: int) -> int:
    """The carry behind a GDN layer that summed its memory to `total`."""
    return (carry + 3 * total + layer) % VOCAB


def after_attention(carry: int, total: int, token: int, layer: int) -> int:
    """The carry behind an attention layer that summed all carries to `total`."""
    return (carry + 5 * total + token + layer) % VOCAB


def next_token(carry: int, token: int) -> int:
    """The token after one that leaves the last layer with `carry`; another carry, another token."""
    return (carry + 4 * token + 7) % VOCAB


def prompt(length: int, seed: int) -> list[int]:
    """`length` tokens."""
    draw = random.Random(seed)  # noqa: S311 - a prompt, not a secret
    return [draw.randrange(VOCAB) for _ in range(length)]


class Oracle:
    """One sequence, token by token, through `layers` layers."""

    def __init__(self, layers: int) -> None:
        self.layers = layers
        self.before = [(0, 0)] * layers
        self.memory: list[dict[int, int]] = [{} for _ in range(layers)]
        self.totals = [0] * layers

    def feed(self, token: int) -> int:
        """The token that follows."""
        carry = token
        for layer in range(self.layers):
            if is_attention(layer):
                self.totals[layer] += carry
                carry = after_attention(carry, self.totals[layer], token, layer)
                continue
            old_carry, old_token = self.before[layer]
            self.before[layer] = carry, token
            (a, b), (c, d) = CONV_WEIGHT
            mixed = (a * old_carry + b * carry + c * old_token + d * token) % VOCAB
            self.memory[layer][token] = mixed
            carry = after_gdn(carry, sum(self.memory[layer].values()), layer)
        return next_token(carry, token)


def continuation(tokens: Sequence[int], end: int, layers: int) -> list[int]:
    """The sequence grown to `end` tokens one by one."""
    oracle = Oracle(layers)
    grown = list(tokens)
    following = [oracle.feed(token) for token in tokens][-1]
    while len(grown) < end:
        grown.append(following)
        following = oracle.feed(following)
    return grown
