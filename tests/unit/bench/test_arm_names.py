"""The name of an arm says who lands the records, and what is done with them."""

from __future__ import annotations

import argparse

import pytest
from arm_names import ArmName, parse
from compare import MATRIX, load_named, wanted


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ("lakebound:both:0ms", ArmName("lakebound", ("both", "0ms"))),
        ("lakebound:iceberg:0ms:encode", ArmName("lakebound", ("iceberg", "0ms"), "encode")),
        ("lakebound:iceberg:0ms:spark", ArmName("lakebound", ("iceberg", "0ms"), "plain", "spark")),
        ("lakebound:delta:1s:enrich:spark", ArmName("lakebound", ("delta", "1s"), "enrich", "spark")),
        ("flink:250ms:dirty", ArmName("flink", ("250ms",), "dirty")),
        ("lakebound:iceberg:0ms:protobuf", ArmName("lakebound", ("iceberg", "0ms"), "protobuf")),
        ("connect:1000ms:dirty", ArmName("connect", ("1000ms",), "dirty")),
        ("spark:delta:tuned", ArmName("spark", ("delta",), "plain", "tuned")),
    ],
)
def test_a_name_is_read(arm: str, said: ArmName) -> None:
    assert parse(arm) == said


@pytest.mark.parametrize(
    "arm",
    [
        *("nobody:1s", "flink", "flink:", "lakebound:iceberg", "lakebound::0ms"),
        *("flink:1s:plain", "flink:1s:other", "flink:1s:spark", "flink:1s:encode:dirty", "lakebound:iceberg:0ms:spark:encode"),
        *("connect:1000ms:encode", "connect:1000ms:enrich", "spark:delta:encode", "flink:1s:protobuf"),
    ],
)
def test_another_name_is_refused(arm: str) -> None:
    with pytest.raises(SystemExit, match=f"no arm '{arm}'"):
        parse(arm)


def test_every_arm_of_the_benchmark_has_such_a_name() -> None:
    works = {parse(arm).work for arms in MATRIX.values() for arm in arms}
    assert works == {"encode", "enrich", "dirty", "avro", "protobuf", "plain"}


def test_a_load_is_chosen_by_name_and_a_run_that_was_made_is_not_made_again() -> None:
    load = load_named("2000-2-180")
    asked = argparse.Namespace(arms=["a", "b"], load=[load], rate=None, repeats=2, seconds=180)
    made = [
        {"arm": "a", "load": vars(load), "repeat": 0, "seconds": 180},
        {"arm": "b", "load": vars(load), "repeat": 0, "seconds": 20},
    ]
    assert list(wanted(asked, made)) == [("b", load, 0), ("a", load, 1), ("b", load, 1)]
    with pytest.raises(argparse.ArgumentTypeError, match="no load '2000-3-180'; the loads are 2000-2-180, "):
        load_named("2000-3-180")
