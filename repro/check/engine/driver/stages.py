"""What a worker of a pipeline is asked, in its own process."""

from __future__ import annotations


class Extension:
    """`worker_extension_cls` of an engine: methods that `collective_rpc` calls by name."""

    def specrepro_prepare(self) -> str:
        """Make what a later stage receives into, where the engine has not; the runner's module.

        An engine for processors that runs eagerly leaves the profiling out that would make it, and
        its first step fails then.
        """
        from vllm.distributed import get_pp_group

        runner = self.model_runner  # type: ignore[attr-defined]  # of the worker that it extends
        if not get_pp_group().is_first_rank and getattr(runner, "intermediate_tensors", 0) is None:
            runner.intermediate_tensors = runner.model.make_empty_intermediate_tensors(
                batch_size=runner.max_num_tokens,
                dtype=runner.model_config.dtype,
                device=runner.device,
            )
        return str(type(runner).__module__)
