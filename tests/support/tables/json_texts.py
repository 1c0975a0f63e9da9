"""JSON that the driver decodes by itself, JSON that it must leave to Spark, and what random changes make of both."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from lakebound.spec.pipeline import PipelineSpec
from tests.support.streams.stand_ins import ORDERS

SCHEMA = (
    "id STRING NOT NULL, n INT, big BIGINT, d DOUBLE, ok BOOLEAN, small TINYINT, at TIMESTAMP, "
    "items ARRAY<STRUCT<sku: STRING, price: DOUBLE, tags: ARRAY<STRING>>>, place STRUCT<x: DOUBLE, `odd name`: STRING>, "
    "amount DECIMAL(5,2), total DECIMAL(38,0), share DECIMAL(38,38), day DATE, f FLOAT, wall TIMESTAMP_NTZ, "
    "labels MAP<STRING, STRING>, prices MAP<STRING, DECIMAL(5,2)>, days MAP<STRING, STRUCT<day: DATE, at: TIMESTAMP>>, "
    "lines ARRAY<STRUCT<amount: DECIMAL(9,3), day: DATE, at: TIMESTAMP, `größe`: MAP<STRING, ARRAY<TIMESTAMP_NTZ>>>>, "
    "grid ARRAY<ARRAY<DECIMAL(5,2)>>"
)
PLAIN: list[bytes] = [
    b'{"id":"a"}',
    b' {"id" : "a" }\n',
    b'{"id":"a","id":"b"}',
    b'{"id":"a","n":1,"n":null}',
    b'{"id":"a","n":-2147483648,"big":9223372036854775807,"small":-128}',
    b'{"id":"a","d":-0}',
    b'{"id":"a","d":-0.0}',
    b'{"id":"a","d":7}',
    b'{"id":"a","d":0.1}',
    b'{"id":"a","d":1.7976931348623157e308}',
    b'{"id":"a","d":5e-324}',
    b'{"id":"a","d":12345678901234567890123}',
    b'{"id":"a","d":9007199254740993}',
    b'{"id":"a","d":123456789.123456789123456789}',
    b'{"id":"a","ok":true}',
    b'{"id":"\\u00e9\\u20ac\\ud83d\\ude00 \\" \\\\ \\/ \\b"}',
    '{"id":"é€😀"}'.encode(),
    b'{"id":"a\\u0000b"}',
    b'{"id":""}',
    b'{"id":"a","at":"2026-02-28T23:59:59.123456Z"}',
    b'{"id":"a","at":"2026-02-28 23:59:59"}',
    b'{"id":"a","at":"2026-02-28T23:59:59.123456+00:00"}',
    b'{"id":"a","at":"2026-03-01T00:30:00+17:59"}',
    b'{"id":"a","lines":[{"at":"2026-02-28 10:00:00.5-11:30"},{"at":"2026-02-28T10:00:00Z"},{"at":null}]}',
    b'{"id":"a","at":"1999-12-31T00:00:00.5"}',
    b'{"id":"a","at":null}',
    b'{"id":"a","items":[{"sku":"x","price":1,"tags":["p",null]},{"price":null},null],"place":{"x":1.5,"odd name":"y"}}',
    b'{"id":"a","items":[],"place":{}}',
    b'{"id":"a","place":{"unknown":[1,{"x":2}],"x":3}}',
    b'{"id":"a","unknown":{"deep":[1,2.5e3,"\\u0041",null,true]}}',
    b'{"id":"a","amount":-0,"total":-99999999999999999999999999999999999999,"share":0.1}',
    b'{"id":"a","amount":999.99,"share":-0.00000000000000000000000000000000000001}',
    b'{"id":"a","amount":1.005,"total":0.5}',
    b'{"id":"a","amount":-1.005,"total":-0.49}',
    b'{"id":"a","amount":999.994999}',
    b'{"id":"a","total":-999999999999999999999999999999999.4999}',
    b'{"id":"a","total":999999999999999999999999999999999.9999}',
    b'{"id":"a","amount":"12.30"}',
    b'{"id":"a","amount":null,"amount":1,"day":null}',
    b'{"id":"a","amount":1,"unknown":{"amount":"amount"}}',
    b'{"id":"a","am\\u006funt":1.50}',
    b'{"id":"a","day":"0001-01-01","f":0.1}',
    b'{"id":"a","day":"1582-10-10","f":16777216}',
    b'{"id":"a","day":"2024-02-29","f":-1.1754944e-38,"wall":"2026-02-28T23:59:59.5"}',
    b'{"id":"a","labels":{"a":"b","":null,"c":"a"},"prices":{"x":1.5,"y":null}}',
    b'{"id":"a","labels":{},"prices":{}}',
    b'{"id":"a","labels":null}',
    b'{"id":"a","labels":{"a":"1","a":"2"},"labels":{}}',
    b'{"id":"a","days":{"a":{"day":"2026-02-28","at":"2026-02-28T00:00:00Z"},"b":null,"c":{}}}',
    b'{"id":"a","lines":[{"amount":1.0005,"day":"2026-02-28","at":"2026-02-28 00:00:00"},null,{},{"day":null}]}',
    b'{"id":"a","grid":[[1,null],null,[]]}',
    '{"id":"a","lines":[{"größe":{"x":["2026-02-28T00:00:00",null],"y":null,"z":[]}}]}'.encode(),
    b'{"id":"a","lines":[{"gr\\u00f6\\u00dfe":{"x":["2026-02-28T00:00:00"]}}]}',
]
DOUBTFUL: list[bytes] = [
    b"",
    b"5",
    b"null",
    b"[]",
    b'[{"id":"a"}]',
    b'{"id":"a",}',
    b'{"id":"a"}{"id":"b"}',
    b'{"id":"a"} x',
    b'{"id":"a"}]',
    b'{"id":"a"}],[{"id":"b"}',
    b'{"id":"a","items":[{"sku":"x"}]}]',
    b"{'id':'a'}",
    b'{"id":7}',
    b'{"id":null}',
    b"{}",
    b'{"id":"a","n":1.0}',
    b'{"id":"a","n":1e2}',
    b'{"id":"a","n":2147483648}',
    b'{"id":"a","n":"1"}',
    b'{"id":"a","d":1e400}',
    b'{"id":"a","d":"NaN"}',
    b'{"id":"a","d":NaN}',
    b'{"id":"a","ok":1}',
    b'{"id":"\\ud800"}',
    b'{"id":"\xff"}',
    b'{"id":"a","unknown":"\xff"}',
    b'{"id":"a","\xff":1}',
    b'{"id":"a","unknown":tru}',
    b'{"id":"a","unknown":01}',
    b'{"id":"a","unknown":"\x01"}',
    b'{"id":"a","d":' + b"1" * 1200 + b"}",
    b'{"id":"a","unknown":' + b"1" * 1200 + b"}",
    b'{"id":"a","unknown":' + b"[" * 1200 + b"]" * 1200 + b"}",
    b'{"id":"a","at":"2026-02-30T00:00:00Z"}',
    b'{"id":"a","at":"2026-02-28T24:00:00Z"}',
    b'{"id":"a","at":"2026-02-28T23:59:60Z"}',
    b'{"id":"a","at":"2026-02-28T10:00:00+18:00"}',
    b'{"id":"a","at":"2026-02-28T10:00:00+0100"}',
    b'{"id":"a","wall":"2026-02-28T10:00:00+01:00"}',
    b'{"id":"a","at":"2026-02-28"}',
    b'{"id":"a","at":1767225600}',
    b'{"id":"a","items":{}}',
    b'{"id":"a","place":[]}',
    b'{"id":"a","amount":1e2}',
    b'{"id":"a","amount":1e999999999}',
    b'{"id":"a","amount":1000}',
    b'{"id":"a","amount":999.995}',
    b'{"id":"a","total":99999999999999999999999999999999999999.5}',
    b'{"id":"a","amount":"1,5"}',
    b'{"id":"a","amount":" 1"}',
    b'{"id":"a","amount":"null"}',
    b'{"id":"a","share":1}',
    b'{"id":"a","day":"2026-2-3"}',
    b'{"id":"a","day":"2026-02-03T00:00:00Z"}',
    b'{"id":"a","day":"0000-01-01"}',
    b'{"id":"a","day":20260203}',
    b'{"id":"a","f":1.00000005960464477539062500001}',
    b'{"id":"a","f":16777217}',
    b'{"id":"a","f":3.4028236e38}',
    b'{"id":"a","f":7e-46}',
    b'{"id":"a","wall":"2026-02-28T23:59:59Z"}',
    b'{"id":"a","labels":{"a":"1","a":"1"}}',
    b'{"id":"a","labels":{"a":"1","\\u0061":"2"}}',
    b'{"id":"a","labels":[]}',
    b'{"id":"a","lines":[{"at":"12:30"}]}',
    b'{"id":"a","days":{"a":{"at":1767225600000}}}',
    b'{"id":"a","at":"12h","at":"2026-02-28T00:00:00Z"}',
    b'{"id":"a","\\u0061t":"12h","at":"2026-02-28T00:00:00Z"}',
    b'{"id":"a","at":"12h","\\u0061t":"2026-02-28T00:00:00Z"}',
    b'{"id":"a","amount":1000,"amount":1}',
    b'{"id":"a","days":{"a":{"at":"12h"}},"days":{}}',
    b'{"id":"a","grid":[[1000]],"grid":[]}',
]
STRANGE: list[bytes] = rb"""
0 -0 1 7 -1.5 0.5 0.05 0.005 999.99 999.994 999.995 -999.995 1000 123456.7895 1.00000000000000000000000000000000000001
1e2 1E-2 1e400 1e-400 1e999999999 1e-999999999 01 +1 1. .5 NaN Infinity -Infinity "NaN" "Infinity" "1.5" "-0" "+1.5"
"007" "1,5" "1e2" "" "x" "1.5f" "0x1" "\u0031" "null" null true [] {} 16777217 0.1 3.4028235e38 3.4028236e38 7e-46
99999999999999999999999999999999999999 99999999999999999999999999999999999999.5 100000000000000000000000000000000000000
0.99999999999999999999999999999999999999 0.999999999999999999999999999999999999995 "12.34"
"99999999999999999999999999999999999999" "2026-02-28" "2026-02-30" "1900-02-29" "1582-10-10" "0000-01-01" "0001-01-01"
"9999-12-31" "10000-01-01" "-0001-01-01" "+2026-01-01" "2026-2-3" "2026-02" "2026" "20260228" "2026-02-28Z"
"2026-02-28T10:00:00Z" "2026-02-28T10:00:00" "2026-02-28T24:00:00" "12:30" "now" "2026-02-28T10:00:00.123456Z"
"2026-02-28T10:00:00.1234567Z" "2026-02-28T10:00:00+01:00"
"2026-02-28T10:00:00-00:00" "2026-02-28T10:00:00.5-17:59" "2026-02-28T10:00:00+18:00" "2026-02-28T10:00:00+18:01"
"2026-02-28T10:00:00+1:00" "2026-02-28T10:00:00+01" "2026-02-28T10:00:00+0100" "2026-02-28T10:00:00+01:60"
"2026-02-28T10:00:00Z+01:00" "2026-02-28T10:00:00+01:00:30" "2026-02-28T24:00:00+01:00"
"1582-10-10T00:00:00" 1700000000000 19723 {"a":1}
{"a":"1","b":"2"} {"a":1,"a":2} {"a":"1","\u0061":"1"} {"a":null} {"":1} {"a":{"day":"2026-02-28"}} {"a":{"at":"12:30"}}
{"a":{"at":"x"},"b":{"at":"2026-02-28T10:00:00Z"}} [null] [[1.5]] [[1.005,null],[]] [{"amount":1.0005}]
[{"amount":1,"amount":1e9}] [{"amount":1e9,"amount":1}] [{"day":"2026-02-28","at":"2026-02-28T10:00:00Z"}] [{"at":"1"}]
[{"at":null,"at":"2026-02-28T10:00:00Z"}]
""".split()
STRANGE += [b'" 1"', b'"1 "', b'"2026-02-28 "', b'" 2026-02-28"', b'"\\u0661"']
STRANGE += [text.encode() for text in ('"١.٥"', '"2026‐02‐28"', '"٢026-02-28"')]
STRANGE += ['{"größe":{"x":["2026-02-28T10:00:00"]}}'.encode(), '[{"größe":{"x":["2026-02-28T10:00:00"],"y":null}}]'.encode()]
LATER = ("at", "amount", "total", "share", "day", "f", "wall", "labels", "prices", "days", "lines", "grid")
"""Columns whose values have checks of their own."""


def mutations(seed: int, count: int) -> list[bytes]:
    """Plain values with a few bytes changed, cut out or put in: mostly broken, some not, some in ways nobody thinks of."""
    dice = random.Random(seed)
    pieces = [
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"0",
        b"-",
        b".",
        b"e",
        b"1",
        b"\\",
        b" ",
        b"\xc3",
        b"null",
        b"true",
        b"\n",
    ]
    made = []
    for _ in range(count):
        value = bytearray(dice.choice(PLAIN))
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(len(value) + 1)
            value[at : at + dice.randint(0, 2)] = dice.choice(pieces)
        made.append(bytes(value))
    return made


def strange_values(seed: int) -> list[bytes]:
    """Each strange value in each column, and pairs of them under one name: written alike, and with an escape."""
    dice = random.Random(seed)
    made = [b'{"id":"a","%s":%s}' % (name.encode(), text) for name in LATER for text in STRANGE]
    for _ in range(2_000):
        name = dice.choice(LATER)
        names = [name.encode(), dice.choice((name, f"\\u{ord(name[0]):04x}{name[1:]}")).encode()]
        dice.shuffle(names)
        pairs = b",".join(b'"%s":%s' % (one, dice.choice(STRANGE)) for one in names)
        made.append(b'{"id":"a",%s}' % pairs)
    return made


def spec_of(**value: Any) -> PipelineSpec:
    return PipelineSpec.model_validate({**ORDERS, "value": {"format": "json", "schema": SCHEMA, **value}})


def texts(rows: pa.Table) -> list[str]:
    """Each row as text."""
    return [repr(row) for row in rows.to_pylist()]
