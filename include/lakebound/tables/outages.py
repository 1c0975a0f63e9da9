"""Which errors of disks, catalogs and networks are known to pass by themselves. Pure.

Only these are waited out without a bound. Any other error would come again: a person has to look at it.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from lakebound.errors import DiskFullError, LakeboundError

_PASSING = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EDQUOT,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EINTR,
        errno.EIO,
        errno.EMFILE,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENFILE,
        errno.ENOLCK,
        errno.ENOSPC,
        errno.EPIPE,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.ETXTBSY,
    }
)
_NUMBERED = re.compile(r"(?:os error|errno) (\d+)", re.IGNORECASE)
"""How Rust's libraries and Arrow write the number of a system's error."""
_CATALOG = ("database is locked", "database table is locked", "database or disk is full", "disk i/o error", "database is busy")
"""What SQLite says of errors that pass (https://www.sqlite.org/rescode.html: BUSY, LOCKED, FULL, IOERR)."""
_JAVA_FULL = "java.io.ioexception: no space left on device"
"""What Spark's error quotes of a disk that is full: of its own scratch, or where an executor writes."""
_FULL_DISK = ("database or disk is full", _JAVA_FULL)
_FULL_DISK_NUMBERS = frozenset({errno.ENOSPC, errno.EDQUOT})
_KAFKA = (
    "org.apache.kafka.common.errors.timeoutexception",
    "disconnectexception",
    "timeoutexception: timed out waiting",
)
"""What Spark's error quotes of Kafka's client when a broker is away."""

_STORE = "error performing "
"""What the object_store library says of a request, in deltalake and Polars; obstore's errors are told apart in ``storage``."""
_STORE_PASSES = re.compile(
    r"\b(?:429 too many|500 internal|502 bad gateway|503 service|503 slow|504 gateway)|error sending request"
)
_STORE_REFUSES = re.compile(r"\b(?:400 bad request|401 unauthorized|403 forbidden)\b")
_REFUSING = frozenset({errno.EACCES, errno.EPERM})
_BODY_CUT_SHORT = "request or response body error"

_ABOUT_VALUES = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError)
"""Of what a program does with its values: none passes, and what it says may quote a record."""


def passes(error: BaseException | None) -> bool:
    """Return whether an error, or one that caused it, is known to pass by itself: a full disk, a locked catalog, an outage."""
    return any(_passes(one) for one in causes(error))


def tells_nothing(error: BaseException) -> bool:
    """Return whether an error says nothing of what is there: who was asked is away at this moment, or refuses to answer."""
    return passes(error) or any(_refuses(one) for one in causes(error))


def is_outage(error: BaseException | None) -> bool:
    """Return whether an application's error is an outage, so that the next start follows by itself and nobody is asked.

    A refusal is one only where the error that it was made of passes: a table on a disk that does not answer is unreadable.
    """
    if isinstance(error, LakeboundError) and error.is_refusal:
        return passes(error.__cause__)
    return passes(error)


def is_full_disk(error: BaseException | None) -> bool:
    """Return whether an error, or one that caused it, says that a disk or a quota is full.

    Of Lakebound's own errors only what they were made of counts, not what they were met beside, and not their words.
    """
    if isinstance(error, LakeboundError):
        return isinstance(error, DiskFullError) or is_full_disk(error.__cause__)
    return any(_is_full_disk(one) for one in causes(error) if not isinstance(one, LakeboundError))


def _is_full_disk(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _FULL_DISK_NUMBERS
    if isinstance(error, _ABOUT_VALUES):
        return False
    text = str(error).lower()
    numbers = {int(number) for number in _NUMBERED.findall(text)}
    return bool(numbers & _FULL_DISK_NUMBERS) or any(said in text for said in _FULL_DISK)


def _passes(error: BaseException) -> bool:
    if isinstance(error, LakeboundError):
        return error.passes
    if isinstance(error, TimeoutError | ConnectionError | InterruptedError):
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _PASSING
    if isinstance(error, _ABOUT_VALUES):
        return False
    text = str(error).lower()
    return (
        any(int(number) in _PASSING for number in _NUMBERED.findall(text))
        or any(said in text for said in (*_CATALOG, _JAVA_FULL, *_KAFKA, _BODY_CUT_SHORT))
        or (_STORE in text and _STORE_PASSES.search(text) is not None)
    )


def _refuses(error: BaseException) -> bool:
    if isinstance(error, PermissionError):
        return True
    if isinstance(error, (LakeboundError, *_ABOUT_VALUES)):
        return False
    text = str(error).lower()
    numbers = {int(number) for number in _NUMBERED.findall(text)}
    return bool(numbers & _REFUSING) or (_STORE in text and _STORE_REFUSES.search(text) is not None)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, what caused it, and so on."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
