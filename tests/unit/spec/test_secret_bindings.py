"""An author who names a secret sends it nowhere but where whoever runs Lakebound bound it to, or where it is their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.streams.command_line import lakebound
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.alerts.connection_places import file_of
from lakebound.errors import ForbiddenSecretError, InvalidSpecError
from lakebound.landing.kafka_settings import client_config, java_config
from lakebound.settings import Settings, YamlAccess
from lakebound.spec.connection import ConnectionSpec, SecretRef
from lakebound.spec.load import load_file, load_pipelines, load_unbound
from lakebound.spec.secret_bindings import SecretBindings, SecretUse, binding_refusal, servers_of_brokers
from lakebound.spec.secrets import read_warehouse_secret

__all__ = ["settings"]
FOLDER = Path("/run/secrets")
BINDINGS = SecretBindings.model_validate(
    {
        "files": {"kafka": ["kafka:9092"], "team/shared": ["db.example.com:5432"]},
        "variables": {"LAKEBOUND_SECRET_ONE": ["*.example.com:9092", "[::1]:9092"]},
    }
)
FILES = st.sampled_from(
    "kafka orders/db /run/secrets/orders/db other/db team/shared channels/ops warehouses/key loose ../secrets/kafka . "
    "orders/../channels/ops ./warehouses/key AIRFLOW_CONN_OPS orders/AIRFLOW_CONN_OPS".split()
)
HOSTS = st.sampled_from(
    "kafka KAFKA db.example.com a.example.com example.com evil.test kafka.evil.test xexample.com "
    "evil.test/.example.com evil.test:1#.example.com 127.0.0.1 localhost".split()
)


@given(FILES, st.lists(st.tuples(HOSTS, st.sampled_from([5432, 9092])), min_size=1, max_size=3))
def test_a_file_goes_only_where_it_is_bound_or_belongs(file: str, named: list[tuple[str, int]]) -> None:
    servers = tuple(f"{host}:{port}" for host, port in named)
    refused = binding_refusal(SecretUse(SecretRef(file=file), servers), "orders", BINDINGS, FOLDER)
    name = str(Path("/run/secrets", file).resolve()).removeprefix("/run/secrets/")
    may = {"kafka": {"kafka:9092"}, "team/shared": {"db.example.com:5432"}}.get(name, set())
    is_own = name == "orders/db"
    assert (refused is None) == (is_own or {server.lower() for server in servers} <= may)


@given(st.lists(st.tuples(HOSTS, st.sampled_from([5432, 9092])), min_size=1, max_size=3))
def test_a_variable_goes_only_to_the_hosts_of_its_domain(named: list[tuple[str, int]]) -> None:
    servers = tuple(f"{host}:{port}" for host, port in named)
    refused = binding_refusal(SecretUse(SecretRef(env="LAKEBOUND_SECRET_ONE"), servers), "orders", BINDINGS, FOLDER)
    assert (refused is None) == ({*servers} <= {"db.example.com:9092", "a.example.com:9092"})
    other = binding_refusal(SecretUse(SecretRef(env="LAKEBOUND_SECRET_TWO"), servers), "orders", BINDINGS, FOLDER)
    assert other is not None


@pytest.mark.parametrize("server", ["127.0.0.1:9092", "localhost:9092", "[::1]:9092", "127.9.9.9:1"])
def test_without_bindings_only_this_machine_gets_a_secret(server: str) -> None:
    use = SecretUse(SecretRef(file="kafka"), (server,))
    assert binding_refusal(use, "orders", None, FOLDER) is None
    assert binding_refusal(use, "orders", BINDINGS, FOLDER) is not None
    assert binding_refusal(SecretUse(use.ref, (server, "evil.test:9092")), "orders", None, FOLDER) is not None
    assert binding_refusal(SecretUse(SecretRef(file="warehouses/key"), (server,)), "orders", None, FOLDER) is not None


def test_every_broker_in_the_list_counts() -> None:
    assert servers_of_brokers("a:1, b:2,SASL_SSL://c:3,d,[::1]:9092") == ("a:1", "b:2", "c:3", "d:9092", "[::1]:9092")


LOGIN = "{mechanism: PLAIN, username: a, password: {file: FILE}}"
TOKENS = "{mechanism: OAUTHBEARER, token_url: 'URL', client_id: a, client_secret: {file: orders/one}}"
POSTGRES = "{host: HOST, database: shop, username: ada, password: {file: FILE}}"
AUTHORS = {
    "a channel's connection, to a broker of one's own": (
        RIGHT.replace("${LAKEBOUND_KAFKA}", "evil.test:9092").replace("value:", f"  sasl: {LOGIN}\nvalue:"),
        "AIRFLOW_CONN_OPS",
        "5: connection.sasl.password: this file is not for pipelines",
    ),
    "the bucket's root key, to a Redis": (
        f"{RIGHT}to_stores:\n  - {{name: a, key: a, redis: {{host: evil.test, password: {{file: FILE}}}}}}\n",
        "warehouses/object-store-key",
        "13: to_stores[0].redis.password: this file is not for pipelines",
    ),
    "another pipeline's password, to a database": (
        f"{RIGHT}to_stores:\n  - {{name: a, key: a, postgres: {POSTGRES.replace('HOST', 'evil.test')}}}\n",
        "payments/db",
        "13: to_stores[0].postgres.password: this file belongs to the pipeline 'payments'",
    ),
    "the shared login of Kafka, as a reference's": (
        f"{RIGHT}transform: transforms.orders.clean\nreference:\n  shop: {{format: postgres, name: a, key: [a], postgres: "
        f"{POSTGRES.replace('HOST', 'kafka')}}}\n",
        "kafka",
        "14: reference.shop.postgres.password: this secret is not bound to kafka:5432",
    ),
    "a second broker behind the right one": (
        RIGHT.replace("${LAKEBOUND_KAFKA}", "'kafka:9092,evil.test:9092'").replace("value:", f"  sasl: {LOGIN}\nvalue:"),
        "kafka",
        "5: connection.sasl.password: this secret is not bound to evil.test:9092",
    ),
    "a token server of one's own": (
        RIGHT.replace("value:", f"  sasl: {TOKENS.replace('URL', 'http://169.254.169.254/latest')}\nvalue:"),
        "",
        "5: connection.sasl.token_url: 169.254.169.254:80 is not one of token_servers in installation.yaml",
    ),
}


@pytest.mark.parametrize("what", AUTHORS)
def test_an_author_cannot_send_out(settings: Settings, what: str) -> None:
    (settings.pipelines.parent / "installation.yaml").write_text("secrets: {files: {kafka: ['kafka:9092']}}\n")
    text, file, told = AUTHORS[what]
    with pytest.raises(InvalidSpecError) as error:
        load_file(write(settings, text.replace("FILE", file)), settings)
    assert any(told in problem for problem in error.value.problems), error.value.problems


@pytest.mark.parametrize("engine", [client_config, java_config])
def test_a_client_asks_again_whether_its_secret_is_bound(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: object
) -> None:
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(settings.pipelines))
    monkeypatch.setenv("LAKEBOUND_SECRET_KAFKA", "one")
    sasl = {"username": "a", "password": {"env": "LAKEBOUND_SECRET_KAFKA"}}
    connection = ConnectionSpec.model_validate({"bootstrap_servers": "kafka:9092", "sasl": sasl})
    assert callable(engine) and engine(connection)
    with pytest.raises(ForbiddenSecretError, match=r"connection\.sasl\.password: this secret is not bound to evil\.test:9092"):
        engine(connection.model_copy(update={"bootstrap_servers": "evil.test:9092"}))


def test_what_is_for_channels_and_warehouses_is_found_in_folders_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRETS_FOLDER", str(tmp_path))
    for name in ("channels", "warehouses"):
        (tmp_path / name).mkdir()
    access = YamlAccess(secrets_folder=tmp_path)
    (tmp_path / "AIRFLOW_CONN_OPS").write_text("earlier")
    (tmp_path / "key").write_text("earlier")
    assert file_of("ops", access) == tmp_path / "AIRFLOW_CONN_OPS"
    assert read_warehouse_secret(SecretRef(file="key"), "store.secret_access_key") == "earlier"
    (tmp_path / "channels" / "AIRFLOW_CONN_OPS").write_text("now")
    (tmp_path / "warehouses" / "key").write_text("now")
    assert file_of("ops", access) == tmp_path / "channels" / "AIRFLOW_CONN_OPS"
    assert read_warehouse_secret(SecretRef(file="key"), "store.secret_access_key") == "now"


def test_bind_secrets_writes_what_todays_pipelines_need(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(settings.pipelines))
    monkeypatch.setenv("LAKEBOUND_KAFKA", "kafka:9092")
    file = settings.pipelines.parent / "installation.yaml"
    file.write_text("# ours\nspark_profiles: {small: {max_cores: 1}}\n")
    sasl = RIGHT.replace("value:", f"  sasl: {LOGIN}\nvalue:")
    write(settings, sasl.replace("FILE", "kafka"))
    for name, secret in {"more": "kafka", "own": "own/kafka", "thief": "warehouses/key"}.items():
        text = sasl.replace("pipeline: orders", f"pipeline: {name}").replace("sales.orders", f"sales.{name}")
        write(settings, text.replace("FILE", secret), f"{name}.yaml")
    assert set(load_pipelines(settings).specs) == {"own"} and len(load_unbound(settings)) == 4
    lakebound("bind-secrets", "--write")
    assert file.read_text().splitlines() == [
        "# ours",
        "spark_profiles: {small: {max_cores: 1}}",
        "# no pipeline may use it: thief: file warehouses/key",
        "secrets:",
        "  files:",
        "    kafka:",
        "      - kafka:9092   # more, orders",
    ]
    assert set(load_pipelines(settings).specs) == {"own", "more", "orders"}
    assert "kafka:9092" not in lakebound("bind-secrets").output
