"""What a pipeline may say about its Spark: refused with the reason, and a secret is never repeated."""

from __future__ import annotations

import pytest
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.errors import InvalidSpecError
from lakebound.settings import Settings
from lakebound.spec.load import load_file
from lakebound.spec.spark import InstallationSpark, SparkSettingsError, SparkSpec, installation_spark, merged
from lakebound.spec.spark_rules import refused_name, refused_value

__all__ = ["settings"]
SECRET = "hunter2-very-secret"


def problems_of(settings: Settings, spark: str) -> list[str]:
    """Return what is said of a file with these lines below ``spark``."""
    path = write(settings, RIGHT + "spark:\n" + spark)
    with pytest.raises(InvalidSpecError) as caught:
        load_file(path, settings)
    return [problem.removeprefix(f"{settings.pipelines}/orders.yaml:") for problem in caught.value.problems]


def test_what_is_right_is_kept(settings: Settings) -> None:
    text = "  driver_memory: 2g\n  executor_cores: 2\n  max_cores: 4\n  conf:\n    spark.eventLog.enabled: 'true'\n"
    found = load_file(write(settings, RIGHT + "spark:\n" + text), settings).spark
    assert found == SparkSpec(driver_memory="2g", executor_cores=2, max_cores=4, conf={"spark.eventLog.enabled": "true"})


MISTAKES = {
    "no size": ("  driver_memory: 2\n", '13: spark.driver_memory: must be text, not 2; write "2"'),
    "a size without its unit": (
        "  driver_memory: '2048'\n",
        "13: spark.driver_memory: '2048' is not a size such as 512m or 2g",
    ),
    "too small for Spark": (
        "  executor_memory: 256m\n",
        "13: spark.executor_memory: 256m is too small: Spark needs 512m at least",
    ),
    "no core": ("  max_cores: 0\n", "13: spark.max_cores: must be greater than or equal to 1"),
    "unknown key": ("  memory: 1g\n", "13: spark.memory: unknown key; did you mean 'driver_memory'?"),
    "executors that never start": (
        "  executor_cores: 4\n  max_cores: 2\n",
        "12: spark: executor_cores is 4 and max_cores is 2: not even one executor would start",
    ),
    "a boolean": (
        "  conf:\n    spark.eventLog.enabled: true\n",
        '14: spark.conf.spark.eventLog.enabled: must be text, not true; write "true"',
    ),
    "a field of its own": (
        "  conf:\n    spark.driver.memory: 2g\n",
        "14: spark.conf.spark.driver.memory: is written as driver_memory, beside the other settings of Spark",
    ),
    "where it runs": (
        "  conf:\n    spark.master: local[8]\n",
        "14: spark.conf.spark.master: cannot be set here: the Airflow connection, or LAKEBOUND_SPARK_MASTER, says where "
        "applications run",
    ),
    "not of Spark": (
        "  conf:\n    fs.s3a.endpoint: http://s3\n",
        "14: spark.conf.fs.s3a.endpoint: is not a setting of Spark: their names begin with spark. "
        "(Hadoop's with spark.hadoop.)",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_at_its_line(settings: Settings, name: str) -> None:
    spark, problem = MISTAKES[name]
    assert problems_of(settings, spark) == [problem]


def test_every_wrong_setting_is_told_at_its_own_line(settings: Settings) -> None:
    lines = problems_of(settings, "  conf:\n    spark.app.name: a\n    spark.task.cpus: '1'\n    spark.jars: b\n")
    assert [line.partition(": cannot")[0] for line in lines] == ["14: spark.conf.spark.app.name", "16: spark.conf.spark.jars"]


@pytest.mark.parametrize("value", [SECRET, "12345678", f"{{a: {SECRET}}}", f"[{SECRET}]"])
@pytest.mark.parametrize("name", ["spark.hadoop.fs.s3a.access.key", "spark.authenticate.secret", "spark.ssl.keyPassword"])
def test_a_secret_is_refused_and_not_repeated(settings: Settings, name: str, value: str) -> None:
    text = "\n".join(problems_of(settings, f"  conf:\n    {name}: {value}\n"))
    assert "may hold a secret, which must never be written here" in text
    assert "connection.sasl" in text
    assert SECRET not in text
    assert "12345678" not in text


def test_a_login_in_an_address_is_a_secret_whatever_its_name(settings: Settings) -> None:
    (line,) = problems_of(settings, f"  conf:\n    spark.hadoop.fs.s3a.endpoint: https://me:{SECRET}@s3.example.com\n")
    assert line.startswith("14: spark.conf.spark.hadoop.fs.s3a.endpoint: has a login in an address")
    assert SECRET not in line


@pytest.mark.parametrize(
    "name",
    [
        "spark.submit.deployMode",
        "spark.driver.extraJavaOptions",
        "spark.driver.defaultJavaOptions",
        "spark.executor.extraJavaOptions",
        "spark.executor.extraClassPath",
        "spark.jars.packages",
        "spark.plugins",
        "spark.extraListeners",
        "spark.pyspark.python",
        "spark.serializer",
        "spark.sql.ansi.enabled",
        "spark.sql.caseSensitive",
        "spark.sql.catalog.ice.uri",
        "spark.sql.extensions",
        "spark.sql.session.timeZone",
        "spark.sql.streaming.checkpointLocation",
        "spark.hadoop.fs.file.impl",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version",
        "spark.hadoop.parquet.block.size",
        "spark.redaction.regex",
        "spark.ui.killEnabled",
    ],
)
def test_what_the_product_rests_on_is_not_given(name: str) -> None:
    assert (refused_name(name) or "").startswith("cannot be set here: ")


@pytest.mark.parametrize(
    "name",
    [
        "spark.authenticate",
        "spark.driver.host",
        "spark.driver.memoryOverhead",
        "spark.dynamicAllocation.enabled",
        "spark.eventLog.dir",
        "spark.executor.instances",
        "spark.files.maxPartitionBytes",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.kryoserializer.buffer.max",
        "spark.locality.wait",
        "spark.metrics.conf.*.sink.prometheusServlet.path",
        "spark.network.crypto.enabled",
        "spark.network.timeout",
        "spark.sql.shuffle.partitions",
        "spark.sql.streaming.metricsEnabled",
        "spark.ui.prometheus.enabled",
    ],
)
def test_resources_tuning_and_observation_may_be_given(name: str) -> None:
    assert refused_name(name) is None


def test_images_accounts_and_secrets_of_kubernetes_are_the_installations(settings: Settings) -> None:
    (line,) = problems_of(settings, "  conf:\n    spark.kubernetes.container.image: mine\n")
    assert "can only be set by whoever installs Lakebound" in line
    conf = {
        "spark.kubernetes.container.image": "registry/lakebound:1",
        "spark.kubernetes.container.image.pullSecrets": "registry",
        "spark.kubernetes.driver.secretKeyRef.LAKEBOUND_SECRET_ORDERS": "kafka:orders",
        "spark.kubernetes.authenticate.submission.oauthTokenFile": "/run/token",
    }
    assert installation_spark("here", {"conf": conf}).conf == conf
    with pytest.raises(SparkSettingsError, match="oauthToken: may hold a secret"):
        installation_spark("here", {"conf": {"spark.kubernetes.authenticate.submission.oauthToken": SECRET}})


def test_an_address_without_a_login_may_be_given() -> None:
    assert refused_value("http://s3.example.com:9000/a@b") is None


def test_a_later_layer_wins_setting_by_setting() -> None:
    installation = SparkSpec(driver_memory="2g", max_cores=4, conf={"spark.task.cpus": "1", "spark.network.timeout": "60s"})
    pipeline = SparkSpec(driver_memory="3g", conf={"spark.network.timeout": "90s"})
    assert merged(installation, pipeline) == InstallationSpark(
        driver_memory="3g", max_cores=4, conf={"spark.task.cpus": "1", "spark.network.timeout": "90s"}
    )
    assert merged() == InstallationSpark()


def test_layers_that_cannot_be_together_are_refused() -> None:
    with pytest.raises(SparkSettingsError, match=r"together: executor_cores is 4 and max_cores is 2"):
        merged(SparkSpec(max_cores=2), SparkSpec(executor_cores=4))


def test_what_an_installation_says_is_refused_without_its_values() -> None:
    body = {"driver_memory": "2", "conf": {"spark.ssl.keyPassword": SECRET, "spark.jars": SECRET}, "cores": SECRET}
    with pytest.raises(SparkSettingsError) as caught:
        installation_spark("connection 'lakebound_spark', extra", body)
    assert str(caught.value).startswith("connection 'lakebound_spark', extra: driver_memory: '2' is not a size")
    assert "conf.spark.ssl.keyPassword: may hold a secret" in str(caught.value)
    assert "cores: Extra inputs" in str(caught.value)
    assert SECRET not in str(caught.value)
