"""Whether what Spark raised is about a value that it evaluated, or about anything else. Only the former has a record for it.

Sources: Spark's ``QueryExecutionErrors``, and how ``pyspark.errors.exceptions.captured`` names them. Pure.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PythonException

from lakebound.first_line import first_line, python_error

MOST_CHARACTERS = 500
"""Of an error's text that is kept."""

_OF_VALUES = frozenset(
    {"ArithmeticException", "ArrayIndexOutOfBoundsException", "DateTimeException", "IllegalArgumentException"}
    | {"NoSuchElementException", "NumberFormatException", "RuntimeException", "UpgradeException"}
)
"""Java's classes, without what Spark puts before the names of its own."""
_OF_JAVA = frozenset({"java.lang.ArithmeticException", "java.lang.NumberFormatException", "java.time.DateTimeException"})
"""Classes of errors of values that are not Spark's."""
_OF_THE_PLACE = (ImportError, MemoryError, OSError, SystemExit, KeyboardInterrupt)
"""What a Python function meets where it runs: a module, memory, a file or a network. No record can help it."""
_ENDS_OF_THE_PLACE = (
    *("ConnectionError", "TimeoutError", "Timeout", "timeout", "MemoryError", "OSError"),
    *("URLError", "HTTPError", "SSLError", "SSLEOFError", "gaierror", "herror", "RemoteDisconnected", "IncompleteRead"),
)
"""How libraries, and Python's own of the network, end the names of such errors: only the name reaches the driver."""
_QUOTED = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\d+(?:[.,:-]\d+)*""")
_MOST_SHOWN = 200


@dataclass(frozen=True)
class Raised:
    """An error of values.

    Attributes:
        kind: Spark's condition, or the class; no value stands in it.
        text: In one line; it may quote the record.
    """

    kind: str
    text: str


def raised_on_values(error: BaseException) -> Raised | None:
    """Return what an error says of the values that were evaluated; None where it is about something else.

    Args:
        error: What an action of Spark's raised.
    """
    if isinstance(error, PythonException):
        return _by_python(str(error))
    if not isinstance(error, PySparkException | Py4JJavaError):
        return None
    for name, condition, message in _causes(error):
        package, _, own = name.rpartition(".")
        is_sparks = package == "org.apache.spark" and own.removeprefix("Spark") in _OF_VALUES
        if (is_sparks and condition and not condition.startswith("INTERNAL_ERROR")) or name in _OF_JAVA:
            return Raised(condition or own, f"{own}: {first_line(message)}"[:MOST_CHARACTERS])
        if name == "org.apache.spark.api.python.PythonException":
            return _by_python(message)
    return None


def without_values(text: str, record: Mapping[str, Any]) -> str:
    """Return an error's text without what it quotes, without numbers, and without the values of the record.

    Args:
        text: Of the error.
        record: The decoded record on which it was raised.
    """
    for value in sorted({*_texts_in(record)}, key=len, reverse=True):
        text = re.sub(re.escape(value), "…", text, flags=re.IGNORECASE)
    return _QUOTED.sub("…", text)[:_MOST_SHOWN]


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = [*value.values()]
    if isinstance(value, list | tuple):
        for one in value:
            yield from _texts_in(one)
    elif value is not None and len(text := str(value).strip()) > 1:
        yield text


def _by_python(message: str) -> Raised | None:
    """Return what a Python function raised, by the message with its traceback."""
    text = python_error(message) or first_line(message)
    kind = text.partition(":")[0].strip().rpartition(".")[2]
    known = getattr(builtins, kind, None)
    is_of_the_place = isinstance(known, type) and issubclass(known, _OF_THE_PLACE)
    if not kind.isidentifier() or is_of_the_place or kind.endswith(_ENDS_OF_THE_PLACE):
        return None
    return Raised(kind, text[:MOST_CHARACTERS])


def _causes(error: Any) -> Iterator[tuple[str, str | None, str]]:
    """Yield class, condition and message of a Java error and of each that caused it."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        name: str = java.getClass().getName()
        condition = java.getCondition() if name.startswith("org.apache.spark.Spark") else None
        yield name, condition, java.getMessage() or ""
        java = java.getCause()
