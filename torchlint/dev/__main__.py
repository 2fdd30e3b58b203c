"""The command line of ``python -m torchlint.dev``."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from torchlint.dev import (
    ROOT,
    codes,
    layers,
    measured,
    pages,
    peers,
    readme,
    release,
    scaffold,
    schema,
    weights,
)

GENERATORS: tuple[Callable[[], Mapping[Path, str]], ...] = (
    codes.generate,
    pages.generate,
    readme.generate,
    layers.generate,
    measured.generate,
    schema.generate,
    peers.generate,
    weights.generate,
)
"""Each says what the files that it looks after should contain."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 all is well, 1 stale or contradicted, 2 misuse."""
    parser = argparse.ArgumentParser(prog="python -m torchlint.dev", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    generate = commands.add_parser(
        "generate",
        help="write what is made from the rules, the imports and the measurements: the frozen list of codes, "
        "the pages, the generated parts of README.md and CONTRIBUTING.md, the schema of the configuration",
    )
    generate.add_argument("--check", action="store_true", help="write nothing; exit 1 if anything is stale")

    new_rule = commands.add_parser(
        "new-rule", help="start a rule: its module, fixtures and line in the changelog"
    )
    new_rule.add_argument("code", help="such as TL208")
    new_rule.add_argument("name", help="names the bad pattern, never the cure: repeated-transfer")
    new_rule.add_argument("--family", required=True, help="the folder under rules/: host_device")
    new_rule.add_argument("--folder", action="store_true", help="make it a folder, for more than one module")

    making = commands.add_parser("release", help="prepare, build, check and try out a release")
    making.add_argument("version", help="such as 0.2.0")
    making.add_argument("--check", action="store_true", help="build what is checked out; change no file")

    contradicted = commands.add_parser(
        "contradicted", help="say which published figures a new run of `torchlint bench --json` contradicts"
    )
    contradicted.add_argument("results", type=Path, help="the results file of that run")

    commands.add_parser("pictures", help="take the pictures of the documentation, with Chromium")

    given = parser.parse_args(arguments)
    if given.command == "pictures":
        from torchlint.dev import pictures  # needs what the documentation site does

        return pictures.main()
    if given.command == "contradicted":
        return _contradicted(given.results)
    if given.command == "release":
        return release.main(given.version, check=given.check)
    if given.command == "generate":
        try:
            return _generate(check=given.check)
        except codes.BrokenPromiseError as error:
            print(error, file=sys.stderr)
            return 1
    try:
        created = scaffold.new_rule(given.code, given.name, given.family, folder=given.folder)
    except ValueError as error:
        parser.error(str(error))
    for path in created:
        print(path.relative_to(ROOT))
    name = given.name.replace("-", "_")
    print(
        f"\nWrite the fixtures, then the rule and its page, and run\n"
        f"  python -m pytest tests/test_rules.py -k {given.code}\n"
        f"If it has a fix, `python -m torchlint.testing --bless fixtures/{given.code}_{name}`\n"
        f"writes what the fixes make of the fixtures.\n"
        f"If it claims speed or memory, write its bench case, rules/{given.family}/cases/{name}.py,\n"
        f"and take `measured=False` out of its declaration.\n"
        f"Last, run `make generate`. CONTRIBUTING.md has the details."
    )
    return 0


def _contradicted(path: Path) -> int:
    try:
        found = measured.contradicted(path)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(found) or "No published figure is contradicted.")
    return 1 if found else 0


def _generate(*, check: bool) -> int:
    stale = 0
    for generator in GENERATORS:
        for path, text in generator().items():
            current = path.read_text(encoding="utf-8") if path.exists() else ""
            if current == text:
                continue
            stale += 1
            name = path.relative_to(ROOT).as_posix()
            if check:
                lines = difflib.unified_diff(
                    current.splitlines(), text.splitlines(), name, f"{name} (generated)", lineterm=""
                )
                print("\n".join(lines))
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                print(name)
    orphans = {
        **dict.fromkeys(pages.orphans(), "documents no rule"),
        **dict.fromkeys(peers.orphans(), "shows no results"),
    }
    for path, why in orphans.items():
        stale += 1
        print(f"{path.relative_to(ROOT).as_posix()} {why}")
        if not check:
            path.unlink()
    if check and stale:
        print("stale: run `make generate`", file=sys.stderr)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
