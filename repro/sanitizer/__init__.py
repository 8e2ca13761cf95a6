"""What NVIDIA's compute-sanitizer prints."""
