"""Every kind of channel is one module that nothing else names, and it sends a test message like any other."""

from __future__ import annotations

import ast
import pkgutil
from pathlib import Path

import pytest
from tests.support.syntax import nodes_of

import lakebound
import lakebound_airflow
from lakebound.alerts.channel import ChannelKind, channel_kinds
from lakebound.alerts.round import message_of_test
from lakebound.alerts.routes import AlertsSpec
from lakebound.alerts.wording import Links

REQUIRED = {"webhook": {"connection": "hook"}, "email": {"to": ["ada@example.org"]}, "apprise": {"env": "PAGER_URL"}}
KINDS = channel_kinds()


def settings_of(name: str) -> dict[str, object]:
    """Return settings that are enough for a kind: those above, or all defaults and one connection."""
    return REQUIRED.get(name, {"connection": "one"})


@pytest.mark.parametrize("name", KINDS)
def test_a_test_message_is_sent_by_a_notifier_that_takes_what_it_is_given(name: str) -> None:
    body = {"channels": {"one": {name: settings_of(name)}}, "routes": [{"to": ["one"]}]}
    kind = AlertsSpec.model_validate(body).channels["one"].kind
    assert type(kind) is KINDS[name]
    message = message_of_test("orders", 0.0)
    call = kind.call(message, Links())
    notifier = pkgutil.resolve_name(call.notifier)(**call.arguments)
    assert callable(notifier.notify)
    assert kind.place in (f"connection {kind.connection}", f"${getattr(kind, 'env', None)}")
    assert message.alerts[0].what in repr(dict(call.arguments))


def test_the_arguments_of_a_call_are_in_no_log() -> None:
    call = KINDS["webhook"].model_validate(REQUIRED["webhook"]).call(message_of_test("orders", 0.0), Links())
    assert "orders" not in repr(call)


ALLOWED = {"apprise_notifier.py": {"apprise"}, "routes.py": {"webhook"}}
"""A notifier of the plugin's own, and the channel that there is without a file."""


def test_no_other_module_names_a_kind() -> None:
    folders = (Path(package.__file__ or "").parent for package in (lakebound, lakebound_airflow))
    files = [file for folder in folders for file in folder.rglob("*.py") if file.parent.name != "channels"]
    assert len(files) > 100
    classes, found = {kind.__name__ for kind in KINDS.values()}, {}
    for file in files:
        if not any(name in file.read_text() for name in (*KINDS, *classes)):
            continue
        texts = {node.value for node in nodes_of(file) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        names = {node.id for node in nodes_of(file) if isinstance(node, ast.Name)}
        if named := (texts & {*KINDS} | names & classes) - ALLOWED.get(file.name, set()):
            found[file.name] = named
    assert found == {}


def test_every_kind_says_what_a_person_must_know() -> None:
    for name, kind in KINDS.items():
        assert issubclass(kind, ChannelKind) and kind.__doc__ and kind.model_fields["connection"].description, name
