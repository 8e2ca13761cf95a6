"""A configuration of the engine, as far as its defaults are decided by lifted code.

Records, not ghosts: an attribute that is asked for and not listed here raises, because a stand-in
that is always true once made a release look as if it had another default.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from .stubs import Ghost, Record

# One architecture per kind of model: one that no list of the engine names, and a GDN hybrid.
ARCHITECTURES = {"dense": "MiMoForCausalLM", "hybrid": "Qwen3_5ForConditionalGeneration"}


def _platform() -> Record:
    return Record(
        is_rocm=lambda: False,
        is_unspecified=lambda: False,
        is_cuda=lambda: True,
        is_cuda_alike=lambda: True,
        is_cpu=lambda: False,
        is_xpu=lambda: False,
        is_tpu=lambda: False,
    )


def configuration(model: str, pipeline: int, aligned: bool) -> Record:
    """A VllmConfig: a `dense` or `hybrid` model with MTP, the pipeline's length, and whether
    prefix caching of recurrent state is on."""
    hybrid = model == "hybrid"
    return Record(
        model_config=Record(
            is_hybrid=hybrid,
            has_inner_state=hybrid,
            is_moe=False,
            architectures=[ARCHITECTURES[model]],
            architecture=ARCHITECTURES[model],
            runner_type="generate",
            is_attention_free=False,
            is_diffusion=False,
            is_quantized=False,
            is_encoder_decoder=False,
            is_multimodal_model=False,
            logits_processors=None,
            enable_prompt_embeds=False,
            enable_return_routed_experts=False,
            logprobs_mode="raw_logprobs",
            use_mla=False,
            quantization=None,
            pooler_config=None,
            multimodal_config=None,
            hf_config=Record(model_type="none"),
        ),
        speculative_config=Record(
            method="mtp",
            parallel_drafting=False,
            use_heterogeneous_vocab=False,
            disable_padded_drafter_batch=False,
            enable_adaptive_verification=False,
            draft_model_config=None,
            num_speculative_tokens=3,
            num_speculative_tokens_per_batch_size=None,
            rejection_sample_method="standard",
            uses_dynamic_speculative_decoding=lambda: False,
            use_multi_module_mtp=lambda: False,
            use_eagle=lambda: True,
        ),
        parallel_config=Record(
            prefill_context_parallel_size=1,
            decode_context_parallel_size=1,
            tensor_parallel_size=1,
            data_parallel_size=1,
            pipeline_parallel_size=pipeline,
            distributed_executor_backend="mp",
            all2all_backend="allgather_reducescatter",
            enable_dbo=False,
            enable_elastic_ep=False,
            enable_eplb=False,
            use_ubatching=False,
        ),
        cache_config=Record(
            mamba_cache_mode="align" if aligned else "none",
            kv_sharing_fast_prefill=False,
        ),
        compilation_config=Record(mode="none", pass_config=Record(enable_sp=False)),
        scheduler_config=Record(async_scheduling=None),
        attention_config=Record(hisparse_config=None),
        watermark_config=None,
        reasoning_config=None,
        ec_transfer_config=None,
        kv_transfer_config=None,
        lora_config=None,
    )


def globals_of_config(logger: Any) -> dict[str, Any]:
    """Names that the configuration's module takes from others."""
    executor = Record(get_class=lambda _config: Record(supports_async_scheduling=lambda: True))
    return {
        "envs": Record(VLLM_USE_V2_MODEL_RUNNER=None),
        "logger": logger,
        "HAS_TRITON": True,
        "CompilationMode": Ghost([], "CompilationMode"),
        "current_platform": _platform(),
        "Executor": executor,
        "get_args": lambda names: names,
        "EagleModelTypes": ("eagle", "eagle3", "mtp", "dflash", "deepseek_mtp", "qwen3_next_mtp"),
        "NgramGPUTypes": ("ngram_gpu",),
    }


@contextmanager
def engine_modules() -> Iterator[None]:
    """Makes `from vllm.platforms import current_platform` and the executor's import work."""
    names = ("vllm", "vllm.platforms", "vllm.v1", "vllm.v1.executor", "vllm.v1.executor.abstract")
    modules = {name: ModuleType(name) for name in names}
    given = globals_of_config(None)
    vars(modules["vllm.platforms"])["current_platform"] = given["current_platform"]
    vars(modules["vllm.v1.executor.abstract"])["Executor"] = given["Executor"]
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
