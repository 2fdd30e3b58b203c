"""What torchlint finds in the corpus, and the findings that a person reads to judge it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus.packages import Package


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic; ``path`` is relative to the package's folder, ``fix`` is ``none`` or a grade."""

    package: str
    version: str
    path: str
    line: int
    end_line: int
    code: str
    severity: str
    message: str
    fix: str


def torchlint(
    arguments: Sequence[str | Path],
    environment: dict[str, str] | None = None,
    python: Path | str = sys.executable,
    working: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the torchlint of an interpreter, without any configuration and for torch of any version.

    Give a ``working`` folder with another interpreter than this one: the modules in it come first.

    Raises:
        RuntimeError: torchlint broke (exit code other than 0 and 1) without reporting a rule's crash.
    """
    # Nothing around the corpus may change what is found: no config, no .gitignore, no installed torch.
    command = [
        python,
        "-m",
        "torchlint",
        "check",
        "--isolated",
        "--no-cache",
        "--target-torch",
        "unknown",
        *arguments,
    ]
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env=environment,
        cwd=working,
    )
    if done.returncode not in (0, 1) and "TL000" not in done.stdout:
        raise RuntimeError(f"torchlint exited with {done.returncode}:\n{done.stderr[-2000:]}")
    return done


def diagnostics(
    folder: Path,
    options: Iterable[str] = (),
    environment: dict[str, str] | None = None,
    python: Path | str = sys.executable,
    working: Path | None = None,
    paths: Sequence[Path] = (),
) -> list[dict[str, Any]]:
    """Return the diagnostics of every file below a folder, or of these files,
    as torchlint's JSON has them.
    """
    targets = [path.resolve() for path in paths or (folder,)]
    arguments: list[str | Path] = ["--output-format", "json", *options, *targets]
    done = torchlint(arguments, environment, python, working)
    items: list[dict[str, Any]] = json.loads(done.stdout or "[]")
    return items


def lint(packages: Iterable[Package], options: Iterable[str], report: Callable[[str], None]) -> list[Finding]:
    """Lint packages one after the other; ``report`` is told about each."""
    found: list[Finding] = []
    for package in packages:
        items = diagnostics(package.folder, options)
        found += (_finding(item, package) for item in items)
        report(f"{package.name} {package.version}: {len(items)}")
    return found


def _finding(item: dict[str, Any], package: Package) -> Finding:
    fix = item["fix"]
    return Finding(
        package=package.name,
        version=package.version,
        path=Path(item["filename"]).resolve().relative_to(package.folder.resolve()).as_posix(),
        line=item["location"]["row"],
        end_line=item["end_location"]["row"],
        code=item["code"],
        severity=item["severity"],
        message=item["message"],
        fix=fix["applicability"] if fix else "none",
    )


def write(path: Path, found: Iterable[Finding]) -> None:
    """Write findings as a JSON array, one a line, so that two runs can be compared with diff."""
    ordered = sorted(found, key=lambda item: (item.code, item.package, item.path, item.line, item.message))
    lines = ",\n".join(json.dumps(asdict(item), ensure_ascii=False) for item in ordered)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def read(path: Path) -> list[Finding]:
    """Read what `write` wrote."""
    return [Finding(**item) for item in json.loads(path.read_text(encoding="utf-8"))]


def sample(found: Iterable[Finding], count: int) -> list[Finding]:
    """Return at most ``count`` findings drawn evenly, the same ones every time.

    The order comes from a hash of each finding's place: as the packages are pinned, a finding keeps its rank
    when others come or go with a change of torchlint.
    """

    def rank(item: Finding) -> str:
        return hashlib.sha256(f"{item.code} {item.package} {item.path} {item.line}".encode()).hexdigest()

    return sorted(found, key=rank)[:count]


def excerpt(item: Finding, folder: Path, before: int, after: int) -> Iterator[str]:
    """Yield the lines around a finding, numbered, the finding's own marked,
    headed by the definitions around it.
    """
    lines = (folder / item.path).read_text(encoding="utf-8", errors="replace").splitlines()
    first = max(item.line - 1 - before, 0)
    for number in _headings(lines, item.line - 1):
        if number < first:
            yield f"{number + 1:6d}   {lines[number]}"
    for number in range(first, min(item.end_line + after, len(lines))):
        mark = ">" if item.line - 1 <= number < item.end_line else " "
        yield f"{number + 1:6d} {mark} {lines[number]}"


def _headings(lines: Sequence[str], number: int) -> list[int]:
    """Return the numbers of the lines above that open the definitions and loops around a line,
    by indentation.
    """

    def indent(text: str) -> int:
        return len(text) - len(text.lstrip())

    found: list[int] = []
    if number >= len(lines):
        return found
    limit = indent(lines[number])
    for above in range(number - 1, -1, -1):
        text = lines[above]
        if text.strip() and not text.lstrip().startswith(("#", ")")) and indent(text) < limit:
            limit = indent(text)
            if text.lstrip().startswith(("class ", "def ", "async def ", "for ", "while ", "with ", "@")):
                found.append(above)
    return found[::-1]
