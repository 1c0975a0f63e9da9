"""What each library is told of an object store."""

from __future__ import annotations

import pytest

from lakebound.errors import ForbiddenSecretError, MissingSecretError
from lakebound.spec.connection import SecretRef
from lakebound.spec.warehouse import StoreSpec
from lakebound.storage.location import Location
from lakebound.storage.options import delta_options, obstore_options, pyiceberg_options

KEYS = StoreSpec(
    endpoint="http://store:9000",
    access_key_id=SecretRef(env="LAKEBOUND_SECRET_KEY"),
    secret_access_key=SecretRef(env="LAKEBOUND_SECRET_VALUE"),
)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_KEY", "key")
    monkeypatch.setenv("LAKEBOUND_SECRET_VALUE", "value")


@pytest.mark.usefixtures("keys")
def test_every_library_gets_address_and_keys() -> None:
    assert obstore_options(KEYS)["endpoint"] == "http://store:9000"
    assert (obstore_options(KEYS)["access_key_id"], obstore_options(KEYS)["secret_access_key"]) == ("key", "value")
    assert obstore_options(KEYS)["client_options"]["allow_http"] is True
    delta = delta_options(KEYS)
    assert (delta["aws_access_key_id"], delta["aws_allow_http"], delta["aws_conditional_put"]) == ("key", "true", "etag")
    iceberg = pyiceberg_options(KEYS)
    assert (iceberg["s3.endpoint"], iceberg["s3.secret-access-key"]) == ("http://store:9000", "value")


def test_without_keys_the_machine_s_own_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    own = StoreSpec()
    of_aws = {name: value for name, value in delta_options(own).items() if name.startswith("aws_")}
    assert of_aws == {"aws_region": "eu-central-1", "aws_conditional_put": "etag"}
    assert pyiceberg_options(own) == {"s3.region": "eu-central-1"}
    assert obstore_options(own)["client_options"]["allow_http"] is False


@pytest.mark.parametrize("options", [obstore_options, delta_options, pyiceberg_options])
def test_a_missing_key_is_named_by_its_field(options: object) -> None:
    assert callable(options)
    with pytest.raises(MissingSecretError, match=r"store\.access_key_id: environment variable LAKEBOUND_SECRET_KEY"):
        options(KEYS)
    elsewhere = KEYS.model_copy(update={"access_key_id": SecretRef(env="PATH")})
    with pytest.raises(ForbiddenSecretError, match=r"store\.access_key_id"):
        options(elsewhere)


@pytest.mark.usefixtures("keys")
def test_an_address_shows_no_key() -> None:
    assert "value" not in repr(Location("s3://bucket/x", KEYS)) and "value" not in repr(KEYS)
