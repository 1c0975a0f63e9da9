"""What an application gets of Spark: memory, cores and settings, as a pipeline or an installation says. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError, model_validator

from lakebound.errors import LakeboundError
from lakebound.frozen import Frozen
from lakebound.spec.spark_rules import refused_name, refused_value

_MEMORY = re.compile(r"([1-9]\d{0,5})([mg])")
_LEAST_MEGABYTES = 512
"""Spark itself refuses a heap of less than 450 MB."""


class SparkSettingsError(LakeboundError):
    """What an installation says about Spark is wrong."""

    def __init__(self, where: str, problems: list[str]) -> None:
        super().__init__(f"{where}: {'; '.join(problems)}. See docs/how-to/backends.md")


def _memory(text: str) -> str:
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 512m or 2g")
    if int(match[1]) * (1024 if match[2] == "g" else 1) < _LEAST_MEGABYTES:
        raise ValueError(f"{text} is too small: Spark needs {_LEAST_MEGABYTES}m at least")
    return text


def _name(name: str) -> str:
    if refused := refused_name(name):
        raise ValueError(refused)
    return name


def _value(value: str) -> str:
    if refused := refused_value(value):
        raise ValueError(refused)
    return value


Memory = Annotated[str, AfterValidator(_memory)]
SettingName = Annotated[str, AfterValidator(_name)]
SettingValue = Annotated[str, AfterValidator(_value)]


class InstallationSpark(Frozen):
    """Resources and settings of Spark, as whoever installs Lakebound gives them: to all pipelines, or as a profile."""

    driver_memory: Memory | None = Field(
        default=None,
        description="Heap of the driver's JVM, such as 512m or 2g. Maintenance and validation use it, too. Default: 1g.",
    )
    driver_cores: int | None = Field(default=None, ge=1, description="Number of cores of a driver on a cluster. Default: 1.")
    executor_memory: Memory | None = Field(
        default=None, description="Heap of each executor on a cluster, such as 512m or 2g. Default: 1g."
    )
    executor_cores: int | None = Field(
        default=None,
        ge=1,
        description="Cores of each executor on a cluster. Default: one executor per worker, with as many cores as max_cores "
        "allows.",
    )
    max_cores: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of cores of all executors together on a cluster. Default: 2, so that the first pipeline "
        "does not take all cores.",
    )
    conf: dict[SettingName, SettingValue] = Field(
        default_factory=dict,
        description="Further settings of Spark that tune it, such as spark.sql.shuffle.partitions. Which ones there are: "
        "docs/how-to/backends.md. Whoever installs Lakebound can allow more.",
    )

    @model_validator(mode="after")
    def _executors_fit(self) -> InstallationSpark:
        if self.executor_cores is not None and self.max_cores is not None and self.executor_cores > self.max_cores:
            raise ValueError(
                f"executor_cores is {self.executor_cores} and max_cores is {self.max_cores}: not even one executor would start"
            )
        return self


class SparkSpec(InstallationSpark):
    """Resources and settings of Spark. A setting that is left out has the value of the installation, or else the default."""

    profile: str | None = Field(
        default=None,
        description="Name of a profile in installation.yaml: settings of Spark that whoever installs Lakebound prepared. What "
        "the pipeline sets itself wins.",
    )

    def with_profile(self, profile: InstallationSpark) -> SparkSpec:
        """Return these settings and, where they say nothing, those of a profile.

        Raises:
            SparkSettingsError: The two cannot be together.
        """
        both = merged(profile, self)
        return SparkSpec.model_validate({**both.model_dump(), "profile": self.profile})


def merged(*layers: InstallationSpark) -> InstallationSpark:
    """Return what all of them say together; a later one wins, setting by setting.

    Raises:
        SparkSettingsError: What they say together cannot be.
    """
    body: dict[str, object] = {}
    conf: dict[str, str] = {}
    for layer in layers:
        body |= layer.model_dump(exclude_none=True, exclude={"conf", "profile"})
        conf |= layer.conf
    return installation_spark("the settings of Spark of the pipeline and of the installation together", {**body, "conf": conf})


def installation_spark(where: str, body: Mapping[str, object]) -> InstallationSpark:
    """Return what an installation says about Spark.

    Args:
        where: What said it, for the message.
        body: As keys and values.

    Raises:
        SparkSettingsError: It is wrong; the message repeats no value that may be a secret.
    """
    try:
        return InstallationSpark.model_validate(body)
    except ValidationError as exc:
        raise SparkSettingsError(where, [_problem(one["loc"], one["msg"]) for one in exc.errors(include_input=False)]) from None


def _problem(location: tuple[str | int, ...], message: str) -> str:
    field = ".".join(str(key) for key in location if key != "[key]")
    what = message.removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{field}: {what}" if field else what
