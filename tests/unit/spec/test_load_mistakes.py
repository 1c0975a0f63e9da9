"""Pipeline files: each kind of mistake is told with file, line and field, and no password with it."""

from __future__ import annotations

import pytest
from tests.support.streams.pipeline_files import RIGHT, WITH_SASL, settings, write

from lakebound.errors import InvalidSpecError
from lakebound.settings import Settings
from lakebound.spec.load import load_file
from lakebound.spec.ways_out import of_format

__all__ = ["settings"]
SECRET = "hunter2-very-secret"


def problems_of(settings: Settings, text: str | bytes, name: str = "orders.yaml") -> list[str]:
    """Return what is said of a file, without the folder."""
    path = write(settings, text, name)
    with pytest.raises(InvalidSpecError) as caught:
        load_file(path, settings)
    return [problem.removeprefix(f"{settings.pipelines}/") for problem in caught.value.problems]


CSV = f"orders.yaml:6: value.format: must be json, avro, protobuf, json_schema, string or bytes, not 'csv'; {of_format('csv')}"
MISTAKES = {
    "unknown key, close to a known one": (
        RIGHT + "freshnes: 1s\n",
        "orders.yaml:12: freshnes: unknown key; did you mean 'freshness'?",
    ),
    "unknown key in a list": (
        RIGHT + "    partition: [a]\n",
        "orders.yaml:12: tables[0].partition: unknown key; did you mean 'partition_by'?",
    ),
    "key in the wrong place": (
        RIGHT + "max_records_per_batch: 5\n",
        "orders.yaml:12: max_records_per_batch: unknown key here; it belongs under limits",
    ),
    "unknown key, far from all": (
        RIGHT + "thresholds:\n  zzz: 5\n",
        "orders.yaml:13: thresholds.zzz: unknown key; known here: max_lag_seconds, stall_seconds",
    ),
    "unknown key of one value format": (
        RIGHT.replace("  format: json", "  format: json\n  unknown_field: ignore"),
        "orders.yaml:7: value.unknown_field: unknown key; did you mean 'unknown_fields'?",
    ),
    "missing key": (RIGHT.replace("freshness: 500ms\n", ""), "orders.yaml:1: freshness: is missing"),
    "missing key below a key": (
        RIGHT.replace("  schema: order_id STRING NOT NULL\n", ""),
        "orders.yaml:5: value.schema: is missing",
    ),
    "missing connection": (
        RIGHT.replace("connection:\n  bootstrap_servers: ${LAKEBOUND_KAFKA}\n", ""),
        "orders.yaml:1: connection: is missing",
    ),
    "wrong type": (
        RIGHT.replace("freshness: 500ms", "freshness: 500"),
        'orders.yaml:8: freshness: must be text, not 500; write "500"',
    ),
    "boolean for text": (
        RIGHT + "    properties:\n      write.spark.accept-any-schema: true\n",
        'orders.yaml:13: tables[0].properties.write.spark.accept-any-schema: must be text, not true; write "true"',
    ),
    "text for a list": (RIGHT.replace("[orders]", "orders"), "orders.yaml:2: topics: must be a list, not 'orders'"),
    "empty list": (RIGHT.replace("[orders]", "[]"), "orders.yaml:2: topics: must not be empty"),
    "text for keys": (
        RIGHT.replace("value:\n  format: json\n  schema: order_id STRING NOT NULL", "value: json"),
        "orders.yaml:5: value: must be keys and values, not 'json'",
    ),
    "list for keys": (RIGHT + "limits: [1]\n", "orders.yaml:12: limits: must be keys and values, not a list"),
    "empty value": (RIGHT.replace("freshness: 500ms", "freshness:"), "orders.yaml:8: freshness: must be text, and is empty"),
    "number out of range": (
        RIGHT + "limits:\n  max_records_per_batch: 0\n",
        "orders.yaml:13: limits.max_records_per_batch: must be greater than or equal to 1",
    ),
    "text for a number": (
        RIGHT + "limits:\n  commit_attempts: many\n",
        "orders.yaml:13: limits.commit_attempts: must be a valid integer, unable to parse string as an integer",
    ),
    "unknown choice": (
        RIGHT.replace("format: delta", "format: hudi"),
        "orders.yaml:10: tables[0].format: must be delta or iceberg, not 'hudi'",
    ),
    "unknown value format": (
        RIGHT.replace("format: json", "format: csv"),
        CSV,
    ),
    "value without a format": (
        RIGHT.replace("  format: json\n", ""),
        "orders.yaml:5: value.format: is missing: json, avro, protobuf, json_schema, string or bytes",
    ),
    "bad freshness": (
        RIGHT.replace("500ms", "half a second"),
        "orders.yaml:8: freshness: 'half a second' is neither available_now nor real_time nor an interval such as 500ms, 5s or "
        "1m",
    ),
    "real time without topics": (
        RIGHT.replace("500ms", "real_time"),
        "orders.yaml:1: freshness: real_time sends rows to Kafka topics, but to_topics is missing; for tables, use 0ms",
    ),
    "bad topic": (RIGHT.replace("[orders]", "[or ders]"), "orders.yaml:2: topics: 'or ders' is not a Kafka topic name"),
    "bad pipeline name": (
        RIGHT.replace("pipeline: orders", "pipeline: Orders"),
        "orders.yaml:1: pipeline: must be lower-case letters, digits and _, beginning with a letter, at most 63 characters",
    ),
    "bad table name": (
        RIGHT.replace("sales.orders", "a.b.c"),
        "orders.yaml:11: tables[0].name: 'a.b.c' is not a table name: one or two of [a-z][a-z0-9_]*, joined by a dot",
    ),
    "transform that is not dotted": (
        RIGHT + "transform: clean\n",
        "orders.yaml:12: transform: 'clean' is not the dotted name of a function in spark_apps/transforms, such as "
        "transforms.orders.clean",
    ),
    "Delta partitioned by a function": (
        RIGHT + "    partition_by: [day(at)]\n",
        "orders.yaml:10: tables[0]: partition_by: 'day(at)': Delta partitions by columns only",
    ),
    "partitioned by a column whose name has a hyphen": (
        RIGHT + "    partition_by: [a-b]\n",
        "orders.yaml:10: tables[0]: partition_by: 'a-b': the name of such a column has letters, digits and _ only, and no "
        "digit first: let the transform give it such a name, or partition by another column",
    ),
    "schedule that is none": (
        RIGHT + "schedule: 99 99 * * *\n",
        "orders.yaml:12: schedule: '99 99 * * *' is not a cron expression; write five fields, such as */10 * * * * (every ten "
        "minutes), or @hourly or @daily",
    ),
    "schedule of a random minute": (
        RIGHT + "schedule: R * * * *\n",
        "orders.yaml:12: schedule: 'R * * * *' is not a cron expression; write five fields, such as */10 * * * * (every ten "
        "minutes), or @hourly or @daily",
    ),
    "schedule that never comes due": (
        RIGHT + "schedule: 0 0 31 2 *\n",
        "orders.yaml:12: schedule: '0 0 31 2 *' never comes due: there is no such day; write five fields, such as */10 * * * * "
        "(every ten minutes), or @hourly or @daily",
    ),
    "table named twice": (
        RIGHT + "  - {format: delta, name: sales.orders}\n",
        "orders.yaml:1: tables: a table is named twice: delta:sales.orders, delta:sales.orders, delta:quarantine.orders",
    ),
    "key given twice": (
        RIGHT + "freshness: 1s\n",
        "orders.yaml:12: freshness: is given twice; the first one is in line 8",
    ),
    "key given twice, deep down": (
        RIGHT + "    name: sales.more\n",
        "orders.yaml:12: tables[0].name: is given twice; the first one is in line 11",
    ),
    "another name than the file": (
        RIGHT.replace("pipeline: orders", "pipeline: sales"),
        "orders.yaml:1: pipeline: is 'sales', but the file is orders.yaml; both must have the same name",
    ),
    "variable that is not set": (
        RIGHT.replace("${LAKEBOUND_KAFKA}", "${LAKEBOUND_NOWHERE}:9092"),
        "orders.yaml:4: connection.bootstrap_servers: the environment variable LAKEBOUND_NOWHERE is not set; "
        "set it, or write ${LAKEBOUND_NOWHERE:-default}",
    ),
    "variable of the machine": (
        RIGHT.replace("${LAKEBOUND_KAFKA}", "${PATH}:9092"),
        "orders.yaml:4: connection.bootstrap_servers: the environment variable PATH may not be read here; "
        "whoever runs Lakebound can allow it with LAKEBOUND_VARIABLES=PATH, or call it LAKEBOUND_PATH",
    ),
    "variable that holds a secret": (
        RIGHT.replace("${LAKEBOUND_KAFKA}", "${LAKEBOUND_SECRET_KAFKA:-x}:9092"),
        "orders.yaml:4: connection.bootstrap_servers: the environment variable LAKEBOUND_SECRET_KAFKA holds a secret, which "
        "must not appear in a text; name it under sasl.password",
    ),
    "secret in any variable": (
        WITH_SASL.replace("LAKEBOUND_SECRET_KAFKA", "AWS_SECRET_ACCESS_KEY"),
        "orders.yaml:7: connection.sasl.password: this environment variable may not be read as a secret; "
        "whoever runs Lakebound can add its name to LAKEBOUND_SECRETS, or call it LAKEBOUND_SECRET_…",
    ),
    "secret in any file": (
        WITH_SASL.replace("env: LAKEBOUND_SECRET_KAFKA", "file: ../../etc/shadow"),
        "orders.yaml:7: connection.sasl.password: this file is not in the folder of secrets, /run/secrets; "
        "put it there, or let whoever runs Lakebound set LAKEBOUND_SECRETS_FOLDER",
    ),
    "transform of somebody else": (
        RIGHT + "transform: os.path.join\n",
        "orders.yaml:12: transform: 'os.path.join' is not the dotted name of a function in spark_apps/transforms, such as "
        "transforms.orders.clean",
    ),
    "name with a line's end": (
        RIGHT.replace("name: sales.orders", '"name": "sales.orders\\n"'),
        "orders.yaml:11: tables[0].name: 'sales.orders\\n' is not a table name: one or two of [a-z][a-z0-9_]*, joined by a dot",
    ),
    "topic that is a folder": (RIGHT.replace("[orders]", "['..']"), "orders.yaml:2: topics: '..' is not a Kafka topic name"),
    "aliases without end": (
        RIGHT
        + "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)),
        "orders.yaml:16: YAML cannot be read here: aliases (*) expand it to more than 20,000 values; use fewer aliases",
    ),
    "merged aliases without end": (
        RIGHT
        + "a0: &a0 {x: 1, y: 1}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10)),
        "orders.yaml:16: YAML cannot be read here: aliases (*) expand it to more than 20,000 values; use fewer aliases",
    ),
    "nested without end": (
        RIGHT + "a: " + "[" * 600 + "]" * 600,
        "orders.yaml:12: YAML cannot be read here: it is nested too deeply: more than 100 values are inside of each other",
    ),
    "variable that is written wrongly": (
        RIGHT.replace("${LAKEBOUND_KAFKA}", "${LAKEBOUND-KAFKA}"),
        "orders.yaml:4: connection.bootstrap_servers: write a variable as ${NAME} or ${NAME:-default}",
    ),
    "secret in two places": (
        WITH_SASL.replace("{env: LAKEBOUND_SECRET_KAFKA}", "{env: A, file: B}"),
        "orders.yaml:7: connection.sasl.password: give either env or file",
    ),
    "property whose name YAML reads as something else": (
        RIGHT.replace(
            "  schema: order_id STRING NOT NULL", "  json_schema:\n    type: object\n    properties: {on: {type: string}}"
        ),
        "orders.yaml:5: value: json_schema: the record: has the property True, whose name is not text: write it in quotes",
    ),
    "required list in a list": (
        RIGHT.replace(
            "  schema: order_id STRING NOT NULL",
            "  json_schema:\n    type: object\n    required: [[id]]\n    properties: {id: {type: string}}",
        ),
        "orders.yaml:5: value: json_schema: the record: required must be a list of names; "
        "write a name in quotes if YAML does not read it as text",
    ),
    "empty file": (
        "# nothing\n",
        "orders.yaml:1: is empty; a pipeline file has keys and values, the first of them pipeline: NAME",
    ),
    "a list at the root": (
        "- pipeline: orders\n",
        "orders.yaml:1: holds a list; a pipeline file has keys and values, the first of them pipeline: NAME",
    ),
    "text at the root": (
        "pipeline\n",
        "orders.yaml:1: holds a str; a pipeline file has keys and values, the first of them pipeline: NAME",
    ),
    "key that is not text": (RIGHT + "7: x\n", "orders.yaml:12: [7]: a key must be text"),
    "wrong indentation": (
        RIGHT.replace("  format: json\n", "   format: json\n"),
        "orders.yaml:7: YAML cannot be read here: expected <block end>, but found '<block mapping start>'",
    ),
    "tab": (
        RIGHT.replace("  format: json", "\tformat: json"),
        "orders.yaml:6: YAML cannot be read here: found character '\\t' that cannot start any token",
    ),
    "bracket that stays open": (
        RIGHT.replace("[orders]", "[orders"),
        "orders.yaml:3: YAML cannot be read here: expected ',' or ']', but got ':'",
    ),
    "text with a colon": (
        RIGHT.replace("freshness: 500ms", "freshness: 500: ms"),
        "orders.yaml:8: YAML cannot be read here: text with a colon and a space in it, such as the type STRUCT<sku: STRING>, "
        "is not YAML as it stands: quote it, or use `>-` after the key and write it in the next line, indented",
    ),
    "text with a colon in braces": (
        RIGHT.replace("freshness: 500ms", "freshness: {is: 500: ms}"),
        "orders.yaml:8: YAML cannot be read here: expected ',' or '}', but got ':'; text with `: ` or `, ` in it is not YAML "
        "as it stands inside { }: quote it",
    ),
    "second document": (
        RIGHT + "---\npipeline: more\n",
        "orders.yaml:12: YAML cannot be read here: only one document is allowed in a file: a second --- begins here",
    ),
    "a tag": (
        RIGHT.replace("500ms", "!!python/object:os.system 500ms"),
        "orders.yaml:8: YAML cannot be read here: text that starts with ! must be in quotes",
    ),
    "an alias of nothing": (
        RIGHT.replace("500ms", "*fast"),
        "orders.yaml:8: YAML cannot be read here: text that starts with * must be in quotes",
    ),
    "a value that contains itself": (
        RIGHT + "limits: &a\n  commit_attempts: *a\n",
        "orders.yaml:12: YAML cannot be read here: a value contains itself",
    ),
    "control character": (
        RIGHT.replace("500ms", "500\x00ms"),
        "orders.yaml:8: holds a control character, which YAML forbids",
    ),
    "not UTF-8": (
        RIGHT.encode().replace(b"500ms", b"500ms # \xff"),
        "orders.yaml:8: is not UTF-8 text",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_told_with_its_line(settings: Settings, mistake: str) -> None:
    text, message = MISTAKES[mistake]
    assert problems_of(settings, text) == [message]


def test_all_mistakes_of_a_file_are_told_by_line(settings: Settings) -> None:
    text = RIGHT.replace("[orders]", "orders").replace("500ms", "soon").replace("${LAKEBOUND_KAFKA}", "${LAKEBOUND_NOWHERE}")
    assert [problem.split(": ")[0:2] for problem in problems_of(settings, text)] == [
        ["orders.yaml:2", "topics"],
        ["orders.yaml:4", "connection.bootstrap_servers"],
        ["orders.yaml:8", "freshness"],
    ]


@pytest.mark.parametrize(
    "password",
    [
        SECRET,
        f'"{SECRET}"',
        f"${{{SECRET.upper().replace('-', '_')}}}",
        f"{{{SECRET}}}",
        f"{{{SECRET}: x}}",
        f"{{{SECRET}, {SECRET}}}",
        f"{{env: {{{SECRET}: x}}}}",
        f"{{env: [{SECRET}]}}",
        f"[{SECRET}]",
        f"*{SECRET}",
        f"!{SECRET} x",
        f"'{SECRET}",
        f"{SECRET}: x",
        f'"\\{SECRET}"',
    ],
)
def test_a_password_in_the_file_is_refused_and_not_repeated(settings: Settings, password: str) -> None:
    problems = problems_of(settings, WITH_SASL.replace("{env: LAKEBOUND_SECRET_KAFKA}", password))
    assert problems and SECRET.lower() not in "\n".join(problems).lower().replace("_", "-")


def test_a_literal_password_is_told_where_it_belongs(settings: Settings) -> None:
    problems = problems_of(settings, WITH_SASL.replace("{env: LAKEBOUND_SECRET_KAFKA}", SECRET))
    assert problems == [
        "orders.yaml:7: connection.sasl.password: must say where the secret is stored: {env: NAME} or {file: PATH}; "
        "never write the password itself in this file"
    ]


def test_no_value_below_connection_is_repeated(settings: Settings) -> None:
    text = WITH_SASL.replace("username: lakebound", f"username: [{SECRET}]\n    mechanism: {SECRET}")
    problems = problems_of(settings, text)
    assert len(problems) == 2 and SECRET not in "\n".join(problems)


def test_the_error_holds_no_values_of_the_file(settings: Settings) -> None:
    path = write(settings, WITH_SASL.replace("{env: LAKEBOUND_SECRET_KAFKA}", SECRET))
    with pytest.raises(InvalidSpecError) as caught:
        load_file(path, settings)
    assert caught.value.__context__ is None
