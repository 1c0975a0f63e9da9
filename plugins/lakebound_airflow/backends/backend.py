"""What every backend can do: start an application, know it again, end it."""

from __future__ import annotations

from typing import Protocol

from lakebound.control.folder import ControlFolder
from lakebound.control.submission import Owner, Submission
from lakebound.landing.run_spec import RunSpec


class Backend(Protocol):
    """Starts applications, and knows them again later. Every call may block; none raises for an application that is gone."""

    def submit(self, run_spec: RunSpec, owner: Owner | None) -> Submission:
        """Start the application, or return the one that already lives for the pipeline.

        Args:
            run_spec: The application's orders.
            owner: The task's try that has the application in its care; None without one.

        Raises:
            SubmitFailedError: It could not be started.
        """
        ...

    def is_alive(self, control: ControlFolder, submission: Submission) -> bool:
        """Whether the application is starting, running or ending.

        Args:
            control: The pipeline's folder.
            submission: What ``submit`` returned.
        """
        ...

    def kill(self, submission: Submission) -> bool:
        """End it at once, and return whether that was possible. Only after a graceful stop was requested without effect.

        Args:
            submission: What ``submit`` returned.
        """
        ...

    def where_log_is(self, submission: Submission) -> str:
        """Return where its log is to be found; empty where it has none.

        Args:
            submission: What ``submit`` returned.
        """
        ...
