"""A kind of target is one module on each side; no further module may name a kind by its key in the YAML."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.syntax import nodes_of

from lakebound.control.runbooks import RUNBOOKS
from lakebound.landing.target_kind import target_kinds
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.stream.target_kind import application_targets

REPOSITORY = Path(__file__).parents[3]
KEYS = frozenset(name for name in PipelineSpec.model_fields if name.startswith("to_"))
OF_KINDS = ("/targets/", "/to_topics", "/to_stores", "/store_re", "/spec/")
"""Folders and modules of the kinds themselves, what fills a store again, and what people write."""
NAMING = {
    "include/lakebound/alerts/shared_causes.py": "several pipelines have a server in common",
    "include/lakebound/landing/server_identities.py": "two names of one server",
    "include/lakebound/landing/topic_check.py": "check looks at topics before there is a Spark",
    "spark_apps/lakebound_spark/batch/row_keys.py": "null_values: delete",
    "spark_apps/lakebound_spark/batch/tombstones.py": "null_values: delete",
    "spark_apps/lakebound_spark/real_time/rows.py": "real time has topics alone",
    "spark_apps/lakebound_spark/stream/kafka_wait.py": "topics that must be there before anything else",
}
"""Who else names one, and for what only this kind has. The list may get shorter."""


def named_in(file: Path) -> set[str]:
    """Return the keys that a module names, as an attribute or as a text."""
    text = file.read_text()
    if not any(key in text for key in KEYS):
        return set()
    nodes = nodes_of(file)
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return KEYS & (
        attributes | {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    )


def test_no_further_module_names_a_kind() -> None:
    files = [
        file for folder in ("include/lakebound", "spark_apps/lakebound_spark") for file in (REPOSITORY / folder).rglob("*.py")
    ]
    assert len(files) > 500
    paths = {str(file.relative_to(REPOSITORY)): file for file in files}
    naming = {path for path, file in paths.items() if named_in(file) and not any(part in path for part in OF_KINDS)}
    assert naming == set(NAMING)


def test_every_key_has_a_kind_on_both_sides_whose_rules_name_a_page() -> None:
    assert {kind.key for kind in target_kinds()} == {kind.key for kind in application_targets()} == KEYS
    for kind in target_kinds():
        assert kind.rules and kind.not_compared and all(rule.__doc__ for rule in kind.rules)
    assert {"target-topic", "target-store", "hanging-transaction"} <= set(RUNBOOKS)
