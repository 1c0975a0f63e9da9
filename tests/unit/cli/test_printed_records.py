"""What commands print of records: no control character reaches a terminal, and ``--json`` is valid JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.streams.command_line import lakebound, settings

from lakebound.cli import trial
from lakebound.cli.output import print_json, print_rows, printable, say, show
from lakebound.errors import LakeboundError
from lakebound.settings import Settings

__all__ = ["settings"]

# Clears the screen, rings, goes back over the line, sets the window's title, and writes from right to left.
HOSTILE = "a\x1b[2J\x07\r\x9b31mb\u202ec"
ESCAPED = r"a\x1b[2J\x07\r\x9b31mb\u202ec"


def trial_body(value: Any, error: str) -> dict[str, Any]:
    """Return what Spark says of one record that fits and one that does not."""
    example = {"topic": "orders", "partition": 0, "offset": 7, "error": error}
    columns = [["text", "string"], ["list", "array"], ["number", "double"]]
    row = {"text": value, "list": [value], "number": float("nan")}
    return {
        "problems": [],
        "warnings": [f"about {value}"],
        "schemas": [],
        "read": 2,
        "landed": 1,
        "filtered": 0,
        "bad": 1,
        "rows": 1,
        "ranges": [["orders", 0, 6, 8]],
        "reasons": [{"reason": "does_not_fit", "records": 1, "examples": [example]}],
        "tables": {"delta:lake.orders": {"columns": columns, "partition_by": [], "changes": [], "rows": [row]}},
    }


def refuse(constant: str) -> None:
    """Read JSON as a strict parser does."""
    raise AssertionError(f"{constant} is no JSON")


def test_text_keeps_letters_and_lines_and_loses_what_moves_the_cursor() -> None:
    assert printable(HOSTILE) == ESCAPED
    assert printable("für 東京\u3000\u00a0\n  next") == "für 東京\u3000\u00a0\n  next"
    assert printable("one\ntwo\tthree", lines=False) == r"one\ntwo\tthree"
    assert printable("java.lang.Error\n\tat org.apache.spark") == "java.lang.Error\n\tat org.apache.spark"
    assert printable("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645") == "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert printable("half \ud83d") == r"half \ud83d"


def test_every_way_to_print_escapes_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    show(f"{HOSTILE}\nmore")
    print_rows(["A"], [[HOSTILE]])
    printed = capsys.readouterr()
    assert printed.err == f"{ESCAPED}\n"
    assert printed.out.startswith(f"{ESCAPED}\nmore\n")
    assert printed.out.count(ESCAPED) == 2


def test_a_trial_shows_records_without_their_control_characters(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "try_pipeline", lambda *_, **__: trial_body(HOSTILE, f"n: '{HOSTILE}' is"))
    told = lakebound("try", "orders").stdout
    assert not [char for char in told if not char.isprintable() and char != "\n"]
    assert f"warning: about {ESCAPED}" in told and f"n: '{ESCAPED}' is" in told


def test_a_row_that_is_cut_is_not_cut_inside_an_escape(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "try_pipeline", lambda *_, **__: trial_body("x" * 39 + "\x1b" + "y", "e"))
    assert "x" * 39 + r"\x1b..." in lakebound("try", "orders").stdout


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_text(
    value: float, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    print_json({"deep": [{"in": (value, 1.5)}], str(value): value})
    assert json.loads(capsys.readouterr().out, parse_constant=refuse) == {
        "deep": [{"in": [str(value), 1.5]}],
        str(value): str(value),
    }
    monkeypatch.setattr(trial, "try_pipeline", lambda *_, **__: trial_body(value, "e"))
    told = json.loads(lakebound("try", "orders", "--json").stdout, parse_constant=refuse)
    assert told["tables"]["delta:lake.orders"]["rows"] == [{"text": str(value), "list": [str(value)], "number": "nan"}]


def test_an_error_that_quotes_a_record_is_printed_without_its_control_characters(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LakeboundError(f"the record {HOSTILE} is not JSON")

    monkeypatch.setattr(trial, "try_pipeline", fail)
    assert lakebound("try", "orders", code=1).stderr.endswith(f"lakebound: the record {ESCAPED} is not JSON\n")
