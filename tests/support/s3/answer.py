"""Answers, and their XML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from urllib.parse import quote
from xml.sax.saxutils import escape

from tests.support.s3.s3_error import S3Error

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


@dataclass(frozen=True)
class Answer:
    """What is sent back."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def element(name: str, *inside: str) -> str:
    """Return an element around other elements, which are not escaped."""
    return f"<{name}>{''.join(inside)}</{name}>"


def text(name: str, value: object) -> str:
    """Return an element around text."""
    return element(name, escape(str(value), {"\r": "&#13;"}))


def document(name: str, *inside: str) -> Answer:
    """Return the answer that holds one document."""
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{_NAMESPACE}">{"".join(inside)}</{name}>'
    return Answer(200, {"Content-Type": "application/xml"}, body.encode())


def refusal(error: S3Error, resource: str) -> Answer:
    """Return the answer that says an error."""
    body = '<?xml version="1.0" encoding="UTF-8"?>\n' + element(
        "Error", text("Code", error.code), text("Message", error.message), text("Resource", resource), text("RequestId", "0")
    )
    return Answer(error.status, {"Content-Type": "application/xml"}, body.encode())


def iso(at: datetime) -> str:
    """Return a time as lists tell it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def http_date(at: datetime) -> str:
    """Return a time as headers tell it."""
    return format_datetime(at, usegmt=True)


def encoder(query: Mapping[str, str]) -> Encoder:
    """Return how keys are written in a list that is asked for with this query."""
    return Encoder(query.get("encoding-type") == "url")


@dataclass(frozen=True)
class Encoder:
    """Writes keys in lists: as they are, or encoded as in an address."""

    as_url: bool

    def text(self, name: str, key: str) -> str:
        """Return an element around a key."""
        return text(name, quote(key, safe="/") if self.as_url else key)

    def named(self) -> str:
        """Return the element that says the encoding."""
        return text("EncodingType", "url") if self.as_url else ""
