# One image for Airflow, Spark and the Kafka of docker-compose.yaml: the same environment in the same place everywhere.
# docs/how-to/deploy.md says how to run it. State, tables, logs and temporary files are on volumes; the rest may be read-only.

# By digest, if you have compared it: --build-arg BASE_IMAGE=python@sha256:… (docs/how-to/deploy.md).
ARG BASE_IMAGE=python:3.11-slim-bookworm
FROM ${BASE_IMAGE} AS base
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/*


FROM base AS build
WORKDIR /opt/lakebound
ENV VIRTUAL_ENV=/opt/lakebound/.venv \
    PATH=/opt/lakebound/.venv/bin:/opt/uv/bin:/usr/local/bin:/usr/bin:/bin \
    PIP_NO_CACHE_DIR=1 \
    UV_NO_CACHE=1 \
    UV_LINK_MODE=copy
COPY requirements.lock requirements-image.lock ./
# The Python packages, by the hashes of their lock: all but those that only tests and linters need. uv stays behind.
RUN python -m venv /opt/uv \
 && awk '/^uv==/ {inside = 1} inside {print; if ($0 !~ /\\$/) exit}' requirements.lock > /tmp/uv.lock \
 && /opt/uv/bin/python -m pip install --quiet --require-hashes --requirement /tmp/uv.lock \
 && python -m venv --without-pip .venv \
 && uv pip sync --quiet --require-hashes requirements-image.lock
COPY ivy.xml jars.sha256 ./
COPY include/lakebound include/lakebound
# The jars, by their recorded SHA-256 sums. All get one time of change in whole seconds: layers keep no more, and the class
# archive compares it.
RUN PYTHONPATH=include LAKEBOUND_JARS=/tmp/lakebound/jars python -m lakebound.local.jars \
 && mv /tmp/lakebound/jars jars \
 && rm -rf /tmp/lakebound \
 && find jars .venv/lib/python3.11/site-packages/pyspark/jars -name '*.jar' -exec touch --date=@1700000000 {} +
COPY . .
# What builds this package comes from the lock, too, and stays in a folder of its own. All that is installed must have what it needs.
RUN uv pip install --quiet --no-deps --build-constraints requirements.lock --editable . \
 && uv pip check \
 && { python -m compileall -q -j 0 -x '/(tests|testing|test)/' .venv/lib include plugins spark_apps > /dev/null || true; } \
 && chmod -R a+rX . \
 && rm -rf /tmp/* requirements.lock requirements-image.lock ivy.xml jars.sha256


FROM base
# Nobody logs in as this user; it owns what is on the volumes, and nothing of the installation.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin lakebound \
 && install --directory --owner=lakebound --group=lakebound --mode=0700 \
      /run/secrets /run/secrets/channels /run/secrets/registries /run/secrets/warehouses \
      /run/lakebound/airflow /run/lakebound/cli /run/lakebound/database /run/lakebound/kafka \
      /var/lib/airflow /var/lib/iceberg-catalog /var/lib/kafka /var/lib/object-store \
 && install --directory --owner=lakebound --group=lakebound --mode=0711 \
      /var/lib/lakebound /var/lib/lakebound/state /var/lib/lakebound/warehouse /var/lib/lakebound/spark /var/log/airflow
ENV PATH=/opt/lakebound/.venv/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    LAKEBOUND_HOME=/var/lib/lakebound/state \
    LAKEBOUND_WAREHOUSE=/var/lib/lakebound/warehouse \
    LAKEBOUND_PIPELINES=/opt/lakebound/include/pipelines \
    LAKEBOUND_REFERENCES=/opt/lakebound/include/references \
    LAKEBOUND_APPS=/opt/lakebound/spark_apps \
    LAKEBOUND_JARS=/opt/lakebound/jars \
    AIRFLOW_HOME=/var/lib/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/lakebound/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/lakebound/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    AIRFLOW__LOGGING__BASE_LOG_FOLDER=/var/log/airflow
WORKDIR /opt/lakebound
COPY --from=build /opt/lakebound /opt/lakebound
# Applications start ten seconds sooner with it. It is made here because it fits only this Java and these jars; the broker that
# it needs is one of the jars, and ends with the step.
RUN python -m lakebound.local.training_run \
 && test -n "$(ls .venv/class-archive/*.jsa)" \
 && rm -rf /tmp/* /var/lib/airflow/* /var/lib/lakebound/state/*
USER lakebound
ENTRYPOINT ["tini", "--"]
CMD ["lakebound", "--help"]
