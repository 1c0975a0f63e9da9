"""The Dockerfile as text: installed from the locks, run by nobody in particular, and no file of the machine in it."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
TEXT = (REPOSITORY / "Dockerfile").read_text()
STAGES = re.split(r"^FROM ", TEXT, flags=re.MULTILINE)[1:]
IGNORED = (REPOSITORY / ".dockerignore").read_text().splitlines()


def test_the_base_image_is_pinned() -> None:
    images = {stage.split()[0] for stage in STAGES}
    assert images == {"python:3.11-slim-bookworm", "base"}


def test_packages_and_jars_come_from_the_locks() -> None:
    assert "uv pip sync --quiet --require-hashes requirements.lock" in TEXT
    assert "--require-hashes --requirement /tmp/uv.lock" in TEXT
    assert "python -m lakebound.local.jars" in TEXT
    installs = re.findall(r"(?:pip install|uv pip install) [^\\&]*", TEXT)
    assert all("--require-hashes" in one or "--no-deps" in one for one in installs)


def test_the_image_s_user_has_no_rights() -> None:
    users = re.findall(r"^USER (\S+)", STAGES[-1], re.MULTILINE)
    assert users == ["lakebound"]
    assert "chown" not in TEXT, "the installation is nobody's but root's"


def test_what_compiles_and_tests_stays_behind() -> None:
    assert "uv pip uninstall" in TEXT
    assert re.search(r"^COPY --from=build /opt/lakebound /opt/lakebound$", STAGES[-1], re.MULTILINE)


def test_no_secret_is_given_to_the_build() -> None:
    assert not re.search(r"^(ARG|ENV).*(?i:password|secret|token|_key)", TEXT, re.MULTILINE)


def test_only_what_is_named_is_sent_to_the_build() -> None:
    assert IGNORED[1] == "*"
    sent = {line[1:] for line in IGNORED if line.startswith("!")}
    assert sent == {
        *("LICENSE", "README.md", "pyproject.toml", "requirements.lock", "ivy.xml", "jars.sha256"),
        *("dags", "deploy", "include", "plugins", "spark_apps"),
    }
    assert all((REPOSITORY / name).exists() for name in sent)
    assert {"include/alerts.yaml", "deploy/alerts.yaml", "**/__pycache__"} <= set(IGNORED)
