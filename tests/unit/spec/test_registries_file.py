"""registries.yaml: what it gives, and that each mistake names its line and field, and never a secret."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakebound.errors import InvalidRegistriesError, UnknownRegistryError
from lakebound.settings import Settings, load_settings
from lakebound.spec.connection import SecretRef
from lakebound.spec.registries_file import find_registry, load_registries
from lakebound.spec.secret_bindings import OPERATORS_FOLDERS, SecretUse, binding_refusal
from lakebound.spec.secrets import read_operators_secret

RIGHT = """
registries:
  company:
    url: https://registry.example.com:8081/
    username: lakebound
    password: {env: LAKEBOUND_SECRET_REGISTRY}
    tls_ca_file: /etc/ssl/company.pem
    tls_certificate_file: /etc/ssl/lakebound.pem
    tls_key_file: registry.key
    tls_key_password: {file: registry-key-password}
    request_timeout_seconds: 3
  token:
    url: http://other/apis/ccompat/v7
    token: {file: other-token}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "pipelines").mkdir()
    return replace(load_settings({}), pipelines=tmp_path / "pipelines")


def write(settings: Settings, text: str) -> None:
    (settings.pipelines.parent / "registries.yaml").write_text(text)


def test_without_a_file_there_is_no_registry(settings: Settings) -> None:
    assert load_registries(settings) == {}
    with pytest.raises(
        UnknownRegistryError, match=r"no schema registry 'company' in .*registries.yaml; known registries: none"
    ):
        find_registry("company", settings)


def test_a_registry_is_found_by_its_name(settings: Settings) -> None:
    write(settings, RIGHT)
    assert sorted(load_registries(settings)) == ["company", "token"]
    company, token = find_registry("company", settings), find_registry("token", settings)
    assert company.url == "https://registry.example.com:8081" and company.request_timeout_seconds == 3
    assert sorted(company.secrets) == ["password", "tls_key_file", "tls_key_password"]
    assert company.secret_variables == ("LAKEBOUND_SECRET_REGISTRY",)
    assert token.secrets == {"token": SecretRef(file="other-token")} and token.secret_variables == ()
    with pytest.raises(UnknownRegistryError, match="known registries: company, token"):
        find_registry("default", settings)


MISTAKES = [
    ("url: https://registry.example.com:8081/", "url: registry:8081", "registries.yaml:4: registries.company.url: must be"),
    ("url: https://registry.example.com:8081/", "url: https://a,https://b", "company.url: give one address only"),
    (
        "url: https://registry.example.com:8081/",
        "url: https://a:1,https://b:1",
        "company.url: give one address only",
    ),
    (
        "url: https://registry.example.com:8081/",
        "url: https://a/x,https://b/x",
        "company.url: give one address only",
    ),
    ("url: https://registry.example.com:8081/", "url: https://a:hunter2@registry", "must not contain user and password"),
    ("url: https://registry.example.com:8081/", "url: https://registry/?key=hunter2", "must not contain"),
    ("url: https://registry.example.com:8081/", "url: https://registry:99999", "registries.company.url: must be"),
    ("url: https://registry.example.com:8081/", "url: http://registry", "only for an address that begins with https://"),
    ("    url: https://registry.example.com:8081/\n", "", "registries.company.url: is missing"),
    ("    username: lakebound\n", "", "give both username and password"),
    (
        "    username: lakebound\n",
        "    username: lakebound\n    token: {env: A}\n",
        "give either username and password, or token",
    ),
    ("{env: LAKEBOUND_SECRET_REGISTRY}", "hunter2", "registries.company.password: must say where the secret is stored"),
    ("{env: LAKEBOUND_SECRET_REGISTRY}", "{hunter2: }", "registries.company.password: must say where the secret is stored"),
    ("{file: registry-key-password}", "hunter2", "registries.company.tls_key_password: must say where the secret is stored"),
    ("{file: other-token}", "hunter2", "registries.token.token: must say where the secret is stored"),
    ("    tls_certificate_file: /etc/ssl/lakebound.pem\n", "", "give both tls_certificate_file and tls_key_file"),
    ("/etc/ssl/company.pem", "company.pem", "registries.company.tls_ca_file: must be an absolute path"),
    ("request_timeout_seconds: 3", "request_timeout_seconds: 0", "request_timeout_seconds"),
    ("    username:", "    user:", "did you mean 'username'?"),
    ("  company:", "  Company:", "'Company' must be lower-case"),
]


@pytest.mark.parametrize(("before", "after", "said"), MISTAKES)
def test_a_mistake_names_its_field_and_no_secret(settings: Settings, before: str, after: str, said: str) -> None:
    assert before in RIGHT
    write(settings, RIGHT.replace(before, after))
    with pytest.raises(InvalidRegistriesError) as caught:
        load_registries(settings)
    assert any(said in problem for problem in caught.value.problems), caught.value.problems
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("folder", OPERATORS_FOLDERS)
def test_a_secret_of_the_operators_has_a_folder_that_no_pipeline_may_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str
) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRETS_FOLDER", str(tmp_path))
    (tmp_path / folder).mkdir()
    (tmp_path / "key").write_text("of all")
    assert read_operators_secret(SecretRef(file="key"), "token", folder) == "of all"
    (tmp_path / folder / "key").write_text("own")
    assert read_operators_secret(SecretRef(file="key"), "token", folder) == "own"
    use = SecretUse(SecretRef(file=f"{folder}/key"), ("127.0.0.1:9092",))
    assert binding_refusal(use, "orders", None, tmp_path) is not None
