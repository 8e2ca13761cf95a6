"""What the GPU lanes and Triton use of torch 2.13.0, over the CUDA driver of this process.

A tensor is a place in memory with a type; streams and graphs are the driver's, as torch's are the
runtime's. Names and signatures are those of torch/cuda/__init__.py, torch/cuda/streams.py,
torch/cuda/graphs.py and torch/utils/dlpack.py. Whatever else is asked for is not here.
"""

from __future__ import annotations

from . import _C as _C
from . import cuda as cuda
from . import utils as utils
from . import version as version
from .tensor import Tensor as Tensor
from .tensor import dtype as dtype

__version__ = "2.13.0+made.up"
