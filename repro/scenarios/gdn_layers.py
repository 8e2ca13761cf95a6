"""What lies between the ops of a layer: dense arithmetic, which runs in its turn on the stream."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..ops import Array, Tensor, Timeline
from . import gdn_tokens as model
from .gdn_requests import Step

HEAD_DIM = 8


def whole(values: Array) -> NDArray[np.int64]:
    """The whole numbers that `values` are in a healthy run; 0 for what is no number."""
    bounded = np.clip(np.nan_to_num(values.astype(np.float64)), -1e9, 1e9)
    return np.rint(bounded).astype(np.int64)


class Dense:
    """Activations of a stage, fp32[most, …], and the functions that take one layer to the next.

    Rows past the tokens of a step keep what an earlier one left, as the padded buffers of an engine
    do. `hidden` is [most, 2]: carry and token.
    """

    def __init__(self, timeline: Timeline, most: int) -> None:
        self.timeline = timeline
        self.count = 0
        tensor = timeline.tensor

        def zeros(name: str, *shape: int) -> Tensor:
            return tensor(name, np.zeros((most, *shape), np.float32))

        self.hidden, self.mixed = zeros("hidden", 2), zeros("mixed", 2)
        self.key, self.value = zeros("delta_key", 1, model.VOCAB), zeros("delta_value", 1, 1)
        self.out, self.zeros = zeros("delta_out", 1, 1), zeros("decay", 1)
        self.ones = tensor("delta_query", np.ones((most, 1, model.VOCAB), np.float32))
        self.beta = tensor("beta", np.ones((most, 1), np.float32))

    def begin(self, step: Step, received: Tensor | None) -> None:
        """Hidden states of a step: received, or embedded from its tokens."""
        count = self.count = step.starts[-1]
        tokens = np.asarray([token for row in step.rows for token in row.tokens])
        self.timeline.call(partial(self._begin, count, tokens, received))

    def _begin(self, count: int, tokens: Array, received: Tensor | None) -> None:
        hidden = self._read(self.hidden)
        if received is None:
            hidden[:count] = tokens[:, None]
        else:
            hidden[:count] = self._read(received)[:count]
        self._write(self.hidden, hidden)

    def remember(self) -> None:
        """Key and value of the delta rule, from what the convolution mixed."""
        self.timeline.call(partial(self._remember, self.count))

    def _remember(self, count: int) -> None:
        token = whole(self._read(self.hidden)[:count, 1])
        key, value = self._read(self.key), self._read(self.value)
        key[:count, 0] = np.arange(model.VOCAB) == token[:, None] % model.VOCAB
        value[:count, 0, 0] = whole(self._read(self.mixed)[:count]).sum(1) % model.VOCAB
        self._write(self.key, key)
        self._write(self.value, value)

    def after_gdn(self, layer: int) -> None:
        """The carry behind a GDN layer."""
        self.timeline.call(partial(self._after_gdn, self.count, layer))

    def _after_gdn(self, count: int, layer: int) -> None:
        hidden, total = self._read(self.hidden), whole(self._read(self.out)[:count, 0, 0])
        pairs = zip(whole(hidden[:count, 0]), total, strict=True)
        hidden[:count, 0] = [model.after_gdn(int(c), int(t), layer) for c, t in pairs]
        self._write(self.hidden, hidden)

    def project(self, value: Tensor) -> None:
        """Values of an attention layer: the carry, in the first place of the head."""
        self.timeline.call(partial(self._project, self.count, value))

    def _project(self, count: int, value: Tensor) -> None:
        values = np.zeros(value.shape, np.float16)
        values[:, 0, 0] = self._read(self.hidden)[:count, 0]
        self._write(value, values)

    def after_attention(self, out: Tensor, visible: Array, layer: int) -> None:
        """The carry behind an attention layer; `visible`: positions that each token sees."""
        self.timeline.call(partial(self._after_attention, self.count, out, visible, layer))

    def _after_attention(self, count: int, out: Tensor, visible: Array, layer: int) -> None:
        hidden = self._read(self.hidden)
        totals = whole(np.nan_to_num(self._read(out)[:count, 0, 0]) * visible)
        rows = zip(whole(hidden[:count]), totals, strict=True)
        hidden[:count, 0] = [
            model.after_attention(int(carry), int(total), int(token), layer)
            for (carry, token), total in rows
        ]
        self._write(self.hidden, hidden)

    def end(self, sent: Tensor) -> None:
        """Put the hidden states where the next stage, or the sampler, takes them from."""
        self.timeline.call(lambda: self._write(sent, self._read(self.hidden)))

    def _read(self, tensor: Tensor) -> Array:
        return self.timeline.device.read(tensor)

    def _write(self, tensor: Tensor, values: Array) -> None:
        self.timeline.device.write(tensor, values)
