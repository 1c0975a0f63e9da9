# Stands in for the image of PostgreSQL where no registry is reached: Debian's packages, and what the real entry point does first.
ARG BASE
FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends postgresql-15 gosu \
 && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/15
COPY postgres-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PGDATA=/var/lib/postgresql/data
RUN install --directory --owner=postgres --group=postgres --mode=0700 /var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
ENTRYPOINT ["bash", "/usr/local/bin/docker-entrypoint.sh"]
