"""What S3 answers instead of doing what it was asked."""

from __future__ import annotations


class S3Error(Exception):
    """A refusal with S3's own status and code."""

    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(message or code)
        self.status = status
        self.code = code
        self.message = message or code


def no_such_key() -> S3Error:
    """Return the refusal for a key that does not exist."""
    return S3Error(404, "NoSuchKey", "The specified key does not exist.")


def access_denied() -> S3Error:
    """Return the refusal for what the access key may not do."""
    return S3Error(403, "AccessDenied", "Access Denied")


def precondition_failed() -> S3Error:
    """Return the refusal of a condition that does not hold."""
    return S3Error(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
