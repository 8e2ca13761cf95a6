"""Write 64 numbers of 4 bytes from element DISTANCE of a buffer of 64 on, on GPU 0 of this process,
in memory as the lanes place it; print the error that ends it, 0 for none: first_byte.py DISTANCE"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from specrepro.repro.lanes.cuda_device import CudaDevice
from specrepro.repro.lanes.cuda_driver import CudaError, Driver
from specrepro.repro.ops import Launch
from specrepro.repro.sanitizer.journal import Writer
from specrepro.repro.selftest.device_child import kernel


def main(distance: int) -> int:
    with TemporaryDirectory() as kept:
        device = CudaDevice(
            Driver(),
            1 << 30,
            Writer(io.StringIO()),
            kernels=lambda name, target: kernel(name, target, Path(kept, "planted.cubin")),
        )
        try:
            out = device.tensor("out", np.zeros(64, np.int32))
            given = {"out": out, "distance": distance}
            device.launch(Launch(0, "far_write", given, (1, 1, 1), None, None))
            device.finish()
        except CudaError as error:
            return error.code
    return 0


if __name__ == "__main__":
    print(main(int(sys.argv[1])))
