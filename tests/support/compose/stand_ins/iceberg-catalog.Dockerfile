# Stands in for Iceberg's image of its REST catalog: the same classes from Maven, and a main class of the tests' own.
# In the folder of the build are `jars` (as `make test-cluster` resolves them) and `classes` (javac's output).
ARG BASE
FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends curl && rm -rf /var/lib/apt/lists/*
COPY jars /usr/lib/iceberg-rest/jars
COPY iceberg-rest-adapter.jar /usr/lib/iceberg-rest/
WORKDIR /usr/lib/iceberg-rest
CMD ["java", "-jar", "iceberg-rest-adapter.jar"]
