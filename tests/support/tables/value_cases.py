"""JSON values of every type that a schema may have: ordinary ones, those at the ends of their ranges, and wrong ones.

A case says what becomes of it where that follows from the type alone: the value that lands, or that none may land. Of others it
is only asked that all lanes do the same with them.
"""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

BAD, EITHER = "quarantined", "either"
"""Not landed; landed or not."""


@dataclass(frozen=True)
class Case:
    """A JSON value, and what becomes of it: ``("lands", value)``, BAD or EITHER."""

    text: bytes
    fate: Any = EITHER


def lands(value: Any) -> tuple[str, Any]:
    """Return the fate of a value that lands as this one."""
    return ("lands", value)


Cases = Callable[[random.Random], Iterator[Case]]

WRONG = rb"""
true [] {} [1] {"a":1} "" "\u0020" "x" "true" "1" "-1" "1.5" "200" 0 -0 1 1.5 1.0 1e2 -0.0 1e-400 1e400 -1e400 NaN Infinity
"NaN" "Infinity" "-INF" 9223372036854775808 111111111111111111111111111111111111111 "12:30" "2026-02-28" "now" "0000-00-00"
"2026-02-30" 1700000000000 1700000000000000 1700000000000000000 "\ud800" "\ude00" "AAEC" [[1]] {"a":{}} "\u0000" [null] 0x1 01
""".split()
"""Given to every type: most fit none but one."""


def whole(bits: int) -> Cases:
    """Return the cases of whole numbers of so many bits."""

    def cases(dice: random.Random) -> Iterator[Case]:
        top = 1 << bits - 1
        numbers = {
            0,
            1,
            -1,
            top - 1,
            top,
            -top,
            -top - 1,
            2 * top - 1,
            2 * top,
            top - 7,
            -top + 7,
            200,
            1 << 63,
            1 << 64,
            10**30,
        }
        numbers |= {dice.randint(-top, top - 1) for _ in range(6)} | {dice.randint(-4 * top, 4 * top) for _ in range(4)}
        for number in sorted(numbers):
            yield Case(b"%d" % number, lands(number) if -top <= number < top else BAD)
        for text in (b"true", b"1.5", b"1e2", b'"1"', b'"x"', b"[]", b"{}", b"NaN"):
            yield Case(text, BAD)

    return cases


def doubles(dice: random.Random) -> Iterator[Case]:
    """Yield the cases of DOUBLE."""
    edges = (0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3, 9007199254740993.0, 1e23)
    randoms = [struct.unpack("<d", dice.randbytes(8))[0] for _ in range(10)]
    for number in (*edges, *(-one for one in edges), *randoms):
        if number == number and abs(number) != float("inf"):
            yield Case(repr(number).encode(), lands(number))
    yield from (
        Case(text, BAD) for text in (b"1e400", b"-1e400", b"true", b'"x"', b'"Infinity"', b'"-INF"', b"NaN", b"[]", b"{}")
    )


def floats(dice: random.Random) -> Iterator[Case]:
    """Yield the cases of FLOAT; of those that it only holds nearly, any."""
    for number in (0.0, -0.0, 1.5, -0.25, 2.0**-149, 2.0**127, float(dice.randint(-(2**24), 2**24))):
        yield Case(repr(number).encode(), lands(number))
    yield from (Case(text, BAD) for text in (b"1e39", b"-1e39", b"1e400", b"true", b'"x"', b"[]"))
    yield from (Case(repr(dice.uniform(-1e38, 1e38)).encode()) for _ in range(5))


def decimals(precision: int, scale: int) -> Cases:
    """Return the cases of a DECIMAL: rounded half up to its scale, and bad where the digits before the point do not fit."""

    def fate(text: str) -> Any:
        with localcontext(Context(prec=900)):
            rounded = Decimal(text).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)
            return lands(rounded) if abs(rounded) < Decimal(10) ** (precision - scale) else BAD

    def cases(dice: random.Random) -> Iterator[Case]:
        digits = "9" * (precision - scale) or "0"
        texts = [digits + "." + "9" * scale if scale else digits, "1" + "0" * (precision - scale), digits + ".5", "0", "-0.0"]
        texts += [f"0.{'0' * scale}5", f"-0.{'0' * scale}5", "1" * 39, "1e30", "-1e-30"]
        texts += [
            f"{dice.choice(('', '-'))}{dice.randint(0, 10 ** dice.randint(0, 40))}.{dice.randint(0, 10**9)}" for _ in range(10)
        ]
        for text in texts:
            yield Case(text.encode(), fate(text))
        yield from (Case(text, BAD) for text in (b"true", b'"x"', b"[]", b"{}", b'"NaN"', b"NaN", b"1e400"))

    return cases


def booleans(dice: random.Random) -> Iterator[Case]:
    """Yield the cases of BOOLEAN."""
    yield from (Case(b"true", lands(True)), Case(b"false", lands(False)))
    yield from (Case(text, BAD) for text in (b"0", b"1", b'"true"', b'""', b"[]", b"{}", b"True"))


def texts(dice: random.Random) -> Iterator[Case]:
    """Yield the cases of STRING."""
    sixteenth = [15 * "a" + character for character in ("\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "é")]
    known = ["", " ", "a", "/", "a/b=c%2F", "..", "null", "NaN", "\x00", "\n\r\t", "\x7f", "__HIVE_DEFAULT_PARTITION__"]
    known += [*sixteenth, *(one + "tail" for one in sixteenth), 40 * "\U0010ffff", 16 * "\ud7ff", "é" * 130, "x" * 255]
    known += ["x" * 256, "x" * 4095, "x" * 4097, "é" * 2049, 5 * 1024 * "\U0001f600", "e\u0301", "\u00e9", "\u2028"]
    known += ["\ufeff", "12:30", "?", '"', "\\"]
    alphabet = "ab\u00df\u20ac\ud7ff\ue000\U0001f600\U0010ffff\x00/% "
    known += ["\U00020000", "\U0002fa1d" * 20]  # a surrogate pair that arrow-json 59 takes for another one
    known += ["".join(dice.choices(alphabet, k=dice.randint(1, 40))) for _ in range(10)]
    for text in known:
        yield Case(json.dumps(text, ensure_ascii=dice.random() < 0.5).encode(), lands(text))
    halves = (rb'"\ud800"', rb'"a\udfffb"', rb'"\udc00\ud800"', rb'"\ud83d\\ude00"', rb'"\uD83D\u0041"')
    halves = (*halves, rb'"\\ud83d\ude00"')
    yield from (Case(text, BAD) for text in (*halves, b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"'))
    whole_ones = {rb'"\\ud800"': "\\ud800", rb'"\ud83d\ude00"': "\U0001f600", rb'"\\\uD83D\uDE00"': "\\\U0001f600", b"7": "7"}
    whole_ones |= {text: text.decode() for text in (b"[1, 2]", b"1e400", b"-1.5E+999", b"100.00", b"12345678901234567.89")}
    whole_ones |= {text: text.decode() for text in (b'{"a":1e400}', b'{ "b" : [1.10] }', b"true", b"-0")}
    yield from (Case(text, lands(value)) for text, value in whole_ones.items())
    yield from (
        Case(b'"\x01"'),
        Case(rb'"\"Infinity\""', lands('"Infinity"')),
    )


def binaries(dice: random.Random) -> Iterator[Case]:
    """Yield the cases of BINARY, which is base64 in JSON."""
    for value in (b"", b"\x00", b"\xff" * 300, b"x" * 5000, dice.randbytes(20)):
        yield Case(b'"' + base64.b64encode(value) + b'"', lands(value))
    yield from (Case(text, BAD) for text in (b'"!"', b"1", b"true", b"[]"))


def _days(dice: random.Random) -> list[date]:
    edges = [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(1970, 1, 1), date(1582, 10, 4), date(1582, 10, 15)]
    edges += [date(1900, 2, 28), date(2000, 2, 29), date(2262, 4, 12), date(1677, 9, 20)]
    return edges + [date.fromordinal(dice.randint(1, date.max.toordinal())) for _ in range(8)]


STRANGE_TIMES = b"""
"0000-12-31" "-0001-01-01" "10000-01-01" "+12026-02-28" "12:30" "12:30:15.5" "T12:30" "2026-02-30" "now" "today" "yesterday"
"200" "19723" "2026-02-28x" true [] {} "28.02.2026" 1.5
""".split()
"""No type of dates and times holds one of them."""


def dates(dice: random.Random) -> Iterator[Case]:
    """Yield the cases of DATE."""
    yield from (Case(b'"%s"' % day.isoformat().encode(), lands(day)) for day in _days(dice))
    yield from (Case(text, BAD) for text in (*STRANGE_TIMES, b"200", b'"2026-02-28Tx"', b"1700000000000"))
    yield from (Case(text, lands(date(2026, 2, 3))) for text in (b'"2026-2-3"', b'" 2026-02-03"', b'"2026-02-03T10:00:00Z"'))


def timestamps(*, zoned: bool) -> Cases:
    """Return the cases of TIMESTAMP, or of TIMESTAMP_NTZ."""

    def cases(dice: random.Random) -> Iterator[Case]:
        clock = [timedelta(0), timedelta(hours=23, minutes=59, seconds=59, microseconds=999_999)]
        clock += [timedelta(microseconds=dice.randrange(86_400_000_000)) for _ in range(2)]
        zone, mark = (UTC, "Z") if zoned else (None, "")
        for day in _days(dice):
            for since in clock:
                at = datetime.combine(day, datetime.min.time()) + since
                yield Case(f'"{at.isoformat(sep=dice.choice("T "))}{mark}"'.encode(), lands(at.replace(tzinfo=zone)))
        yield from (Case(text, BAD) for text in STRANGE_TIMES)
        first, last = -62_135_596_800, 253_402_300_799
        for number in (0, -1, 1_700_000_000, first, last, first - 1, last + 1):
            at = datetime(1970, 1, 1, tzinfo=UTC)
            fits = zoned and first <= number <= last
            yield Case(b"%d" % number, lands(at + timedelta(seconds=number)) if fits else BAD)
        for number in (1_700_000_000, -1_700_000_000, dice.randrange(1_000_000_000, 4_000_000_000)):
            for finer in (1000, 10**6, 10**9):
                yield Case(b"%d" % (number * finer), BAD)
        yield from (
            Case(text) for text in (b'"2026-02-28T10:00:00+01:00"', b'"0001-01-01T00:00:00+18:00"', b'"2026-02-28T24:00:00Z"')
        )

    return cases


def within(form: bytes, cases: Cases, shape: Callable[[Any], Any]) -> Cases:
    """Return cases with each value inside of another one.

    Args:
        form: With ``%s`` where the value goes.
        cases: Of the value.
        shape: Makes the value that lands of the one inside.
    """

    def wrapped(dice: random.Random) -> Iterator[Case]:
        for case in cases(dice):
            fate = lands(shape(case.fate[1])) if isinstance(case.fate, tuple) else case.fate
            yield Case(form % case.text, fate)

    return wrapped


def map_keys(dice: random.Random) -> Iterator[Case]:
    """Yield maps whose keys are strange."""
    yield from (
        Case(b'{"a":1,"a":2}', BAD),
        Case(b'{"":1}', lands([("", 1)])),
        Case(b'{"a":1,"b":null}', lands([("a", 1), ("b", None)])),
    )
    yield Case(b'{"1700000000000":1}', lands([("1700000000000", 1)]))


SCALARS: dict[str, Cases] = {
    "TINYINT": whole(8),
    "SMALLINT": whole(16),
    "INT": whole(32),
    "BIGINT": whole(64),
    "FLOAT": floats,
    "DOUBLE": doubles,
    "DECIMAL(5,2)": decimals(5, 2),
    "DECIMAL(18,0)": decimals(18, 0),
    "DECIMAL(38,38)": decimals(38, 38),
    "DECIMAL(38,10)": decimals(38, 10),
    "BOOLEAN": booleans,
    "STRING": texts,
    "BINARY": binaries,
    "DATE": dates,
    "TIMESTAMP": timestamps(zoned=True),
    "TIMESTAMP_NTZ": timestamps(zoned=False),
}
NESTED: dict[str, Cases] = {
    "ARRAY<TINYINT>": within(b"[1,%s]", whole(8), lambda value: [1, value]),
    "ARRAY<TIMESTAMP>": within(b"[null,%s]", timestamps(zoned=True), lambda value: [None, value]),
    "ARRAY<STRING>": within(b"[%s]", texts, lambda value: [value]),
    "MAP<STRING, DATE>": within(b'{"k":%s}', dates, lambda value: [("k", value)]),
    "MAP<STRING, BIGINT>": map_keys,
    "STRUCT<a: DOUBLE, b: STRING>": within(b'{"a":%s}', doubles, lambda value: {"a": value, "b": None}),
    "STRUCT<t: STRUCT<u: TIMESTAMP, w: STRING>>": within(
        b'{"t":{"u":%s}}', timestamps(zoned=True), lambda value: {"t": {"u": value, "w": None}}
    ),
    "ARRAY<STRUCT<a: TINYINT, d: DECIMAL(5,2)>>": within(
        b'[{"d":%s}]', decimals(5, 2), lambda value: [{"a": None, "d": value}]
    ),
}

_NO_RECORDS = rb"""
null 5 [] "x" {"a":1 {"a":1}} {"a":1}{} {,} {"a":tru} {"zz":01} {"zz":"\ud800"} {"\ude00":1} {"zz":[1,]} {"zz":"\x"}
""".split()
_RECORDS = b"""
{} {"zz":1} {"zz":1e400} {'zz':1} {"":1} {"zz":1,"zz":2} {zz:1} /**/{} {"zz":{"a":[1,2.5e3,null,true]}}
{"_corrupt_record":"x"} {"_corrupt_record":{"p":1}} {"P":1,"V0":1} {"_kafka":{"offset":7}} {"_problem":"x","_parsed":1}
""".split()
RECORDS: tuple[tuple[bytes | None, Any], ...] = (
    *((record, BAD) for record in (*_NO_RECORDS, None, b"", b" ", b"\xff", b'\xef\xbb\xbf{"a":1}x', b'{"a":"\xff"}')),
    (b'{"zz":' + b"[" * 2000 + b"]" * 2000 + b"}", BAD),
    *((record, EITHER) for record in (*_RECORDS, b" \n{ } ", b'{"zz":"\x01"}', b'\xef\xbb\xbf{"zz":1}', b"{}\x00")),
    (b'{"zz":' + b"1" * 1200 + b"}", EITHER),
)
"""Whole records that hold no value of the schema, and their fates."""


def cases_of(kind: str, dice: random.Random) -> list[Case]:
    """Return all cases of a type, the values that are wrong for most of them among these."""
    own = [*{**SCALARS, **NESTED}[kind](dice), Case(b"null", lands(None))]
    return [*own, *(Case(text) for text in WRONG)]
