"""What the fault classes share: experiments, questions, claims, engines, CUDA errors."""
