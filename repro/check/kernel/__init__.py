"""Depth kernel: a build's own Triton kernels, lifted, compiled to PTX and run in the emulator."""
