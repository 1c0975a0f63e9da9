"""The Dockerfile as text: installed from the locks, run by nobody in particular, and no file of the machine in it."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.support.syntax import nodes_of

REPOSITORY = Path(__file__).parents[3]
TEXT = (REPOSITORY / "Dockerfile").read_text()
STAGES = re.split(r"^FROM ", TEXT, flags=re.MULTILINE)[1:]
IGNORED = (REPOSITORY / ".dockerignore").read_text().splitlines()


def test_the_base_image_is_pinned() -> None:
    images = {stage.split()[0] for stage in STAGES}
    assert images == {"${BASE_IMAGE}", "base"}
    assert re.findall(r"^ARG BASE_IMAGE=(\S+)$", TEXT, re.MULTILINE) == ["python:3.11-slim-bookworm"]


def pins(name: str) -> set[tuple[str, str]]:
    """Return the packages of a lock, each with its version, condition and hashes."""
    text = (REPOSITORY / name).read_text()
    found = re.findall(r"^([a-z0-9._-]+)==(.*\n(?:    --hash.*\n)+)", text, re.MULTILINE)
    return {(name, " ".join(pin.replace("\\", "").split())) for name, pin in found}


def imported_packages(folder: Path) -> set[str]:
    """Return the names of all packages that the modules of a folder import, wherever in the module."""
    found: set[str] = set()
    for file in folder.rglob("*.py"):
        for node in nodes_of(file):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def test_the_image_s_lock_is_a_part_of_the_environment_s() -> None:
    image, environment = pins("requirements-image.lock"), pins("requirements.lock")
    assert image < environment, "run: make lock"
    assert not {"mypy", "pytest", "ruff", "uv"} & {name for name, _ in image}


def test_the_image_has_what_the_package_names() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["postgres"]]
    names = {name for name, _ in pins("requirements-image.lock")}
    assert {re.split(r"[^a-z0-9-]", one)[0] for one in wanted} <= names, "run: make lock"


def test_the_image_has_what_the_code_imports() -> None:
    names = {name for name, _ in pins("requirements-image.lock")} | {"lakebound"}
    distributions = packages_distributions()
    missing = {
        package
        for folder in ("dags", "include", "plugins", "spark_apps")
        for package in imported_packages(REPOSITORY / folder)
        if package in distributions and not names & {one.lower().replace("_", "-") for one in distributions[package]}
    }
    assert not missing, "only tests have these"


def test_packages_and_jars_come_from_the_locks() -> None:
    assert "uv pip sync --quiet --require-hashes requirements-image.lock" in TEXT
    assert "--build-constraints requirements.lock" in TEXT
    assert "--require-hashes --requirement /tmp/uv.lock" in TEXT
    assert "python -m lakebound.local.jars" in TEXT
    installs = re.findall(r"(?:pip install|uv pip install) [^\\&]*", TEXT)
    assert all("--require-hashes" in one or "--no-deps" in one for one in installs)


def test_the_image_s_user_has_no_rights() -> None:
    users = re.findall(r"^USER (\S+)", STAGES[-1], re.MULTILINE)
    assert users == ["lakebound"]
    assert "chown" not in TEXT, "the installation is nobody's but root's"


def test_the_image_s_user_may_read_what_a_checkout_of_a_strict_umask_has() -> None:
    build = TEXT.partition("COPY . .")[2].partition("FROM base")[0]
    assert "chmod -R a+rX ." in build


def test_what_compiles_and_installs_stays_behind() -> None:
    environments = re.findall(r"python -m venv (.*?)(?: \\)?$", TEXT, re.MULTILINE)
    assert environments == ["/opt/uv", "--without-pip .venv"]
    assert re.search(r"^COPY --from=build /opt/lakebound /opt/lakebound$", STAGES[-1], re.MULTILINE)


def test_no_secret_is_given_to_the_build() -> None:
    assert not re.search(r"^(ARG|ENV).*(?i:password|secret|token|_key)", TEXT, re.MULTILINE)


def test_only_what_is_named_is_sent_to_the_build() -> None:
    assert IGNORED[1] == "*"
    sent = {line[1:] for line in IGNORED if line.startswith("!")}
    assert sent == {
        *("LICENSE", "README.md", "pyproject.toml", "requirements.lock", "requirements-image.lock", "ivy.xml", "jars.sha256"),
        *("dags", "deploy", "include", "plugins", "spark_apps"),
    }
    assert all((REPOSITORY / name).exists() for name in sent)
    assert {"include/alerts.yaml", "deploy/alerts.yaml", "**/__pycache__"} <= set(IGNORED)
