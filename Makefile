# Lakebound's commands. `make` alone lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The site's generator has an environment and a lock of its own: nothing else needs it.
DOCS_VENV := .venv-docs
DOCS_STAMP := $(DOCS_VENV)/.installed
# The first Python process of a shell finds the environment's commands (airflow, spark-submit) on the PATH.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONUNBUFFERED := 1
# Airflow starts a Python process for every task: without bytecode on disk each compiles its imports again.
unexport PYTHONDONTWRITEBYTECODE
COMPILED := airflow sqlalchemy pydantic aiohttp fastapi libcst rich jinja2 opentelemetry cryptography click pyspark/sql \
	pyiceberg deltalake great_expectations scipy altair marshmallow polars
# How many random kills `make chaos` makes; `make test` makes two, in tests/chaos/test_soak.py.
CHAOS_KILLS ?= 20
# pytest; what fails runs once more, alone, at the end, and what passes then is named.
PYTEST_TWICE := python -m tests.support.failed_again
# `make test-changed` runs the tests that can reach what changed since this revision.
SINCE ?= HEAD
# Where the end states of `make test-pauses` are kept until Spark has read them.
PAUSES ?= $(CURDIR)/.lakebound/pauses

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help install jars registry registry-parts class-archive demo up down status test test-unit test-real test-changed test-local test-enumeration test-generated test-power-cuts test-pauses test-readers test-values test-edits \
	test-spark test-integration test-airflow test-cluster \
	lint-beside-archive chaos bench bench-steady bench-at-rest bench-freshness bench-health bench-maintenance bench-maintained-freshness bench-validated-freshness \
	bench-outage-alerts bench-real-time bench-stored bench-syncing bench-decoding screenshots docs lint audit format lock lock-docs lock-jars clean

##@ Start here
help: ## List these commands
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  make %-26s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: install jars ## Start Kafka and Airflow, land a stream for a minute, prove it, and stop everything
	@lakebound demo

up: class-archive ## Start Kafka and Airflow and leave them running
	@lakebound up

status: install ## Show the services and the pipelines
	@lakebound status

down: install ## Stop the streams, Airflow and Kafka; the tables stay
	@lakebound down

##@ Set up
install: $(STAMP) ## Create the Python environment from the lock file; a second run does nothing

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null || { \
	  echo "Lakebound needs Python 3.11, 3.12 or 3.13 as '$(PYTHON)'; found: $$($(PYTHON) --version 2>&1)." \
	       "Install one, or give its path: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	  found=$$("$$java" -version 2>&1 | sed -n 's/.*version "\([^"]*\)".*/\1/p' | head -1); \
	  case "$$found" in 17 | 17[!0-9]* | 21 | 21[!0-9]*) ;; *) found="$${found:+is Java $$found}"; \
	  echo "Lakebound needs Java 17 or 21 for Spark, but $$java $${found:-cannot be started, or is no Java}." \
	       "Install one of them (for example the package openjdk-17-jre-headless), and set JAVA_HOME to its folder or put it" \
	       "first on the PATH" >&2; exit 1 ;; esac
	@[ -x $(BIN)/python ] || { echo "install: creating $(VENV)"; $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu install the package python3-venv" >&2; exit 1; }; }
	@awk '/^uv==/ {inside = 1} inside {print; if ($$0 !~ /\\$$/) exit}' requirements.lock > $(VENV)/uv.lock
	@[ "$$($(BIN)/uv --version 2>/dev/null | cut -d ' ' -f 2)" = "$$(sed -n 's/^uv==\([^ ]*\).*/\1/p' $(VENV)/uv.lock)" ] || { \
	  echo "install: installing uv, which installs the other packages"; $(BIN)/python -m pip install --quiet --require-hashes -r $(VENV)/uv.lock; }
	@echo "install: installing the locked packages (downloads about 1 GB the first time)"
	@VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/uv pip sync --require-hashes requirements.lock
	@VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/uv pip install --no-deps --no-build-isolation -e .
	@echo "install: compiling the packages that every process imports"
	@cd $(VENV)/lib/python3.*/site-packages && "$(CURDIR)/$(BIN)/python" -m compileall -q -j 0 $(COMPILED) > /dev/null || true
	@touch $@

jars: install ## Download the JVM jars and check their SHA-256 sums; correct jars are kept
	@python -m lakebound.local.jars

registry-parts: install
	@python -m tests.support.registry.parts

registry: registry-parts ## Run a schema registry in memory on port 8081, for the example avro_registry; Ctrl-C ends it
	@python -m tests.support.registry 8081

class-archive: jars ## Create the JVM class archives and missing bytecode once, so that applications and the broker start faster (about a minute)
	@python -m lakebound.local.training_run

##@ Test
test: lint-beside-archive test-unit test-real ## Run the tests that need no internet and no hours, also with a real Spark, broker and Airflow

# mypy needs one core for a minute, and so does the application that makes the class archive.
lint-beside-archive: install
	@$(MAKE) --no-print-directory lint & lint=$$!; \
	  $(MAKE) --no-print-directory class-archive; archive=$$?; \
	  wait $$lint && exit $$archive

test-unit: install ## Run the tests without a JVM and without Airflow's database, and a part of the enumeration
	@echo "== unit tests, and a part of the crash prefixes and corruptions"
	@$(PYTEST_TWICE) -q -m "unit or enumeration" -n 2 tests/unit

test-generated: install ## Run the unit tests with generated examples that are new each time (`make test` tries the same ones)
	@echo "== unit tests with new examples"
	@LAKEBOUND_CHAOS=full pytest -q -m unit -n 2 tests/unit

# One run of all: the tests of Airflow mostly wait, and others use the cores meanwhile. What one process must do alone comes first,
# and short tests last, so that the processes end together.
test-real: class-archive registry-parts ## Run the tests with real tables and processes, a real Airflow, broker and Spark, and two random kills under load
	@echo "== tests with real parts: tables, processes, Airflow, Kafka, Spark, and random kills under load ('make chaos' makes $(CHAOS_KILLS))"
	@$(PYTEST_TWICE) -m "airflow or chaos or integration or spark or local" tests/airflow tests/spark tests/chaos tests/integration tests/local \
	  -n 5 --dist loadgroup --no-loadscope-reorder --durations=10

test-changed: class-archive registry-parts lint ## Run lint and the tests that can reach what changed since a revision (SINCE=HEAD: what is not committed)
	@tests=$$(python -m tests.support.reached_tests $(SINCE)); \
	  [ -n "$$tests" ] || { echo "== no test can reach what changed since $(SINCE)"; exit 0; }; \
	  echo "== $$(echo "$$tests" | wc -l) files of tests can reach what changed since $(SINCE)"; \
	  $(PYTEST_TWICE) -m "not enumeration" $$tests -n 4 --dist loadgroup --no-loadscope-reorder --durations=5

test-local: install ## Run every case of the tests with real tables and processes, without a JVM (`make test` runs a part of them)
	@echo "== tests with real tables and processes"
	@LAKEBOUND_CHAOS=full pytest -q -m local -n 2 tests/local

test-pauses: class-archive ## Suspend writers, maintenance and rewinds at every file operation; Spark reads each end state
	@echo "== every pause; a sample of it is in test-local and test-spark"
	@rm -rf $(PAUSES) && mkdir -p $(PAUSES)
	@LAKEBOUND_PAUSES=full LAKEBOUND_PAUSES_KEPT=$(PAUSES) pytest -q -s -n 2 --timeout 7200 tests/local/pauses
	@cat $(PAUSES)/counts.txt
	@LAKEBOUND_PAUSES=full LAKEBOUND_PAUSES_KEPT=$(PAUSES) pytest -q -s tests/spark/test_pauses.py
	@rm -rf $(PAUSES)

test-enumeration: install ## Run the doctor on every crash prefix and corruption, without a JVM (`make test` runs a part of them)
	@echo "== every crash prefix and corruption"
	@LAKEBOUND_CHAOS=full pytest -q -m enumeration -n 2 $$(grep -rl --include='test_*.py' mark.enumeration tests/unit)

test-power-cuts: install ## Test every state that a power cut can leave of every kind of work (`make test` tests a sample)
	@echo "== every state that a power cut may leave"
	@LAKEBOUND_POWER_CUTS=all pytest -q -rP -n 2 tests/local/power/test_power_cuts.py tests/local/power/test_power_cuts_ext4.py

test-spark: class-archive ## Run every case of the tests with a local Spark (`make test` runs a part of them)
	@LAKEBOUND_CHAOS=full pytest -m spark tests/spark -n 2 --dist loadfile --durations=5

test-readers: class-archive ## Test every reader with every predicate on generated tables (about an hour); LAKEBOUND_READERS_SEED=2 makes other tables
	@echo "== every reader sees the same rows"
	@LAKEBOUND_READERS=full pytest -q -m "local or spark" tests/local/readers/test_reader_rows.py tests/local/readers/test_reader_bugs.py \
	  tests/spark/test_reader_rows.py -n 2 --dist loadfile --no-loadscope-reorder --durations=5

test-integration: class-archive registry-parts ## Run every case of the tests with a real broker (`make test` runs a part of them)
	@LAKEBOUND_CHAOS=full pytest -m integration tests/integration -n 2 --dist loadfile --durations=5

test-edits: class-archive ## Test every edit of a pipeline's YAML on each kind of table: check, start, and the rows that each reader sees (5 minutes)
	@LAKEBOUND_CHAOS=full pytest -q tests/spark/test_edits.py -n 0

test-airflow: class-archive ## Run every test with a real Airflow (`make test` runs a part of them)
	@echo "== tests with a real Airflow"
	@LAKEBOUND_CHAOS=full pytest -m airflow tests/airflow tests/integration --durations=5

test-values: class-archive ## Test every value of every type, with each partitioning, in all three lanes (10 minutes)
	@LAKEBOUND_VALUES=full pytest -m spark -n 0 -s tests/spark/test_every_value.py --durations=5

chaos: class-archive ## Test crash points, zombies and 20 random kills (CHAOS_KILLS=20); MINUTES=30 runs the soak test instead
	@LAKEBOUND_CHAOS=full LAKEBOUND_CHAOS_KILLS=$(CHAOS_KILLS) LAKEBOUND_SOAK_MINUTES=$(MINUTES) \
	  pytest -m chaos --durations=5 $(if $(MINUTES),-s tests/chaos/test_soak.py,-n 2 --deselect tests/chaos/test_soak.py)

test-cluster: class-archive ## Test a stream on two Spark workers with versitygw and Iceberg's REST catalog, with kills (up to 10 minutes; needs Go and a JDK)
	@python -m tests.support.cluster.parts
	@LAKEBOUND_CLUSTER=full pytest -m chaos tests/chaos/test_cluster.py -n 0 --durations=5

bench: class-archive ## Measure Lakebound, Flink, Kafka Connect and plain Spark side by side (takes hours; continues where it was stopped)
	@PYTHONPATH=. python bench/compare.py
	@PYTHONPATH=. python bench/drain.py

bench-decoding: install ## Measure the time to decode a record in each format, by records at once (one minute)
	@python bench/decoding.py

bench-steady: class-archive ## Measure one stream with maintenance for half an hour: p99/p50 and the cost of a commit (35 minutes, twice)
	@python bench/steady.py --freshness 250ms
	@python bench/steady.py --freshness 0ms

bench-at-rest: class-archive ## Measure the resources of a pipeline at one record per second (about 30 minutes)
	@python bench/at_rest.py

bench-freshness: class-archive ## Measure the freshness that an independent reader sees (about 13 minutes)
	@python bench/freshness.py

bench-stored: class-archive ## Measure freshness on an object store, also with 30 ms on each request, beside a local disk (about 8 minutes)
	@PYTHONPATH=. python bench/stored.py

bench-syncing: class-archive ## Measure the cost of commits that survive a power cut (about 12 minutes)
	@python bench/syncing.py

bench-health: install ## Measure the time to read the health of a table of 10,000 files (about 5 minutes)
	@python bench/health.py

bench-maintenance: class-archive ## Measure commits while a table grows, with and without maintenance (about 25 minutes)
	@python bench/maintenance.py

bench-maintained-freshness: class-archive ## Measure freshness with and without maintenance (about 25 minutes)
	@python bench/maintained_freshness.py

bench-validated-freshness: class-archive ## Measure freshness with and without validation (about 25 minutes)
	@python bench/validated_freshness.py

bench-real-time: class-archive ## Measure from topic to topic, in real time, in batches, and Flink (2 hours; continues where it was stopped)
	@python bench/real_time.py --part latency
	@python bench/real_time.py --part replay
	@python bench/real_time.py --part idle

bench-outage-alerts: class-archive ## Count the alert messages during a broker outage of 30 minutes (about 40 minutes)
	@python bench/outage_alerts.py

##@ Develop
docs: install $(DOCS_STAMP) ## Build the documentation as a site in build/docs/html; a broken link fails
	@echo "== documentation"
	@python docs/site/assemble.py build/docs/source
	@$(DOCS_VENV)/bin/sphinx-build -q -W --keep-going -b html -c docs/site build/docs/source build/docs/html
	@echo "docs: build/docs/html/index.html"

$(DOCS_STAMP): requirements-docs.lock $(STAMP)
	@echo "docs: installing the site's generator in $(DOCS_VENV)"
	@uv venv --quiet --clear --python $(BIN)/python $(DOCS_VENV)
	@VIRTUAL_ENV="$(CURDIR)/$(DOCS_VENV)" uv pip sync --quiet --require-hashes requirements-docs.lock
	@touch $@

lint: install ## Run ruff, mypy and the check of import rules
	@echo "== ruff, mypy, import-linter"
	@ruff check .
	@ruff format --check .
	@mypy
	@lint-imports --no-logo

audit: install ## Ask the OSV database for known vulnerabilities of the locked Python packages; OFFLINE=all.zip asks a copy of it
	@python -m lakebound.local.audit requirements.lock $(if $(OFFLINE),--offline $(OFFLINE))

screenshots: install ## Take the pictures of the page in docs/images, with made-up pipelines; needs Chromium
	@python -m tests.support.airflow.screenshots docs/images

measure-page: install ## Measure requests, bytes and times of the page with 100 made-up pipelines; needs Chromium
	@python -m tests.support.airflow.page_measures

format: install ## Fix and format the code with ruff
	@ruff check --fix .
	@ruff format .

lock: ## Resolve the Python lock files again: that of the environment, and its part for the image
	uv pip compile --universal --generate-hashes --extra dev --extra postgres pyproject.toml -o requirements.lock
	uv pip compile --universal --generate-hashes --extra postgres --no-annotate --constraint requirements.lock pyproject.toml -o requirements-image.lock

lock-docs: install ## Resolve the lock file of the documentation's generator again
	uv pip compile --universal --python-version 3.11 --generate-hashes --group docs -o requirements-docs.lock

lock-jars: install ## Resolve ivy.xml again and record the SHA-256 sums
	python -m lakebound.local.jars --record

clean: ## Remove the environment and the caches; tables and jars stay
	rm -rf $(VENV) $(DOCS_VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find bench dags docs include plugins spark_apps tests -name __pycache__ -type d -prune -exec rm -rf {} +
