"""What backends share that submit to another machine: one application per pipeline, and a record of it before and after."""

from __future__ import annotations

from collections.abc import Callable

from lakebound.control.applications import living_submission
from lakebound.control.folder import ControlFolder, locked
from lakebound.control.submission import Submission, read_submission, write_submission
from lakebound.errors import LakeboundError, SubmitUnknownError

NAMES_OF_SECRETS = ("LAKEBOUND_SECRETS", "LAKEBOUND_SECRETS_FOLDER", "LAKEBOUND_CERTIFICATES")
"""Variables that say where secrets may be. They travel to the driver; secrets do not."""


def submit_once(
    control: ControlFolder,
    intent: Submission,
    is_alive: Callable[[ControlFolder, Submission], bool],
    create: Callable[[], str],
) -> Submission:
    """Submit an application, or return the one that already lives for the pipeline.

    Submitters take turns by a lock. The record is written before the application is created: a submitter that is killed in
    between leaves word of it.

    Args:
        control: The pipeline's folder.
        intent: The record of what is submitted, without its id on the other machine.
        is_alive: Whether an application of the same backend lives.
        create: Creates the application, and returns its id there.

    Raises:
        SubmitUnknownError: It may have been created; its record stays, and counts as alive as long as it may be starting.
        LakeboundError: It could not be created; then the record is that of the application before.
    """
    with locked(control.submission):
        living = living_submission(control)
        if living is not None and (living.backend is not intent.backend or is_alive(control, living)):
            return living
        before = read_submission(control)
        write_submission(control, intent)
        try:
            remote_id = create()
        except SubmitUnknownError:
            raise
        except LakeboundError:
            if before is None:
                control.submission.unlink(missing_ok=True)
            else:
                write_submission(control, before)
            raise
        submission = intent.model_copy(update={"remote_id": remote_id})
        write_submission(control, submission)
    return submission
