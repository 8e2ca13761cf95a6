"""What runs in the target's environment: standard library, and what is installed there."""
