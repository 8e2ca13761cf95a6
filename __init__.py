"""specrepro: bring a GPU fault of an LLM engine back, say what it is, write the report.

`emulate` is the door for kernels of your own: docs/check-your-kernel.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .repro.emulation.session import emulate

__all__ = ["__version__", "emulate"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`emulate`, loaded when it is asked for: the command line needs no numpy to start."""
    if name == "emulate":
        from .repro.emulation.session import emulate

        return emulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
