"""What the machine says besides the lane: NVML, the kernel log."""
