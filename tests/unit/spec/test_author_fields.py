"""Every field of a pipeline's YAML that takes text has a rule, and an author with bad intentions gets nothing by any of them.

A new field without a rule fails the first test. `docs/security.md` says what the rules mean.
"""

from __future__ import annotations

import os
import sys
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.support.streams.author_yaml import RULES, Rule, bodies, parts_for, problems_of, with_value
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipeline_files import settings

from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec

__all__ = ["settings"]
ELSEWHERE = ["/etc/shadow", "/dev/zero", "/proc/self/environ", "../../../etc/passwd", "x/../../x"]
NOT_PLAIN = ["../x", "a b;c", "a\nb", "$(id)"]
HOSTILE: dict[Rule, list[Any]] = {
    "certificate": ELSEWHERE,
    "secret file": [
        *ELSEWHERE,
        "loose",
        "payments/db",
        "channels/hook",
        "warehouses/key",
        "AIRFLOW_CONN_OPS",
        "orders/../kafka/x",
    ],
    "secret variable": ["PATH", "AWS_SECRET_ACCESS_KEY", "AIRFLOW__CORE__FERNET_KEY", "LAKEBOUND_SECRET_OTHER", "a b"],
    "server": ["evil.test", "10.0.0.1", "kafka.evil.test", "/var/run/postgresql", "169.254.169.254"],
    "address": [
        "http://169.254.169.254/latest",
        "https://evil.test/token",
        "file:///etc/passwd",
        "https://idp.example.com:444/",
    ],
    "code": ["os.system", "transforms.os.path.join.x y", "subprocess", "transforms.", "transforms/../x", "__import__('os').x"],
    "setting": [
        {name: "anything"}
        for name in (
            "spark.jars",
            "spark.driver.resource.gpu.discoveryScript",
            "spark.python.daemon.module",
            "spark.executorEnv.LD_PRELOAD",
            "spark.hadoop.fs.s3a.endpoint",
            "spark.sql.shuffle.partitions",
        )
    ],
    "shape": NOT_PLAIN,
}


def tried_with(field: str, values: list[Any]) -> list[Any]:
    """Return the values that are tried with a field: shortly some, and the others with the next fields of its rule."""
    alike = sorted(name for name, rule in RULES.items() if rule == RULES[field])
    parts = 1 if LONG_FORM else min(len(alike), 4)
    return values[alike.index(field) % parts :: parts]


def test_every_field_that_takes_text_has_a_rule() -> None:
    assert {*_text_fields(PipelineSpec)} == RULES.keys()


@pytest.mark.parametrize("field", sorted(name for name, rule in RULES.items() if rule != "text"))
def test_what_is_hostile_is_refused(settings: Settings, field: str) -> None:
    tried = 0
    for hostile in tried_with(field, HOSTILE[RULES[field]]):
        for body in with_value(field, hostile):
            with _nothing_is_opened(settings.pipelines):
                problems = problems_of(settings, body)
            tried += 1
            assert problems, f"{field}: {hostile!r} was taken"
    if not tried:
        assert field in UNREACHED, f"no YAML of this test has {field}"


UNREACHED = ("maintenance.compaction.sort_by",)


@pytest.mark.parametrize("field", sorted(name for name, rule in RULES.items() if rule == "text"))
def test_text_opens_nothing_on_this_machine(settings: Settings, field: str) -> None:
    for hostile in tried_with(field, ["/dev/zero", "../../../etc/passwd", "__import__('os')", "http://169.254.169.254/latest"]):
        for body in with_value(field, hostile):
            with _nothing_is_opened(settings.pipelines):
                problems_of(settings, body)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=10)
@given(
    field=st.sampled_from(sorted(RULES)), value=st.one_of(st.text(), st.sampled_from(ELSEWHERE), st.integers(), st.booleans())
)
def test_no_text_in_any_field_opens_anything_or_breaks_the_reader(settings: Settings, field: str, value: Any) -> None:
    for body in with_value(field, value):
        with _nothing_is_opened(settings.pipelines):
            problems_of(settings, body)


def test_the_yaml_of_these_tests_is_right(settings: Settings) -> None:
    assert [problems_of(settings, body) for body in bodies()] == [[]] * 7
    parts = {field.split(".")[0]: [*parts_for(field)] for field in RULES}
    assert len(parts) > 15
    assert [problems for part in parts.values() for body in part if (problems := problems_of(settings, body))] == []


def _text_fields(model: type[BaseModel], keys: tuple[str, ...] = ()) -> Iterator[str]:
    for name, field in model.model_fields.items():
        own = (*keys, field.alias or name)
        for inner in _models(field.annotation):
            yield from _text_fields(inner, own)
        if _takes_text(field.annotation):
            yield ".".join(own)


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for argument in typing.get_args(kind):
        yield from _models(argument)


def _takes_text(kind: Any) -> bool:
    if isinstance(kind, type) and not typing.get_args(kind):
        return issubclass(kind, str | os.PathLike) or kind is object
    return kind is Any or (typing.get_origin(kind) is not Literal and any(map(_takes_text, typing.get_args(kind))))


_WATCHED: list[tuple[int, Path, list[str]]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    for thread, folder, seen in _WATCHED:
        if thread != get_ident():
            continue  # threads that earlier tests have left may do what they like
        if event == "open" and isinstance(arguments[0], str) and not _may_be_open(arguments[0], folder):
            seen.append(f"open {arguments[0]}")
        elif event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec"):
            seen.append(event)


def _may_be_open(file: str, folder: Path) -> bool:
    code = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3] / "include"))
    return file.startswith((str(folder.parent), *code)) or file.endswith((".py", ".pyc"))


sys.addaudithook(_hook)


@contextmanager
def _nothing_is_opened(folder: Path) -> Iterator[None]:
    """Inside the block, no file outside of the test's folder is opened, and nothing is connected to or started."""
    watched: tuple[int, Path, list[str]] = (get_ident(), folder, [])
    _WATCHED.append(watched)
    try:
        yield
    finally:
        _WATCHED.remove(watched)
    assert watched[2] == []
