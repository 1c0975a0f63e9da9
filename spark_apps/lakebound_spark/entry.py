"""What the entry points in ``spark_apps`` share: how they are told what to do, how they log, and how they end."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from lakebound.errors import LakeboundError
from lakebound.landing.batch_command import ANOTHER_RUN
from lakebound.landing.run_spec import RunSpec

if TYPE_CHECKING:
    from lakebound.control.replay_result import ReplayResult

OrdersType = TypeVar("OrdersType", bound=RunSpec)

_BACKFILL_CODES = {"completed": 0, "stopped": 1, "failed": 1, "refused": 3}


def read_orders(kind: type[OrdersType], description: str | None, *, quiet: Iterable[str] = ("py4j", "httpx")) -> OrdersType:
    """Return what ``--run-spec`` says, and log to standard error from now on.

    Args:
        kind: The orders' class.
        description: The entry point's docstring, for ``--help``.
        quiet: Loggers of which only warnings matter.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--run-spec", required=True, help=f"{kind.__module__}.{kind.__name__} as JSON")
    orders = kind.model_validate_json(parser.parse_args().run_spec)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)
    return orders


def say_backfill_ended(result: ReplayResult) -> int:
    """Say how a backfill ended, and return its exit code."""
    print(f"{result.state}: {result.reason}", flush=True)
    return _BACKFILL_CODES[result.state]


def run_alone(work: Callable[[], int], progress: str, another_run: type[LakeboundError]) -> int:
    """Do the work of a batch application, of which a pipeline has one at a time; return its exit code.

    Args:
        work: Returns the exit code.
        progress: What lines of the log begin with that are meant for a person.
        another_run: What it raises when another run of the pipeline is under way.
    """
    try:
        return work()
    except LakeboundError as exc:
        logging.error("%s%s", progress, exc)
        return ANOTHER_RUN if isinstance(exc, another_run) else 1


def end_process(code: int) -> NoReturn:
    """End this process.

    Not ``sys.exit``: threads of deltalake's and pyarrow's now and then abort a Python that tidies itself up (exit code 134).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def answer(pipeline: str, body: Mapping[str, Any]) -> None:
    """Print what was found of a pipeline as a line of JSON."""
    print(json.dumps({"pipeline": pipeline, **body}, default=str), flush=True)
