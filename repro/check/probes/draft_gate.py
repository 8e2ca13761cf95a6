"""The gate of runner V1 that stops drafting near the draft's length."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..probing.lift import evaluate, lift
from ..probing.probe import Answer, NotFoundError, Probe, Sources, assigned
from ..probing.stubs import Record

FILES = ("v1/worker/gpu_model_runner.py",)
LENGTH, DRAFTS = 100, 3


class _Longest(int):
    """A tensor of one length, as far as a maximum goes."""

    def max(self) -> _Longest:
        return self


def answer(sources: Sources) -> Answer:
    """The longest sequence that still fits, by trying all, with and without DFlash."""
    path, line, fits = _gate(sources)
    plain, dflash = (
        max((n for n in range(1, LENGTH + 20) if fits(n, flag)), default=0)
        for flag in (False, True)
    )
    said = f"of {LENGTH}, with k = {DRAFTS}: drafts up to length {plain}, DFlash {dflash}"
    value = {
        (LENGTH - DRAFTS, LENGTH - DRAFTS): "L-k",
        (LENGTH - DRAFTS, LENGTH - DRAFTS - 1): "L-k, one less for DFlash",
    }.get((plain, dflash))
    if value is None:
        value = "too late" if plain > LENGTH - DRAFTS else "early"
    return Answer(value, path, line, True, said)


def _gate(sources: Sources) -> tuple[str, int, Callable[[int, bool], bool]]:
    [path, *_] = sources.paths(*FILES) or [""]
    if not path:
        raise NotFoundError(f"no {FILES[0]}")
    method = sources.functions(path).get("GPUModelRunner._input_fits_in_drafter")
    if method is not None:
        lifted = lift(method, path, {})

        def ask(length: int, dflash: bool) -> bool:
            config = Record(use_dflash=lambda: dflash, num_speculative_tokens=DRAFTS)
            runner = Record(
                num_spec_tokens=DRAFTS,
                effective_drafter_max_model_len=LENGTH,
                speculative_config=config,
            )
            return bool(lifted(runner, Record(max_seq_len=length)))

        return path, method.lineno, ask
    for name in (n for n in sources.functions(path).values() if isinstance(n, ast.FunctionDef)):
        for statement in assigned(name, "input_fits_in_drafter"):
            if isinstance(statement.value, ast.Constant):
                continue
            expression = statement.value

            def evaluated(length: int, _dflash: bool, expression: ast.expr = expression) -> bool:
                runner = Record(
                    num_spec_tokens=DRAFTS,
                    effective_drafter_max_model_len=LENGTH,
                    speculative_config=Record(num_speculative_tokens=DRAFTS),
                )
                metadata = Record(max_seq_len=length, seq_lens=_Longest(length))
                scope = {
                    "self": runner,
                    "effective_drafter_max_model_len": LENGTH,
                    "spec_decode_common_attn_metadata": metadata,
                }
                return bool(evaluate(expression, path, scope))

            return path, statement.lineno, evaluated
    raise NotFoundError("no gate by the length of the batch")


PROBE = Probe(
    "draft_gate",
    "up to which length of the longest request does runner V1 draft?",
    FILES,
    {
        "L-k": "the draft's length less k",
        "L-k, one less for DFlash": "the draft's length less k, less one more for DFlash",
        "too late": "drafts although its last position does not fit",
        "early": "stops although its drafts would fit",
    },
    answer,
)
