"""What a pipeline may say about its Spark: refused with the reason, and a secret is never repeated."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.errors import InvalidSpecError
from lakebound.settings import Settings, YamlAccess
from lakebound.spec.author_rules import ALLOWED, refused_to_authors
from lakebound.spec.load import load_file, load_pipelines
from lakebound.spec.spark import InstallationSpark, SparkSettingsError, SparkSpec, installation_spark, merged
from lakebound.spec.spark_rules import TUNABLE, refused_name, refused_value

__all__ = ["settings"]
SECRET = "hunter2-very-secret"


def problems_of(settings: Settings, spark: str) -> list[str]:
    """Return what is said of a file with these lines below ``spark``."""
    path = write(settings, RIGHT + "spark:\n" + spark)
    with pytest.raises(InvalidSpecError) as caught:
        load_file(path, settings)
    return [problem.removeprefix(f"{settings.pipelines}/orders.yaml:") for problem in caught.value.problems]


def test_what_is_right_is_kept(settings: Settings) -> None:
    text = "  driver_memory: 2g\n  executor_cores: 2\n  max_cores: 4\n  conf:\n    spark.network.timeout: 90s\n"
    found = load_file(write(settings, RIGHT + "spark:\n" + text), settings).spark
    assert found == SparkSpec(driver_memory="2g", executor_cores=2, max_cores=4, conf={"spark.network.timeout": "90s"})


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
        "  conf:\n    spark.rdd.compress: true\n",
        '14: spark.conf.spark.rdd.compress: must be text, not true; write "true"',
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
    "code, which the installation prepared": (
        "  conf:\n    spark.eventLog.dir: file:///tmp\n",
        "14: spark.conf.spark.eventLog.dir: can only be set by whoever installs Lakebound; write 'profile: NAME' under 'spark' "
        "instead, with a profile of installation.yaml that sets it, or let them allow it by "
        "LAKEBOUND_SPARK_ALLOWED=spark.eventLog.dir (docs/how-to/backends.md)",
    ),
    "a value of another kind": (
        "  conf:\n    spark.network.timeout: soon\n",
        "14: spark.conf.spark.network.timeout: must be a duration such as 500ms, 30s or 5min",
    ),
    "a profile that nobody prepared": (
        "  profile: event-log\n",
        "13: spark.profile: installation.yaml has no profile 'event-log'; its profiles are: none",
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
    line, _ = problems_of(settings, f"  conf:\n    spark.hadoop.fs.s3a.endpoint: https://me:{SECRET}@s3.example.com\n")
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
def test_resources_tuning_and_observation_may_be_given_by_the_installation(name: str) -> None:
    assert refused_name(name) is None


RUNS_CODE_OR_SENDS = [
    "spark.driver.resource.gpu.discoveryScript",
    "spark.executor.resource.gpu.discoveryScript",
    "spark.driver.resource.gpu.vendor",
    "spark.resources.discoveryPlugin",
    "spark.python.daemon.module",
    "spark.python.worker.module",
    "spark.executorEnv.PYTHONPATH",
    "spark.executorEnv.LD_PRELOAD",
    "spark.metrics.conf",
    "spark.metrics.conf.*.sink.any.class",
    "spark.ui.filters",
    "spark.org.example.Filter.param.a",
    "spark.shuffle.sort.io.plugin.class",
    "spark.io.compression.codec",
    "spark.eventLog.dir",
    "spark.eventLog.enabled",
    "spark.eventLog.logStageExecutorMetrics",
    "spark.hadoop.fs.s3a.endpoint",
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "spark.hadoop.fs.s3a.impl",
    "spark.hadoop.hadoop.security.credential.provider.path",
    "spark.hadoop.hadoop.security.group.mapping",
    "spark.driver.host",
    "spark.driver.bindAddress",
    "spark.driver.log.dfsDir",
    "spark.local.dir",
    "spark.authenticate",
    "spark.network.crypto.enabled",
    "spark.rpc.io.serverThreads",
    "spark.scheduler.allocation.file",
    "spark.scheduler.listenerbus.eventqueue.appStatus.capacity",
    "spark.kubernetes.container.image",
    "spark.storage.decommission.fallbackStorage.path",
    "spark.hadoopRDD.ignoreEmptySplits",
    "spark.unsafe.exceptionOnMemoryLeak",
    "spark.not.known.yet",
]


@pytest.mark.parametrize("name", RUNS_CODE_OR_SENDS)
def test_what_runs_code_or_sends_data_is_not_the_authors_to_set(settings: Settings, name: str) -> None:
    (line,) = problems_of(settings, f"  conf:\n    {name}: 'anything'\n")
    assert line.startswith(f"14: spark.conf.{name}: can only be set by whoever installs Lakebound; write 'profile: NAME'")


@given(st.from_regex(r"spark(\.[A-Za-z*_]{1,12}){1,4}", fullmatch=True), st.text(max_size=20))
def test_whatever_is_not_on_the_list_is_refused(name: str, value: str) -> None:
    if name not in ALLOWED:
        assert refused_to_authors(name, value, YamlAccess(), {}) is not None


@given(st.sampled_from(sorted(ALLOWED)), st.text(max_size=30))
def test_a_value_on_the_list_is_a_plain_number_or_word(name: str, value: str) -> None:
    if refused_to_authors(name, value, YamlAccess(), {}) is None:
        assert re.fullmatch(r"[-.0-9A-Za-z]{1,20}", value) and value.isascii()


def test_nothing_on_the_list_is_refused_to_everybody_or_holds_a_path() -> None:
    assert all(refused_name(name) is None for name in ALLOWED)
    dangerous = re.compile(
        r"(class|dir|path|file|script|module|plugin|codec|filters?|endpoint|host|url|address|impl|provider)s?$", re.I
    )
    assert not [name for name in ALLOWED if dangerous.search(name.replace("shuffle.file.buffer", ""))]
    assert TUNABLE <= ALLOWED.keys()


def installed(settings: Settings, text: str) -> None:
    (settings.pipelines.parent / "installation.yaml").write_text(text)


EVENT_LOG = """\
spark_profiles:
  event-log:
    max_cores: 4
    conf: {spark.eventLog.enabled: "true", spark.eventLog.dir: "file:///var/log/spark-events", spark.network.timeout: 60s}
"""


def test_a_profile_gives_what_whoever_installs_lakebound_prepared(settings: Settings) -> None:
    installed(settings, EVENT_LOG)
    text = "spark:\n  profile: event-log\n  driver_memory: 2g\n  conf: {spark.network.timeout: 90s}\n"
    found = load_file(write(settings, RIGHT + text), settings).spark
    assert found == SparkSpec(
        profile="event-log",
        driver_memory="2g",
        max_cores=4,
        conf={
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": "file:///var/log/spark-events",
            "spark.network.timeout": "90s",
        },
    )
    assert SparkSpec.model_validate_json(found.model_dump_json()) == found
    assert load_pipelines(settings).specs["orders"].spark == found


def test_a_setting_that_a_profile_has_names_the_profile(settings: Settings) -> None:
    installed(settings, EVENT_LOG)
    (line,) = problems_of(settings, "  conf:\n    spark.eventLog.dir: file:///tmp\n")
    assert line.endswith("write 'profile: event-log' under 'spark' instead, which sets it to their value")


def test_a_profile_and_a_pipeline_that_cannot_be_together_are_told(settings: Settings) -> None:
    installed(settings, "spark_profiles: {small: {max_cores: 1}}\n")
    (line,) = problems_of(settings, "  profile: small\n  executor_cores: 2\n")
    assert "executor_cores is 2 and max_cores is 1" in line


def test_a_wrong_installation_file_is_told_and_gives_nothing(settings: Settings) -> None:
    installed(settings, "spark_profiles: {Small: {conf: {spark.jars: a}}}\n")
    write(settings, RIGHT + "spark:\n  profile: Small\n")
    told = "\n".join(load_pipelines(settings).problems)
    assert "installation.yaml:1: spark_profiles.Small.conf.spark.jars: cannot be set here: it loads code" in told
    assert "orders.yaml:13: spark.profile: installation.yaml has no profile 'Small'" in told


@pytest.mark.parametrize(
    ("allowed", "is_right"), [("spark.eventLog.", True), ("spark.eventLog.dir", True), ("spark.event", False)]
)
def test_whoever_installs_lakebound_may_allow_more(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, allowed: str, is_right: bool
) -> None:
    monkeypatch.setenv("LAKEBOUND_SPARK_ALLOWED", f"spark.ui.prometheus.enabled, {allowed}")
    path = write(settings, RIGHT + "spark:\n  conf:\n    spark.eventLog.dir: file:///tmp\n")
    assert (load_pipelines(settings).mistakes == {}) is is_right
    path.write_text(path.read_text().replace("spark.eventLog.dir", "spark.jars"))
    assert load_pipelines(settings).mistakes, "what nobody may set is not allowed by it"


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
