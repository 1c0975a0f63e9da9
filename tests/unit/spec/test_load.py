"""Reading pipeline files: variables, several files, and what a wrong one must not hide."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.streams.pipeline_files import RIGHT, settings, write
from tests.support.waiting import HANGS_SECONDS

from lakebound.errors import InvalidSpecError, UnknownPipelineError
from lakebound.settings import Settings, load_settings
from lakebound.spec.load import load_file, load_pipeline, load_pipelines

__all__ = ["settings"]
REPOSITORY = Path(__file__).parents[3]


def test_variables_are_replaced_below_connection_only(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_KAFKA", "not-this-one:1")
    monkeypatch.setenv("KAFKA_TLS", "true")
    monkeypatch.setenv("LAKEBOUND_VARIABLES", "OTHER, KAFKA_TLS")
    text = RIGHT.replace(
        "value:",
        "  tls: ${KAFKA_TLS}\n  tls_ca_file: ${LAKEBOUND_NOWHERE:-/etc/lakebound}/ca.pem\n"
        "description: costs ${KAFKA_TLS}\nvalue:",
    )
    spec = load_file(write(settings, text), settings)
    assert spec.connection.bootstrap_servers == "kafka:9092"
    assert spec.connection.tls is True
    assert spec.connection.tls_ca_file == "/etc/lakebound/ca.pem"
    assert spec.description == "costs ${KAFKA_TLS}"


@pytest.mark.parametrize("name", ["LAKEBOUND_JVM_OPTIONS", "LAKEBOUND_SPARK_SETTINGS"])
def test_texts_of_the_operator_are_no_variables_unless_they_are_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "-Dpassword=hunter2")
    text = RIGHT.replace("value:", f"  tls_ca_file: ${{{name}}}/ca.pem\nvalue:")
    with pytest.raises(InvalidSpecError, match=f"may not be read here; .*LAKEBOUND_VARIABLES={name}$"):
        load_file(write(settings, text), settings)
    monkeypatch.setenv("LAKEBOUND_VARIABLES", name)
    assert load_file(write(settings, text), settings).connection.tls_ca_file == "-Dpassword=hunter2/ca.pem"


def test_anchors_and_merged_keys_work(settings: Settings) -> None:
    text = RIGHT.replace("  - format: delta\n", "  - &table\n    format: delta\n") + "  - {<<: *table, format: iceberg}\n"
    assert [table.id for table in load_file(write(settings, text), settings).tables] == [
        "delta:sales.orders",
        "iceberg:sales.orders",
    ]


def test_a_wrong_file_hides_no_other(settings: Settings) -> None:
    write(settings, RIGHT)
    wrong = write(settings, "pipeline: [", "wrong.yaml")
    (settings.pipelines / "folder.yaml").mkdir()
    (settings.pipelines / "notes.md").write_text("not a pipeline")
    loaded = load_pipelines(settings)
    assert list(loaded.specs) == ["orders"]
    assert sorted(path.name for path in loaded.mistakes) == ["folder.yaml", "wrong.yaml"]
    assert len(loaded.problems) == 2 and any(f"{wrong}:1: " in problem for problem in loaded.problems)


def test_a_target_topic_in_two_files_is_refused_in_both(settings: Settings) -> None:
    to_topics = "to_topics:\n  - topic: sales.clean\n"
    write(settings, RIGHT + to_topics)
    other = RIGHT.replace("pipeline: orders", "pipeline: more").replace("sales.orders", "sales.more")
    write(settings, other + to_topics, "more.yaml")
    loaded = load_pipelines(settings)
    assert not loaded.specs and not loaded.contested
    line = RIGHT.count("\n") + 1
    assert loaded.problems == [
        f"{settings.pipelines}/more.yaml:{line}: target topic sales.clean at kafka:9092 is also named in orders.yaml",
        f"{settings.pipelines}/orders.yaml:{line}: target topic sales.clean at kafka:9092 is also named in more.yaml",
    ]


def test_a_table_in_two_files_is_refused_in_both(settings: Settings) -> None:
    write(settings, RIGHT)
    write(settings, RIGHT.replace("pipeline: orders", "pipeline: more"), "more.yaml")
    write(settings, RIGHT.replace("pipeline: orders", "pipeline: third").replace("sales.orders", "sales.third"), "third.yaml")
    loaded = load_pipelines(settings)
    assert list(loaded.specs) == ["third"]
    way_out = "only one pipeline may write to a table: name another table in the file of the pipeline that did not create it"
    assert loaded.problems == [
        f"{settings.pipelines}/more.yaml:10: table delta:sales.orders is also named in orders.yaml; {way_out}",
        f"{settings.pipelines}/orders.yaml:10: table delta:sales.orders is also named in more.yaml; {way_out}",
    ]
    assert {name: [table.id for table in one.tables] for name, one in loaded.contested.items()} == {
        "more": ["delta:sales.orders"],
        "orders": ["delta:sales.orders"],
    }


def test_a_table_is_the_same_with_and_without_its_default_namespace(settings: Settings) -> None:
    write(settings, RIGHT.replace("sales.orders", "events"))
    write(settings, RIGHT.replace("pipeline: orders", "pipeline: more").replace("sales.orders", "default.events"), "more.yaml")
    loaded = load_pipelines(settings)
    assert not loaded.specs
    assert [problem.rpartition("/")[2].split(":")[1] for problem in loaded.problems] == ["10", "10"]


def test_a_quarantine_counts_as_a_table(settings: Settings) -> None:
    write(settings, RIGHT)
    claim = RIGHT.replace("pipeline: orders", "pipeline: more").replace("sales.orders", "quarantine.orders")
    write(settings, claim, "more.yaml")
    loaded = load_pipelines(settings)
    assert not loaded.specs and len(loaded.problems) == 2


def test_a_pipeline_in_two_files_is_refused_in_both(settings: Settings) -> None:
    write(settings, RIGHT)
    write(settings, RIGHT.replace("sales.orders", "sales.more"), "orders.yml")
    loaded = load_pipelines(settings)
    assert not loaded.specs
    assert f"{settings.pipelines}/orders.yaml:1: pipeline orders is also named in orders.yml" in loaded.problems
    assert f"{settings.pipelines}/orders.yml:1: pipeline orders is also named in orders.yaml" in loaded.problems
    assert not loaded.contested, "no ledger can say which of two files of one pipeline is right"


def test_a_missing_folder_is_told(settings: Settings) -> None:
    nowhere = replace(settings, pipelines=settings.pipelines / "nowhere")
    assert load_pipelines(nowhere).problems == [
        f"{nowhere.pipelines}: this folder does not exist; create it, or set LAKEBOUND_PIPELINES"
    ]
    with pytest.raises(InvalidSpecError, match="this folder does not exist"):
        load_pipeline("orders", nowhere)


def test_a_pipeline_is_found_by_name(settings: Settings) -> None:
    write(settings, RIGHT)
    write(settings, "pipeline: wrong\n", "wrong.yaml")
    assert load_pipeline("orders", settings).pipeline == "orders"
    with pytest.raises(InvalidSpecError, match=r"wrong\.yaml:1: topics: is missing"):
        load_pipeline("wrong", settings)
    with pytest.raises(UnknownPipelineError, match="known pipelines: orders"):
        load_pipeline("nope", settings)


def test_the_examples_are_right_and_fit_the_invented_records() -> None:
    settings = replace(load_settings({}), pipelines=REPOSITORY / "include" / "pipelines")
    loaded = load_pipelines(settings)
    assert loaded.problems == []
    assert {name: [table.id for table in spec.tables] for name, spec in loaded.specs.items()} == {
        "orders": ["delta:sales.orders", "iceberg:sales.orders"],
        "sensor_readings": ["iceberg:iot.sensor_readings"],
        "located_readings": ["iceberg:iot.located_readings"],
    }


def test_loading_imports_nothing_heavy() -> None:
    heavy = "{'deltalake', 'pyiceberg', 'pyarrow', 'confluent_kafka', 'pandas', 'pyspark', 'airflow'}"
    code = f"import sys, lakebound.spec.load; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANGS_SECONDS)
    assert done.stdout.strip() == "[]"
