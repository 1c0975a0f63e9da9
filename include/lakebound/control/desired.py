"""What a person or a DAG wants of a pipeline. The application, the operator, recovery and rewind obey it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from pydantic import Field

from lakebound.control.folder import MOST_BYTES, ControlFolder, StateFile, change_text, read_text, write_json
from lakebound.control.state_text import parsed_json
from lakebound.control.submission import read_submission
from lakebound.errors import HeldError
from lakebound.frozen import Frozen
from lakebound.ledger.marks import NextOffsets

LOST = "its file desired.json is gone, so it is not known whether the pipeline should run"
"""The reason of the hold of a pipeline whose desired state is lost."""

DesiredState = Literal["running", "stopped", "held"]


class RunBound(Frozen):
    """Where a bounded run ends: at offsets (exclusive, per topic and partition) or at a record time; never both."""

    offsets: NextOffsets | None = None
    timestamp_ms: int | None = None


class Desired(Frozen):
    """The desired state. ``generation`` grows with each change that a running application must be restarted for."""

    state: DesiredState = "running"
    generation: int = Field(default=0, ge=0)
    freshness: str | None = Field(default=None, description="Overrides the pipeline's own line.")
    until: RunBound | None = None
    reason: str = ""
    by: str = ""
    since: float = Field(default=0.0, description="Epoch seconds.")

    @property
    def wants_app(self) -> bool:
        """Whether an application should be running."""
        return self.state == "running"


class LostDesired(Desired):
    """Stands for one whose file is gone. It may have been a stop or a hold, so nothing runs until a person decides."""


def read_desired(control: ControlFolder) -> Desired:
    """Return the desired state; a pipeline of which nobody said anything is wanted running.

    Where one was written and its file is gone, the pipeline is held (``LostDesired``).

    Raises:
        ValueError: The file is damaged.
    """
    found = _read(control)
    if found is not None and control.is_shared:
        return found  # every version that shares state leaves a sign: a store is not asked for it each time
    if found is None and control.desired_sign.exists():
        # Read again: the first one may have been written meanwhile.
        return _read(control) or _lost(control)
    if found is not None and not control.desired_sign.exists():
        # Written by a version that left no sign.
        with suppress(OSError):
            write_json(control.desired_sign, {}, durable=True)
    return found or Desired()


def readable_desired(path: StateFile) -> Desired | None:
    """Return the desired state in a file; None where there is none that can be read."""
    try:
        return _parsed(read_text(path, most_bytes=MOST_BYTES))
    except ValueError:
        return None


def _readable(text: str | None) -> Desired | None:
    try:
        return _parsed(text)
    except ValueError:
        return None


def keep_desired(control: ControlFolder) -> None:
    """Write down, at a pipeline's first start, that it is wanted running: from then on a loss of the file is seen."""
    if control.desired_sign.exists():
        return
    _change(control, lambda text: _parsed(text) or Desired())


def _read(control: ControlFolder) -> Desired | None:
    return _parsed(read_text(control.desired, most_bytes=MOST_BYTES))


def _parsed(text: str | None) -> Desired | None:
    return None if text is None else Desired.model_validate(parsed_json(text))


def _before(control: ControlFolder, text: str | None) -> Desired:
    """Return the desired state that a text says; where there is none, whether one is lost."""
    found = _parsed(text)
    if found is None and control.desired_sign.exists():
        return _lost(control)
    return found or Desired()


def _change(control: ControlFolder, decide: Callable[[str | None], Desired]) -> Desired:
    """Write the desired state, and only then the sign that there is one: a power cut in between loses neither."""
    decided: list[Desired] = []

    def change(text: str | None) -> str:
        decided.append(decide(text))
        return json.dumps(decided[-1].model_dump())

    change_text(control.desired, change, durable=True)
    if not control.desired_sign.exists():
        write_json(control.desired_sign, {}, durable=True)
    return decided[-1]


def _lost(control: ControlFolder) -> LostDesired:
    """Return the hold, with the generation of the newest submission: generations only grow."""
    generation = 0
    with suppress(ValueError):
        submission = read_submission(control)
        generation = submission.generation if submission is not None else 0
    return LostDesired(state="held", generation=generation, reason=LOST)


def change_desired(
    control: ControlFolder,
    state: DesiredState,
    *,
    restart: bool = False,
    freshness: str | None = None,
    until: RunBound | None = None,
    reason: str = "",
    by: str = "",
    release_hold: bool = True,
) -> Desired:
    """Write a new desired state and return it.

    The generation grows when ``restart`` is asked for, or when freshness or bound differ from before.

    Args:
        control: The pipeline's folder of state.
        state: What is asked for.
        restart: Whether a running application is to be replaced.
        freshness: Replaces that of the YAML; None: as in the YAML.
        until: Where the run ends; None: it goes on.
        reason: Why, for people.
        by: Who asks.
        release_hold: Whether this change may end a hold; a restart or a bounded run may not.

    Raises:
        HeldError: The pipeline is held and this change may not end that.
    """

    def decide(text: str | None) -> Desired:
        before = _before(control, text)
        if before.state == "held" and state != "held" and not release_hold:
            raise HeldError(control.pipeline, before.reason)
        restarts = restart or (freshness, until) != (before.freshness, before.until)
        return Desired(
            state=state,
            generation=before.generation + (1 if restarts else 0),
            freshness=freshness,
            until=until,
            reason=reason,
            by=by,
            since=time.time(),
        )

    return _change(control, decide)


def hold_restored(control: ControlFolder, restored: Desired, *, reason: str, by: str) -> None:
    """Hold a pipeline whose state is being restored, whatever was asked of it here, and if that can be read.

    Args:
        control: State folder of the pipeline.
        restored: The desired state of the backup: its freshness and bound are kept, and generations only grow.
        reason: Why it is held.
        by: Who restores.
    """

    def decide(text: str | None) -> Desired:
        here = _readable(text) or _lost(control)
        generation = max(here.generation, restored.generation) + 1
        changes = {"state": "held", "generation": generation, "reason": reason, "by": by, "since": time.time()}
        return restored.model_copy(update=changes)

    _change(control, decide)


def request_stop(control: ControlFolder, app_id: str, *, reason: str, by: str) -> None:
    """Ask one application to end gracefully; the desired state stays, so another may be started after it.

    Args:
        control: State folder of the pipeline.
        app_id: The application that is to end; others continue.
        reason: Why it is to end; the application repeats it in its outcome.
        by: Who asks, such as ``lakebound run`` or ``airflow``; it is kept with the request.
    """
    write_json(control.stop_marker(app_id), {"reason": reason, "by": by, "at": time.time()})
