"""Launches whose addresses depend on nothing that is loaded, decided for all blocks at once.

Such an address is, thread by thread of a block, a number plus multiples of the block's
coordinates. So the threads of one block stand for those of all: `value.py` is what a register
holds, `where.py` in which blocks a thread does something, `steps.py` what of a kernel matters for
that, `walk.py` goes through it, `traces.py` keeps where it touches what (`reach.py`: how far that
goes, `apart.py`: whether blocks meet), `accesses.py` holds that against the buffers, `decide.py` is
the door. What does not fit is not guessed: the launch is then executed.
"""
