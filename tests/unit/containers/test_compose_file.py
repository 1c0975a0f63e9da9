"""docker-compose.yaml as text: what each service is told, may do, and waits for. That it runs is shown by running it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk.configuration import conf
from tests.support.compose.host_network import on_host_network

from lakebound.settings import load_settings
from lakebound.spec.load import load_pipeline
from lakebound.spec.maintenance import MAINTENANCE_POOL
from lakebound.spec.warehouse import RestCatalogSpec
from lakebound.spec.warehouses_file import load_warehouses

REPOSITORY = Path(__file__).parents[3]
TEXT = (REPOSITORY / "docker-compose.yaml").read_text()
IMAGE = (REPOSITORY / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ONE_SHOT = {"secrets", "airflow-init", "cli"}
FOREIGN = {"iceberg-catalog", "object-store", "postgres"}
OWN = sorted(SERVICES.keys() - FOREIGN)
SECRET_NAME = re.compile(r"(?i)password|secret|fernet|token|sql_alchemy_conn")


def environment(name: str) -> dict[str, str]:
    found: dict[str, str] = SERVICES[name].get("environment", {})
    return found


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_has_a_health_check_or_ends_by_itself(name: str) -> None:
    service = SERVICES[name]
    assert ("healthcheck" in service) != (name in ONE_SHOT)
    assert (service["restart"] == "no") == (name in ONE_SHOT)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_waits_for_what_is_healthy_or_has_ended_well(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        wanted = "service_completed_successfully" if other in ONE_SHOT else "service_healthy"
        assert how == {"condition": wanted}, f"{name} waits for {other}"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_s_root_is_read_only_and_it_gains_no_right(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert any(mount.partition(":")[0] == "/tmp" for mount in service["tmpfs"])


@pytest.mark.parametrize("name", OWN)
def test_the_services_of_the_image_have_no_capability(name: str) -> None:
    assert SERVICES[name]["cap_drop"] == ["ALL"]
    assert "user" not in SERVICES[name], "the image's user is none with rights"


@pytest.mark.parametrize("name", ["iceberg-catalog", "object-store"])
def test_the_store_and_its_catalog_run_as_the_owner_of_the_keys(name: str) -> None:
    service = SERVICES[name]
    assert (service["user"], service["cap_drop"]) == ("10001:10001", ["ALL"])
    (data,) = (volume.split(":") for volume in service["volumes"] if volume.startswith(name))
    assert ":".join(data) in SERVICES["secrets"]["volumes"], "a volume gets its owner from the first container that has it"
    assert data[1] in (REPOSITORY / "Dockerfile").read_text()


def test_the_warehouse_is_that_of_the_services() -> None:
    settings = load_settings({"LAKEBOUND_PIPELINES": str(REPOSITORY / "deploy" / "pipelines")})
    lake = load_warehouses(settings)["lake"]
    assert lake.store is not None
    assert lake.store.endpoint == "http://object-store:7070"
    assert {ref.file for ref in lake.secrets.values()} == {"object-store-key-id", "object-store-key"}
    assert isinstance(lake.catalog, RestCatalogSpec)
    assert lake.catalog.uri == "http://iceberg-catalog:" + environment("iceberg-catalog")["REST_PORT"]
    assert environment("iceberg-catalog")["CATALOG_WAREHOUSE"].startswith(f"{lake.location}/")


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_images_are_pinned(name: str) -> None:
    repository, _, tag = SERVICES[name]["image"].partition(":")
    assert repository
    assert re.match(r"v?\d+\.\d+", tag), f"{SERVICES[name]['image']} is another one tomorrow"


def test_the_image_has_the_version_of_the_code() -> None:
    from lakebound import __version__

    assert {SERVICES[name]["image"] for name in OWN} == {f"lakebound:{__version__}"}


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_no_variable_holds_a_secret(name: str) -> None:
    for variable, value in environment(name).items():
        if SECRET_NAME.search(variable):
            assert variable.endswith(("_CMD", "_FILE", "_USERS")), f"{variable} holds a secret itself"
            assert variable.endswith("_USERS") or "/run/lakebound/" in value


def test_airflow_s_keys_are_not_among_what_yaml_may_name() -> None:
    folder = "/run/secrets"
    for name in OWN:
        volumes = [volume.split(":") for volume in SERVICES[name].get("volumes", [])]
        assert {source for source, target, *_ in volumes if target == folder} <= {"pipeline-secrets"}
    for name in ("cli", "kafka", "spark-master", "spark-worker-1", "spark-worker-2"):
        assert "airflow-keys" not in str(SERVICES[name].get("volumes")), f"{name} needs none of Airflow's keys"


def test_each_service_gets_only_the_secrets_that_it_needs() -> None:
    kinds = ("airflow-keys", "channel-secrets", "cli-login", "database-password", "kafka-password")
    kinds = (*kinds, "pipeline-secrets", "registry-secrets", "warehouse-secrets")
    found = {
        name: {kind for kind in kinds if any(volume.startswith(f"{kind}:") for volume in service.get("volumes", []))}
        for name, service in SERVICES.items()
        if name != "secrets"
    }
    landing = {"pipeline-secrets", "registry-secrets", "warehouse-secrets"}
    airflow = {name for name in SERVICES if name.startswith("airflow-")}
    assert {name: kinds for name, kinds in found.items() if name not in airflow} == {
        "cli": {*landing, "cli-login"},
        "iceberg-catalog": {"warehouse-secrets"},
        "kafka": {"kafka-password"},
        "object-store": {"warehouse-secrets"},
        "postgres": {"database-password"},
        "spark-master": set(),
        "spark-worker-1": landing,
        "spark-worker-2": landing,
    }
    assert all(found[name] == {*landing, "airflow-keys", "channel-secrets"} for name in airflow)
    writable = [volume for name in found for volume in SERVICES[name].get("volumes", []) if volume.startswith(kinds[1:])]
    assert all(volume.endswith(":ro") for volume in writable)


def test_the_folders_of_keys_are_the_image_s_user_s_before_a_volume_is_mounted_there() -> None:
    """A new volume gets its owner from the folder in the image; where there is none it is root's, and no key can be written."""
    folders = " ".join(re.findall(r"install --directory --owner=lakebound (.*?)\n(?: &&|ENV)", IMAGE, re.DOTALL)).split()
    assert {volume.split(":")[1] for volume in SERVICES["secrets"]["volumes"]} <= {*folders}


def test_the_broker_reads_its_password_from_its_own_volume() -> None:
    (folder,) = (volume.split(":")[1] for volume in SERVICES["kafka"]["volumes"] if volume.startswith("kafka-password:"))
    assert "--password-file" not in SERVICES["kafka"]["command"]
    assert f'"{folder}/password"' in (REPOSITORY / "include/lakebound/local/container/broker.py").read_text()


def test_every_named_volume_is_declared_and_used() -> None:
    used = {volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert {name for name in used if not name.startswith(".")} == set(COMPOSE["volumes"])


def test_ports_are_published_on_the_loopback_only() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize("name", [name for name in sorted(SERVICES) if name.startswith("airflow-")])
def test_airflow_s_variables_are_options_of_this_airflow(name: str) -> None:
    known = {
        f"AIRFLOW__{section.upper()}__{option.upper()}"
        for section, body in conf.configuration_description.items()
        for option in body["options"]
    }
    for variable in environment(name):
        if variable.startswith("AIRFLOW__"):
            assert variable.removesuffix("_CMD") in known


def test_all_of_airflow_s_components_are_told_the_same() -> None:
    told = [environment(name) for name in SERVICES if name.startswith("airflow-")]
    assert all(one == told[0] for one in told)


def test_every_variable_of_lakebound_is_on_the_page_of_variables() -> None:
    page = (REPOSITORY / "docs" / "environment.md").read_text()
    named = set(re.findall(r"LAKEBOUND_[A-Z_]+", TEXT + (REPOSITORY / "Dockerfile").read_text()))
    assert {name for name in named if f"`{name}`" not in page} == set()


def test_the_pool_of_maintenance_is_made() -> None:
    assert f"airflow pools set {MAINTENANCE_POOL} 1 " in " ".join(SERVICES["airflow-init"]["command"])


@pytest.mark.parametrize("name", ["orders", "sensor_readings"])
def test_the_pipelines_are_the_examples_with_a_login(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kafka").write_text("word")
    monkeypatch.setenv("LAKEBOUND_SECRETS_FOLDER", str(tmp_path))
    folders = {"example": "include", "container": "deploy"}
    found = {
        kind: load_pipeline(
            name,
            load_settings(
                {
                    "LAKEBOUND_PIPELINES": str(REPOSITORY / folder / "pipelines"),
                    "LAKEBOUND_APPS": str(REPOSITORY / "spark_apps"),
                    "LAKEBOUND_KAFKA": "kafka:9092",
                }
            ),
        )
        for kind, folder in folders.items()
    }
    sasl = found["container"].connection.sasl
    assert sasl is not None
    assert sasl.username == "lakebound"
    without = {kind: spec.model_dump(exclude={"connection", "warehouse", "spark"}) for kind, spec in found.items()}
    assert without["container"] == without["example"]
    assert found["container"].spark.max_cores == 1, "each executor is a JVM of the one machine"
    assert found["container"].warehouse == ("lake" if name == "sensor_readings" else "default")


def test_the_expectations_are_those_of_the_examples() -> None:
    for file in (REPOSITORY / "include" / "expectations").glob("*.yaml"):
        assert (REPOSITORY / "deploy" / "expectations" / file.name).read_text() == file.read_text()


def test_on_the_host_s_network_every_name_is_the_loopback() -> None:
    changed = on_host_network(COMPOSE)["services"]
    for name, service in changed.items():
        assert "ports" not in service
        if name != "secrets":
            assert service["network_mode"] == "host"
            assert service["extra_hosts"].keys() >= SERVICES.keys()


def test_streams_and_what_they_need_have_a_larger_share_of_a_busy_machine_than_airflow_s_tasks() -> None:
    shares = {name: SERVICES[name]["cpu_shares"] for name in SERVICES}
    assert {name for name, share in shares.items() if share < 1024} == {"airflow-scheduler", "airflow-dag-processor"}


def test_the_example_s_catalog_has_one_connection_to_its_file() -> None:
    catalog = environment("iceberg-catalog")
    assert catalog["CATALOG_URI"].startswith("jdbc:sqlite:") and catalog["CATALOG_CLIENTS"] == "1"


def test_the_page_on_digests_names_every_image_of_others() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "deploy.md").read_text().partition("## Images by digest")[2].partition("\n## ")[0]
    asked = re.search(r"for image in (.+); do", page)
    assert asked is not None
    base = re.findall(r"^ARG BASE_IMAGE=(\S+)$", (REPOSITORY / "Dockerfile").read_text(), re.MULTILINE)
    foreign = {name: service["image"] for name, service in SERVICES.items() if name not in OWN}
    assert sorted(asked.group(1).split()) == sorted([*base, *foreign.values()])
    override = yaml.safe_load(page.partition("```text\n")[2].partition("```")[0])["services"]
    assert {name: one["image"].partition("@")[0] for name, one in override.items() if "image" in one} == {
        name: image.partition(":")[0] for name, image in foreign.items()
    }
    builds = {name for name, service in SERVICES.items() if "build" in service}
    assert {name for name, one in override.items() if "build" in one} == builds
