"""The fixture `emulated`: a test's Triton launches run without a GPU, and findings fail it.

```python
def test_my_kernel(emulated):
    out = np.zeros(100, np.float32)
    my_kernel[(1,)](x, out, 100)
    assert (out == expected).all()
```
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest


def _emulated() -> Generator[Any]:
    """Triton launches run in the emulator; the test fails if one of them did something wrong.

    `emulated.findings` has the records. For a test that expects findings take `emulate` itself.
    """
    from .emulation.session import emulate

    with emulate(raise_on_finding=False) as run:
        yield run


def _with_findings(pyfuncitem: Any) -> Generator[None, Any, Any]:
    """A test that passed fails with what its launches did wrong; one that failed stays as it is."""
    result = yield
    if "emulated" in pyfuncitem.funcargs:
        from .emulation.session import Emulation

        run = pyfuncitem.funcargs["emulated"]
        if isinstance(run, Emulation) and run.findings:
            count = len(run.findings) + run.unkept
            pytest.fail(f"{count} finding{'s'[: count != 1]}\n{run.report()}", pytrace=False)
    return result


# Not as decorators: the types of pytest are there only where it is installed.
emulated = pytest.fixture(_emulated, name="emulated")
pytest_pyfunc_call = pytest.hookimpl(wrapper=True)(_with_findings)
