"""What runs in the sandboxed child: standard library only, copied there, so it imports only itself.

The child must not need anything but an interpreter: what it can read, code of a build can read.
"""
