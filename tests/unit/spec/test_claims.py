"""Two pipelines that write to one thing are found, whatever names they have for it."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.landing import server_identities
from lakebound.settings import Settings
from lakebound.spec.claims import one_name_per_server
from lakebound.spec.disputes import alias_problems
from lakebound.spec.load import load_pipelines, path_of

__all__ = ["settings"]
PASSWORD = "password: {env: LAKEBOUND_SECRET_DB}"
MORE = RIGHT.replace("pipeline: orders", "pipeline: more").replace("sales.orders", "sales.more")


def postgres(host: str, name: str = "cards", database: str = "shop") -> str:
    login = f"host: {host}, database: {database}, username: ada, password: {{file: NAME/db}}"
    return f"to_stores:\n  - {{name: {name}, key: a, postgres: {{{login}}}}}\n"


def redis(host: str) -> str:
    return f"to_stores:\n  - {{name: cards, key: a, redis: {{host: {host}}}}}\n"


def brokers(text: str) -> str:
    return f"bootstrap_servers: '{text}'"


TOPIC = "to_topics:\n  - topic: clean\n"
BAD = "real_time: {quarantine_topic: clean}\n"
SAME = {
    "a quarantine topic and a target topic": (TOPIC, BAD),
    "two quarantine topics": (BAD, BAD),
    "a host in capitals, with the dot of the root": (postgres("db.test"), postgres("DB.test")),
    "a schema that is left out": (postgres("db.test"), postgres("db.test", "public.cards")),
    "names of this machine": (redis("localhost"), redis("127.0.0.1")),
    "an address of this machine": (redis("127.0.0.1"), redis("'::1'")),
}
OTHER = {
    "another topic": (TOPIC, BAD.replace("clean", "bad")),
    "another host": (postgres("db.test"), postgres("other.test")),
    "another database": (postgres("db.test"), postgres("db.test", database="other")),
    "another schema": (postgres("db.test"), postgres("db.test", "features.cards")),
}


def problems(settings: Settings, one: str, other: str) -> list[str]:
    write(settings, RIGHT + one.replace("NAME", "orders"))
    write(settings, MORE + other.replace("NAME", "more"), "more.yaml")
    return load_pipelines(settings).problems


@pytest.mark.parametrize("what", SAME)
def test_one_thing_under_two_names_is_refused(settings: Settings, what: str) -> None:
    found = problems(settings, *SAME[what])
    assert len(found) == 2 and all("is also named in" in line for line in found), found


@pytest.mark.parametrize("what", OTHER)
def test_two_things_are_not_one(settings: Settings, what: str) -> None:
    assert problems(settings, *OTHER[what]) == []


@pytest.mark.parametrize(("one", "other", "count"), [("b:2,a:1", "c:3, B:2", 2), ("a:1", "b:1", 0), ("a:1", "a:2", 0)])
def test_clusters_that_share_a_broker_are_one(settings: Settings, one: str, other: str, count: int) -> None:
    write(settings, RIGHT.replace("bootstrap_servers: ${LAKEBOUND_KAFKA}", brokers(one)) + TOPIC)
    write(settings, MORE.replace("bootstrap_servers: ${LAKEBOUND_KAFKA}", brokers(other)) + TOPIC, "more.yaml")
    assert len(load_pipelines(settings).problems) == count


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3).map(tuple), max_size=8))
def test_servers_have_one_name_exactly_if_they_are_connected(clusters: list[tuple[str, ...]]) -> None:
    names = one_name_per_server(clusters)
    groups = [{one} for one in names]
    for cluster in clusters:
        joined = [group for group in groups if group & {*cluster}]
        groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    assert {one for group in groups for one in group} == {one for cluster in clusters for one in cluster}
    assert all(len({names[one] for one in group}) == 1 for group in groups)
    assert len({*names.values()}) == len(groups)


def test_check_finds_two_names_of_one_host(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert problems(settings, postgres("db.test"), postgres("db-1.internal.test")) == []
    leads_to = {"db.test": "10.0.0.7", "db-1.internal.test": "10.0.0.7"}

    def look_up(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if host not in leads_to:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (leads_to[host], port))]

    monkeypatch.setattr(server_identities.socket, "getaddrinfo", look_up)
    monkeypatch.setattr(server_identities, "_store_id", lambda *_: None)
    specs = {path_of(name, settings): spec for name, spec in load_pipelines(settings).specs.items()}
    found = alias_problems(specs, server_identities.server_identities(specs.values()))
    assert len(found) == 2 and all("store postgres:public.cards at db" in line for line in found), found
    leads_to["db.test"] = "10.0.0.8"
    assert alias_problems(specs, server_identities.server_identities(specs.values())) == []


def test_the_id_of_a_cluster_says_that_two_names_are_one(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    write(settings, RIGHT.replace("bootstrap_servers: ${LAKEBOUND_KAFKA}", brokers("a:1")) + TOPIC)
    write(settings, MORE.replace("bootstrap_servers: ${LAKEBOUND_KAFKA}", brokers("b:1")) + TOPIC, "more.yaml")
    specs = {path_of(name, settings): spec for name, spec in load_pipelines(settings).specs.items()}
    assert len(specs) == 2 and alias_problems(specs, {}) == []
    found = alias_problems(specs, {"a:1": ("kafka one",), "b:1": ("kafka one",)})
    assert len(found) == 2
    assert "target topic clean at a:1 is also named in more.yaml (at b:1)" in found[1]
    assert "target topic clean at b:1 is also named in orders.yaml (at a:1)" in found[0]


SHOP, MORE_SHOP = "db.test:5432/shop", "pooler.test:6432/alias"


@pytest.mark.parametrize(
    ("told", "addresses", "is_one"),
    [
        ({SHOP: ["postgres 7"], MORE_SHOP: ["postgres 7"]}, {}, True),
        (
            {SHOP: ["postgres 7"], MORE_SHOP: ["postgres 7"]},
            {SHOP: "10.0.0.7:5432/shop", MORE_SHOP: "10.0.0.9:6432/alias"},
            True,
        ),
        ({SHOP: ["postgres 7"], MORE_SHOP: ["postgres 8"]}, {SHOP: "10.0.0.7:1/shop", MORE_SHOP: "10.0.0.7:1/shop"}, False),
        ({SHOP: ["postgres 7"]}, {SHOP: "10.0.0.7:1/shop", MORE_SHOP: "10.0.0.7:1/shop"}, True),
        ({}, {SHOP: "10.0.0.7:1/shop", MORE_SHOP: "10.0.0.7:1/shop"}, True),
        ({SHOP: ["postgres 7"]}, {SHOP: "10.0.0.7:1/shop"}, False),
    ],
)
def test_a_server_is_what_it_says_and_else_where_its_name_leads(
    told: dict[str, list[str]], addresses: dict[str, str], is_one: bool
) -> None:
    names = one_name_per_server([(SHOP,), (MORE_SHOP,)], server_identities.known_by(told, addresses))
    assert (names[SHOP] == names[MORE_SHOP]) == is_one
