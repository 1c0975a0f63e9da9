"""The JVM jars: resolved by the Ivy that ships inside pyspark, and used only if their SHA-256 sums are the recorded ones.

``python -m lakebound.local.jars`` makes the folder right, or says which file is refused. When every sum is right
already, nothing is run and nothing is downloaded.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakebound.control.folder import locked
from lakebound.errors import LakeboundError, ServiceError
from lakebound.landing.class_archive import pyspark_jars
from lakebound.landing.java import check_java, java_command
from lakebound.settings import load_settings

CONFIGURATIONS = ("spark", "broker")
JAR_TYPES = ("jar", "bundle")
"""Types of artifacts that are jars."""

_DOWNLOAD_SECONDS = 3600.0
_SUM_LINE = re.compile(r"([0-9a-f]{64}) [ *](\S.*)")
_STEP = re.compile(r"(?P<step>found|\[SUCCESSFUL ]) [^#]+#(?P<name>[^;]+);(?P<revision>[^ !]+)")
_TROUBLE = re.compile(r"UNRESOLVED|not found|FAILED|Server access error|exception", re.IGNORECASE)


class ChecksumError(LakeboundError):
    """A downloaded jar is not the one that was recorded."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("jars refused: " + "; ".join(problems))


@dataclass(frozen=True)
class JarDifference:
    """How a folder of jars differs from the recorded sums; names are relative (``spark/NAME.jar``)."""

    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.wrong or self.extra)

    @property
    def refused(self) -> tuple[str, ...]:
        """The files that are there and must not be used."""
        return self.wrong + self.extra

    def sentences(self) -> list[str]:
        """Return one statement per file."""
        return [
            *(f"{name} is missing" for name in self.missing),
            *(f"the SHA-256 sum of {name} is not the recorded one" for name in self.wrong),
            *(f"{name} is not in the list of sums" for name in self.extra),
        ]


def compare(recorded: Mapping[str, str], found: Mapping[str, str]) -> JarDifference:
    """Return how the sums ``found`` differ from those ``recorded``; both map a name to a sum."""
    return JarDifference(
        missing=tuple(sorted(recorded.keys() - found.keys())),
        wrong=tuple(sorted(name for name in recorded.keys() & found.keys() if recorded[name] != found[name])),
        extra=tuple(sorted(found.keys() - recorded.keys())),
    )


def parse_sums(text: str) -> dict[str, str]:
    """Return name → sum of a list in the format of sha256sum.

    Raises:
        ChecksumError: A line is in another format, or the list is empty.
    """
    sums: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not (match := _SUM_LINE.fullmatch(line)):
            raise ChecksumError([f"line {number} of the list of sums is not 'SUM  NAME': {line!r}"])
        sums[match[2]] = match[1]
    if not sums:
        raise ChecksumError(["the list of sums is empty"])
    return sums


def format_sums(sums: Mapping[str, str]) -> str:
    """Return the list that ``sha256sum --check`` and `parse_sums` read."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))


def found_sums(jars: Path) -> dict[str, str]:
    """Return name → SHA-256 sum of every file below the folders of both configurations."""
    files = (file for name in CONFIGURATIONS for file in (jars / name).rglob("*") if file.is_file())
    return {file.relative_to(jars).as_posix(): _sha256(file) for file in files}


def ensure(
    jars: Path,
    sums: Path,
    resolve: Callable[[Path], None],
    say: Callable[[str], None] = print,
) -> None:
    """Make the folder hold exactly the recorded jars.

    A file that is wrong or unknown is moved aside at once and never used; what is missing then is resolved.

    Args:
        jars: The folder with ``spark/`` and ``broker/``.
        sums: The file of recorded sums.
        resolve: Fills the folder, given its path; called only when something is missing.
        say: Receives lines of progress.

    Raises:
        ChecksumError: After resolving, a jar is wrong, unknown or missing. What was wrong was moved aside.
    """
    recorded = parse_sums(sums.read_text())
    before = compare(recorded, found_sums(jars))
    if before.refused:
        aside = move_aside(jars, before.refused)
        for sentence in before.sentences():
            say(f"jars: refused: {sentence}")
        say(f"jars: refused files were moved to {aside}")
    if before.missing or before.wrong:
        say(f"jars: {len(before.missing) + len(before.wrong)} of {len(recorded)} must be downloaded into {jars}")
        resolve(jars)
        after = compare(recorded, found_sums(jars))
        if after:
            where = f"; moved to {move_aside(jars, after.refused)}" if after.refused else ""
            raise ChecksumError([*after.sentences(), f"compared with {sums}{where}"])
    say(f"jars: all {len(recorded)} SHA-256 sums are correct")


def move_aside(jars: Path, names: tuple[str, ...]) -> Path:
    """Move refused files, and Ivy's cached copies of them, out of every class path; return where to."""
    aside = jars.parent / "refused-jars" / time.strftime("%Y%m%dT%H%M%S")
    for name in names:
        target = aside / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (jars / name).replace(target)
        for number, cached in enumerate(sorted(ivy_cache(jars).rglob(Path(name).name)), start=1):
            cached.replace(target.with_name(f"{target.name}.cached-{number}"))
    return aside


def ivy_cache(jars: Path) -> Path:
    """Return the folder in which Ivy keeps what it downloaded, beside the folder of jars."""
    return jars.parent / "ivy"


def ivy_command(ivy_jar: Path, ivy_file: Path, jars: Path, types: Sequence[str] = JAR_TYPES) -> list[str]:
    """Return the command line that resolves ``ivy_file`` and lays the artifacts of these types out by configuration."""
    return [
        java_command(),
        "-jar",
        str(ivy_jar),
        "-cache",
        str(ivy_cache(jars)),
        "-ivy",
        str(ivy_file),
        "-types",
        *types,
        "-retrieve",
        f"{jars}/[conf]/[artifact]-[revision](-[classifier]).[ext]",
        "-sync",
    ]


def resolve_with_ivy(ivy_file: Path, jars: Path, say: Callable[[str], None] = print, types: Sequence[str] = JAR_TYPES) -> None:
    """Download and lay out the jars, or artifacts of other types; takes about two minutes with an empty cache.

    Raises:
        ServiceError: Ivy or Java is not there, or something could not be resolved.
    """
    check_java("jars")
    log = jars.parent / "ivy.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    trouble: list[str] = []
    command = ivy_command(_ivy_jar(), ivy_file.absolute(), jars, types)
    say("jars: Ivy resolves the dependencies, then downloads them; about two minutes with an empty cache")
    with (
        log.open("w") as file,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy,
    ):
        assert ivy.stdout is not None
        for line in ivy.stdout:
            file.write(line)
            if match := _STEP.search(line):
                step = "read" if match["step"] == "found" else "fetched"
                say(f"jars: {time.monotonic() - started:4.0f} s  {step} {match['name']} {match['revision']}")
            elif _TROUBLE.search(line):
                trouble.append(line.strip())
    if ivy.returncode != 0:
        raise ServiceError("jars", "Ivy could not resolve them: " + "; ".join(trouble[:5]), log)


def main(arguments: list[str] | None = None) -> int:
    """Run ``python -m lakebound.local.jars``; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lakebound.local.jars", description=__doc__)
    parser.add_argument("--ivy", type=Path, default=Path("ivy.xml"), help="what to resolve (default: ./ivy.xml)")
    parser.add_argument("--sums", type=Path, default=Path("jars.sha256"), help="the sums (default: ./jars.sha256)")
    parser.add_argument("--record", action="store_true", help="resolve again and write the sums instead of checking them")
    chosen = parser.parse_args(arguments)
    jars = load_settings().jars
    try:
        with _alone(jars):
            if chosen.record:
                resolve_with_ivy(chosen.ivy, jars)
                chosen.sums.write_text(format_sums(found_sums(jars)))
                print(f"jars: sums written to {chosen.sums}")
            else:
                ensure(jars, chosen.sums, lambda folder: resolve_with_ivy(chosen.ivy, folder))
    except LakeboundError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


@contextmanager
def _alone(jars: Path) -> Iterator[None]:
    """Let one process at a time work on the folder."""
    jars.mkdir(parents=True, exist_ok=True)
    with locked(jars.parent / "jars", _DOWNLOAD_SECONDS):
        yield


def _ivy_jar() -> Path:
    for jar in pyspark_jars():
        if jar.name.startswith("ivy-"):
            return jar
    raise ServiceError("jars", "pyspark, which brings Ivy, is not installed; run: make install")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
