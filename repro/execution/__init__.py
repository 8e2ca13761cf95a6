"""Where a trial runs: in this process tree, on the GPUs of this machine, or on a Ray cluster.

`play` is the one door: tasks in, one result each out, whichever place they ran in.
"""
