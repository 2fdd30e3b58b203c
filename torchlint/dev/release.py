"""Makes a release, up to the point where somebody publishes it: ``make release VERSION=0.2.0``.

The version stands in ``torchlint/__init__.py``, the day in ``CHANGELOG.md``; the tags in the docs follow. The
archives carry the time of that day, so that whoever builds the tag gets the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timezone
from hashlib import sha256
from pathlib import Path

from packaging.version import InvalidVersion, Version

from torchlint.dev import ROOT

VERSION_FILE = ROOT / "torchlint" / "__init__.py"
CHANGELOG = ROOT / "CHANGELOG.md"
DIST = ROOT / "dist"
OLDEST_PYTHON = (3, 10)
_DOCS = ("README.md", "docs/*.md", "templates/*.yml", "editors/vscode/README.md")
_EXTENSION = ("editors/vscode/package.json", "editors/vscode/package-lock.json")
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_EXTENSION_VERSION = re.compile(r'(?<="name": "torchlint",\n)(\s+"version": ")[^"]+')
_HEADING = re.compile(r"^## \[([^\]]+)\] - (\S+)$", re.MULTILINE)
_TAG = re.compile(r"(?:(?<=@v)|(?<=rev: v)|(?<=REF: v))\d+\.\d+\.\d+\b(?!\.)")
_UNRELEASED = "unreleased"


class ReleaseError(Exception):
    """Why there is no release; the message says what to do."""


# --- the files -------------------------------------------------------------------------------------------


def prepare(version: str, day: date, root: Path = ROOT) -> Mapping[Path, str]:
    """Return the files as the release has them, by path; those that are as they should be are left out.

    Raises:
        ReleaseError: the version is none, or no newer than the last release, or the changelog lacks it.
    """
    try:
        wanted = Version(version)
    except InvalidVersion:
        raise ReleaseError(f"`{version}` is not a version, such as 0.2.0") from None
    if str(wanted) != version or wanted.local:
        raise ReleaseError(f"`{version}` is not how a release is written; use {wanted.public}")
    texts = {path: path.read_text(encoding="utf-8") for path in _files(root)}
    changelog = root / CHANGELOG.relative_to(ROOT)
    module = root / VERSION_FILE.relative_to(ROOT)
    made = {
        **{path: _TAG.sub(version, text) for path, text in texts.items()},
        changelog: _dated(texts[changelog], wanted, day),
        module: _VERSION.sub(f'__version__ = "{version}"', texts[module]),
        # Extensions have three numbers and nothing else.
        **{
            root / name: _EXTENSION_VERSION.sub(rf"\g<1>{wanted.base_version}", texts[root / name])
            for name in _EXTENSION
        },
    }
    return {path: text for path, text in made.items() if text != texts[path]}


def _files(root: Path) -> Iterator[Path]:
    yield root / CHANGELOG.relative_to(ROOT)
    yield root / VERSION_FILE.relative_to(ROOT)
    yield from (root / name for name in _EXTENSION)
    for pattern in _DOCS:
        yield from sorted(root.glob(pattern))


def _dated(text: str, version: Version, day: date) -> str:
    """Return the changelog with the date of the release in the heading of its first section."""
    headings = list(_HEADING.finditer(text))
    if not headings:
        raise ReleaseError("CHANGELOG.md has no section `## [VERSION] - unreleased`")
    first = headings[0]
    if first[1] == str(version) and first[2] != _UNRELEASED:
        return text  # prepared before
    if first[2] != _UNRELEASED:
        raise ReleaseError("CHANGELOG.md has no section `## [VERSION] - unreleased` at its top")
    end = headings[1].start() if len(headings) > 1 else len(text)
    if not re.search(r"^- ", text[first.end() : end], re.MULTILINE):
        raise ReleaseError("the unreleased section of CHANGELOG.md is empty")
    if len(headings) > 1 and version <= Version(headings[1][1]):
        raise ReleaseError(f"{version} is no newer than {headings[1][1]}")
    return f"{text[: first.start()]}## [{version}] - {day.isoformat()}{text[first.end() :]}"


def epoch(version: str, root: Path = ROOT) -> int:
    """Return the time that the archives of a release carry: the beginning of its day, in seconds.

    Raises:
        ReleaseError: the changelog has no day for it.
    """
    text = (root / CHANGELOG.relative_to(ROOT)).read_text(encoding="utf-8")
    day = next((found[2] for found in _HEADING.finditer(text) if found[1] == version), _UNRELEASED)
    try:
        return int(datetime.fromisoformat(day).replace(tzinfo=timezone.utc).timestamp())
    except ValueError:
        raise ReleaseError(f"CHANGELOG.md has no date for {version}") from None


# --- the archives ----------------------------------------------------------------------------------------


def build(version: str, pythons: Sequence[Path]) -> Sequence[Path]:
    """Build, check and try out the release; the files in ``dist/``, of which the first two are published.

    Raises:
        ReleaseError: a step fails, or two builds differ.
    """
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch(version))}
    shutil.rmtree(DIST, ignore_errors=True)
    _step("build the sdist, and the wheel from it")
    _run([sys.executable, "-m", "build", "--outdir", str(DIST)], environ)
    (sdist,), (wheel,) = sorted(DIST.glob("*.tar.gz")), sorted(DIST.glob("*.whl"))
    if not wheel.name.startswith(f"torchlint-{version}-"):
        raise ReleaseError(f"{wheel.name} is not of version {version}")
    with tempfile.TemporaryDirectory() as folder:
        _step("build once more from a copy of the tracked files, and compare")
        again = Path(folder) / "again"
        _run([sys.executable, "-m", "build", "--outdir", str(again), _copied(Path(folder))], environ)
        for path in (sdist, wheel):
            if path.read_bytes() != (again / path.name).read_bytes():
                raise ReleaseError(f"{path.name} is not reproducible: a second build differs")
    _step("check the metadata and the contents")
    _run([sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)], environ)
    _run([str(Path(sys.executable).with_name("check-wheel-contents")), *_EXPECTED, str(wheel)], environ)
    sbom = DIST / f"torchlint-{version}.cdx.json"
    found: dict[str, object] = {}
    for python in pythons:
        _step(f"install and run it with {python}")
        with tempfile.TemporaryDirectory() as folder:
            found[str(python)] = _tried(python, wheel, version, Path(folder))
            if not sbom.exists():
                _write_sbom(Path(folder), sbom)
    first = next(iter(found.values()), None)
    if different := [python for python, codes in found.items() if codes != first]:
        raise ReleaseError(f"what is found with {', '.join(different)} is not what the first Python finds")
    sums = DIST / "SHA256SUMS"
    files = [sdist, wheel, *([sbom] if sbom.exists() else [])]
    sums.write_text("".join(f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files))
    return [*files, sums]


# W002: modules that have nothing but the same line of documentation are equal.
_EXPECTED = ("--ignore", "W002", "--toplevel", "torchlint")


def _copied(folder: Path) -> str:
    """Return a copy of the files that git tracks, as they are now."""
    copy = folder / "copy"
    for name in _run(["git", "ls-files", "-z"]).split("\0"):
        if name:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    return str(copy)


def _tried(python: Path, wheel: Path, version: str, folder: Path) -> object:
    """Return what a new environment with the wheel finds in the example programs: rule,
    file and line of each.
    """
    _run([str(python), "-m", "venv", str(folder / "env")])
    bin_folder = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(bin_folder / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "install", str(wheel)])
    _run([*pip, "check"])
    torchlint = str(bin_folder / "torchlint")
    told = _run([torchlint, "--version"], cwd=folder)
    if told != f"torchlint {version}\n":
        raise ReleaseError(f"the installed command says it is {told.strip()}")
    programs = shutil.copytree(ROOT / "fixtures" / "programs", folder / "programs")
    options = ("--isolated", "--no-cache", "--exit-zero", "--output-format", "json")
    items = json.loads(_run([torchlint, "check", *options, str(programs)], cwd=folder))
    if not items:
        raise ReleaseError(f"with {python} nothing is found in fixtures/programs")
    return [
        (item["code"], Path(item["filename"]).relative_to(programs).as_posix(), item["location"])
        for item in items
    ]


def _write_sbom(folder: Path, sbom: Path) -> None:
    """Write what a base install consists of, as CycloneDX has it, without pip and the folder it came from."""
    for origin in (folder / "env").rglob("torchlint-*.dist-info/direct_url.json"):
        origin.unlink()
    bin_folder = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    python = str(bin_folder / "python")
    _run([python, "-m", "pip", "--quiet", "uninstall", "--yes", "setuptools", "pip"])
    _run(
        [
            sys.executable,
            "-m",
            "cyclonedx_py",
            "environment",
            "--output-reproducible",
            "-o",
            str(sbom),
            python,
        ]
    )


def pythons() -> Sequence[Path]:
    """Return the interpreters to try the release with: those of pyenv and on the PATH,
    one of each minor version.
    """
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    candidates = [path / "bin" / "python" for path in sorted(root.glob("3.*"))]
    for minor in range(OLDEST_PYTHON[1], 20):
        found = shutil.which(f"python3.{minor}")
        candidates += [Path(found)] if found else []
    chosen: dict[tuple[int, int], Path] = {}
    for path in [*candidates, Path(sys.executable)]:
        version = _version_of(path)
        if version is not None and version >= OLDEST_PYTHON:
            chosen.setdefault(version, path)
    return [chosen[version] for version in sorted(chosen)]


def _version_of(python: Path) -> tuple[int, int] | None:
    """Return the major and minor version of an interpreter; None if it does not run."""
    code = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    major, minor = map(int, done.stdout.split())
    return major, minor


def _step(told: str) -> None:
    print(f"==> {told}", flush=True)


def _run(command: Sequence[str], environ: Mapping[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Return what a command prints on standard output.

    Raises:
        ReleaseError: it fails; the message has all that it printed.
    """
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"`{' '.join(command)}` failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(version: str, *, check: bool = False) -> int:
    """Prepare and build a release; with ``check`` the one that is checked out, as it is."""
    try:
        changed = prepare(version, datetime.now(timezone.utc).date())
        if check and changed:
            names = ", ".join(path.relative_to(ROOT).as_posix() for path in changed)
            raise ReleaseError(f"this is not {version} as it was prepared: {names} would change")
        for path, text in changed.items():
            path.write_text(text, encoding="utf-8")
            _step(f"wrote {path.relative_to(ROOT)}")
        files = build(version, pythons())
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(path.relative_to(ROOT).as_posix() for path in files))
    if not check:
        print(
            f"\nNothing is published yet. Review the changes, then run\n"
            f"  git commit -am 'torchlint {version}'\n  git tag --sign v{version} -m 'torchlint {version}'\n"
            f"  git push origin HEAD v{version}"
        )
    return 0
