"""How a validation application is started: for few rows otherwise than for many, and for a person otherwise than for a DAG."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.tables.validating import expectations, spec

from lakebound.inspection.validation.submission import QUICK_ROWS, validation_command, validation_conf, validation_orders
from lakebound.landing import background
from lakebound.landing.spark_command import QUICK_START
from lakebound.settings import Settings, load_settings

JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(load_settings(), home=tmp_path, warehouse=tmp_path / "lake", jvm_options="-Dmine=1")


@pytest.mark.parametrize(("rows", "is_quick"), [(0, True), (QUICK_ROWS, True), (QUICK_ROWS + 1, False), (None, False)])
def test_few_rows_do_without_the_second_compiler(settings: Settings, rows: int | None, is_quick: bool) -> None:
    options = validation_conf(validation_orders(spec(), settings, expectations(), "x", rows=rows), settings)[JAVA_OPTIONS]
    assert (QUICK_START in options) is is_quick
    assert "-XX:+UseSerialGC" in options and options.endswith("-Dmine=1"), "a person's own options win"


def test_only_a_run_that_nobody_waits_for_goes_behind_everything_else(settings: Settings) -> None:
    def command(is_waited_for: bool) -> list[str]:
        orders = validation_orders(spec(), settings, expectations(), "x", is_waited_for=is_waited_for)
        return validation_command(orders, settings)

    assert background.__file__ in command(False)
    waited_for = command(True)
    assert background.__file__ not in waited_for and waited_for[0].endswith("spark-submit")
