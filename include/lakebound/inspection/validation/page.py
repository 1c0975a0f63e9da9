"""The page of one validated range, for a person. Pure.

Everything in it is text: values of records, names and errors are escaped, and the page's own policy lets a browser run and load
nothing, whatever stands in a record. Great Expectations' own Data Docs show values unescaped, and load scripts from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lakebound.inspection.validation.verdict import MAX_SAMPLES, ExpectationResult

_LONGEST_VALUE = 200
_LONGEST_MESSAGE = 2000
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em}table{border-collapse:collapse}"
    "th,td{border:1px solid #ccc;padding:.3em .6em;text-align:left;vertical-align:top}"
    "td.no{color:#b00020;font-weight:bold}code{white-space:pre-wrap;overflow-wrap:anywhere}"
)
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    f"base-uri 'none'; form-action 'none'"
)
"""Source: https://www.w3.org/TR/CSP3/. Only the page's own style applies."""

_COLUMNS = ("expectation", "holds", "severity", "rows", "not as expected", "where", "values", "in words")


def page_of(body: Mapping[str, Any], results: Sequence[ExpectationResult], skipped: Mapping[str, str]) -> str:
    """Return the page as HTML.

    Args:
        body: What is also kept as JSON: ``table``, ``versions``, ``rows`` and ``suites``, which Great Expectations answered.
        results: Each expectation's.
        skipped: Expectations that were not asked, with the reason.
    """
    answers = {_label(answer): answer for suite in body["suites"] for answer in suite.get("results", ())}
    versions = [str(version) for version in body["versions"]]
    span = " to ".join(dict.fromkeys((versions[0], versions[-1]))) if versions else "none"
    title = f"{body['table']}: versions {span}"
    passed = sum(result.passed for result in results)
    rows = "".join(f"<tr>{''.join(_cells(result, answers.get(result.label, {})))}</tr>" for result in results)
    left_out = "".join(f"<li>{_text(label)}: {_text(why)}</li>" for label, why in skipped.items())
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(_POLICY)}">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{_text(title)}</h1>"
        f"<p>{body['rows']:,} rows; {passed} of {len(results)} expectations hold.</p>"
        f"<table><tr>{''.join(f'<th>{name}</th>' for name in _COLUMNS)}</tr>{rows}</table>"
        f"{f'<h2>Not evaluated</h2><ul>{left_out}</ul>' if left_out else ''}"
        "</body></html>\n"
    )


def _cells(result: ExpectationResult, answer: Mapping[str, Any]) -> Iterator[str]:
    config = answer.get("expectation_config") or {}
    found = answer.get("result") or {}
    kind, notes = config.get("type", ""), config.get("notes") or ""
    values = [_value(value) for value in (found.get("partial_unexpected_list") or ())[:MAX_SAMPLES]]
    yield f"<td>{_text(result.label)}<br><code>{_text(kind)}</code></td>"
    yield "<td>yes</td>" if result.passed else '<td class="no">no</td>'
    yield f"<td>{_text(result.severity.value)}</td>"
    yield f"<td>{_number(result.checked)}</td><td>{_number(result.unexpected)}</td>"
    yield f"<td>{_lines(result.samples)}</td><td>{_lines(values)}</td>"
    said = [_notes(notes), "" if result.passed else result.sentence, *_details(answer)]
    yield f"<td>{_lines(part for part in said if part)}</td>"


def _details(answer: Mapping[str, Any]) -> Iterator[str]:
    """What results, findings and alerts do not tell, because records may be quoted in it."""
    observed = (answer.get("result") or {}).get("observed_value")
    if observed is not None:
        yield f"observed: {_value(observed)}"
    info = answer.get("exception_info") or {}
    every = [info] if "raised_exception" in info else list(info.values())
    for one in every:
        if isinstance(one, Mapping) and one.get("raised_exception"):
            yield str(one.get("exception_message"))[:_LONGEST_MESSAGE]


def _label(answer: Mapping[str, Any]) -> str:
    meta = (answer.get("expectation_config") or {}).get("meta") or {}
    return str(meta.get("label", ""))


def _notes(notes: Any) -> str:
    return notes if isinstance(notes, str) else "\n".join(str(line) for line in notes)


def _value(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= _LONGEST_VALUE else f"{shown[:_LONGEST_VALUE]}…"


def _lines(texts: Sequence[str] | Iterator[str]) -> str:
    return "<br>".join(f"<code>{_text(text)}</code>" for text in texts)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)
