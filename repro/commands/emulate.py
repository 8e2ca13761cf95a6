"""`specrepro emulate KERNEL`: one launch of a kernel of yours, every access checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from .options import Json, Quiet, Skip, Timeout, Verbose, triple

Kernel = Annotated[
    Path, typer.Argument(metavar="KERNEL", help="A .ptx, .cu (CUDA C++) or .py (Triton) file.")
]
Entry = Annotated[
    str | None,
    typer.Option("--entry", metavar="NAME", help="Which kernel, where the file holds several."),
]
Grid = Annotated[
    str | None, typer.Option("--grid", metavar="X[,Y,Z]", help="Blocks of the launch.")
]
Block = Annotated[
    str | None,
    typer.Option("--block", metavar="X[,Y,Z]", help="Threads of a block; Triton has its own."),
]
Args = Annotated[
    Path | None, typer.Option("--args", metavar="ARGS.yaml", help="What the kernel is given.")
]
Shared = Annotated[
    int, typer.Option("--shared", metavar="BYTES", min=0, help="Dynamic shared memory of a block.")
]
Warps = Annotated[
    int | None, typer.Option("--num-warps", metavar="N", min=1, help="Of a Triton kernel's block.")
]
WriteArgs = Annotated[
    bool, typer.Option("--write-args", help="Print an argument file to start from, and end.")
]


def emulate(
    kernel: Kernel,
    entry: Entry = None,
    grid: Grid = None,
    block: Block = None,
    args: Args = None,
    shared: Shared = 0,
    num_warps: Warps = None,
    write_args: WriteArgs = False,
    skip: Skip = None,
    timeout: Timeout = None,
    json_: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Execute one launch of a kernel without a GPU and say what it did wrong, and where.

    docs/check-your-kernel.md has the argument file and two walk-throughs.
    """
    from ..emulation.argument_file import load_arguments
    from ..emulation.kernel_text import language
    from ..emulation.parent import TIMEOUT, Request, emulate_file
    from ..emulation.template import template
    from ..report.console import console, print_json
    from ..report.emulate_page import print_emulated

    if write_args:
        print(template(kernel, entry), end="")
        return
    kind = language(kernel)
    if grid is None or args is None:
        raise UsageError(
            f"{'--grid' if grid is None else '--args'} is missing",
            hint="--write-args prints an argument file to start from",
        )
    if kind == "triton" and (block is not None or shared):
        raise UsageError(
            "--block and --shared of a Triton kernel follow from --num-warps and the kernel"
        )
    if kind != "triton" and num_warps is not None:
        raise UsageError("--num-warps is for Triton kernels; --block has the threads")
    loaded, text = load_arguments(args)
    done = emulate_file(
        Request(
            kernel,
            entry,
            triple("--grid", grid),
            triple("--block", block or "1"),
            shared,
            num_warps,
            loaded,
            text,
            tuple(skip or ()),
            timeout or TIMEOUT,
        )
    )
    if json_:
        print_json(done.record)
    else:
        print_emulated(console(), done.record, quiet=quiet, verbose=verbose)
    raise typer.Exit(int(done.status))
