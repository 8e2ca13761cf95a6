"""Kernels of the user in the emulator: argument files, compilation, launches from Python."""
