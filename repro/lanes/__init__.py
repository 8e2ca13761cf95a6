"""One file a lane: one way to execute a variant."""
