"""Where a build of the engine runs: one environment a build, made by uv, or given by the user."""
