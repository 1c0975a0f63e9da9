# Stands in for the image of versitygw: the program as `go install github.com/versity/versitygw/cmd/versitygw@v1.8.0` makes it,
# in the folder of the build, where the image has it.
ARG BASE
FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends wget && rm -rf /var/lib/apt/lists/*
COPY versitygw /usr/local/bin/versitygw
ENTRYPOINT ["versitygw"]
