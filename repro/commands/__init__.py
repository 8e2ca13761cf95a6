"""One file a command: options, lazy imports, rendering calls; no logic."""
