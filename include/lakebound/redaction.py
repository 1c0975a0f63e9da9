"""What may be said about an error outside its application's log: never what a record holds.

Alerts, incidents, Airflow's logs and XComs are read by more people than the tables. Errors of Spark, Arrow and a transform
quote values ("The value 'x' cannot be cast to INT"), so only their kind is told. Pure.
"""

from __future__ import annotations

import re

from lakebound.errors import LakeboundError
from lakebound.first_line import first_line

WHERE_THE_REST_IS = "the application's log has the full message"
"""Of an error of an application, which logs it whole."""
TOLD_TO_ITS_CALLER = "the output of the command, or the log of its task, has the full message"
"""Of an error that is raised to a command or a task of Airflow."""
NOT_SHOWN = "its message is not shown, as it may quote a record or a secret"
"""Of an error that nobody logs whole: of looks, of rounds, and of what a command catches."""

_OF_THE_SYSTEM = frozenset({"confluent_kafka", "cimpl", "sqlite3", "sqlalchemy", "httpx", "psutil", "py4j", "pyiceberg"})
"""Packages whose errors are about connections, files, processes and metadata, and quote no record."""
_ABOUT_SPARK_ITSELF = frozenset({"Py4JNetworkError", "Py4JJavaError"})
_OS_ERROR = re.compile(r"\(os error \d+\)")
_CONDITION = re.compile(r"(?:^|(?:[Ee]xception|Error): )\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]", re.MULTILINE)
_JAVA_CLASS = re.compile(r"^(?:: |Caused by: )((?:[a-z][\w]*\.)+[A-Z]\w*(?:Exception|Error))\b", re.MULTILINE)
_IN_A_PATH = re.compile(r"(/[\w.%-]+)=[^/'\"\s]*")
"""A partition's folder: ``/status=paid``."""

_MOST_NAMES = 3

_OF_NAMES = frozenset(
    {"DATATYPE_MISMATCH", "FIELD_NOT_FOUND", "PARSE_SYNTAX_ERROR", "TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_COLUMN"}
    | {"UNRESOLVED_ROUTINE", "WRONG_NUM_ARGS", "INCOMPATIBLE_COLUMN_TYPE", "UNRESOLVED_FIELD"}
)
"""Conditions of Spark's that come up before any record is read: their messages quote names and code."""


def redacted(error: BaseException, rest: str = WHERE_THE_REST_IS) -> str:
    """Return a sentence on an error that quotes no record.

    Args:
        error: One of Lakebound's is told in full: its author has seen to it. So are those of the system (files, networks).
        rest: Where the whole message is, of one that is not told in full.
    """
    if isinstance(error, LakeboundError):
        return str(error)
    name, text = type(error).__name__, first_line(error)
    if _is_of_the_system(error) or _OS_ERROR.search(text):
        return f"{name}: {_IN_A_PATH.sub(lambda found: f'{found[1]}=…', text)}"
    return redacted_text(name, str(error), rest)


def redacted_text(name: str, message: str, rest: str = WHERE_THE_REST_IS) -> str:
    """Return what may be said about an error of which only its class's name and its message are at hand.

    Args:
        name: Of its class.
        message: Its whole message.
        rest: Where that message is.
    """
    # What Spark says of values stands in quotes, behind its conditions.
    head = re.split(r"['\"`]", message, maxsplit=1)[0]
    conditions = list(dict.fromkeys(_CONDITION.findall(head)))[:_MOST_NAMES]
    if conditions and conditions[-1].partition(".")[0] in _OF_NAMES:
        return f"{name}: {first_line(message)}"
    kinds = conditions or [found.rpartition(".")[2] for found in dict.fromkeys(_JAVA_CLASS.findall(message))][:_MOST_NAMES]
    of_kind = f" ({', '.join(kinds)})" if kinds else ""
    return f"{name}{of_kind}; {rest}"


def _is_of_the_system(error: BaseException) -> bool:
    if type(error).__name__ in _ABOUT_SPARK_ITSELF:
        return type(error).__name__ == "Py4JNetworkError"
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _OF_THE_SYSTEM
