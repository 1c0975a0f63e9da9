"""The process of the command ``lakebound``: it runs the command, and ends without C++ libraries tidying themselves up.

Threads of deltalake's and pyarrow's now and then abort a process that ends as usual, after its answer was printed ("terminate
called without an active exception", SIGABRT). ``lakebound_spark.entry`` ends applications in the same way.
"""

from __future__ import annotations

import atexit
import errno
import os
import sys
import threading
from typing import NoReturn, TextIO

from lakebound.cli import app


def main() -> NoReturn:
    """Run the command, and end this process with its exit code."""
    try:
        app()
    except SystemExit as ended:
        code = _code_of(ended)
    except BaseException as exc:  # of ``--debug``, and what Rust panics with
        sys.excepthook(type(exc), exc, exc.__traceback__)
        code = 1
    else:
        code = 0
    # As Python ends: threads that are no daemons end, such as those that write to a store, and libraries do what they do then,
    # such as to remove temporary folders. What comes after that is left out.
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except KeyboardInterrupt:
        code = code or 130
    os._exit(_flushed(code))


def _code_of(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    print(ended.code, file=sys.stderr)
    return 1


def _flushed(code: int) -> int:
    """Write out what is still to be printed; return the exit code, which is an error where that was not possible."""
    problem = _flush(sys.stdout)
    if problem is not None and problem.errno != errno.EPIPE and not code:
        # A reader that has seen enough, such as ``head``, needs no message.
        print(f"lakebound: the output could not be written: {problem.strerror}", file=sys.stderr)
    _flush(sys.stderr)
    return code if problem is None else code or 1


def _flush(stream: TextIO | None) -> OSError | None:
    try:
        if stream is not None and not stream.closed:
            stream.flush()
    except OSError as exc:
        return exc
    return None
