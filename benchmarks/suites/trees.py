"""Copies of a package's sources with torchlint's fixes in them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from torchlint import reading, registry
from torchlint.fixer import fix
from torchlint.options import LintSettings
from torchlint.selectors import expand
from torchlint.target import Target


@dataclass(frozen=True, slots=True)
class Fixed:
    """A fixed copy, how often each rule was applied in it, and how many files that changed."""

    tree: Path
    applied: Counter[str]
    files: int


def fixed(
    sources: Path, tree: Path, *, target: Target, unsafe: bool, only: Collection[str] | None = None
) -> Fixed:
    """Copy ``sources`` to ``tree`` and fix the copy: all of it, as a user fixes a checkout.

    Args:
        target: the releases of torch that may run the tests.
        only: the rules whose fixes are made; all that are on by default without them.

    Raises:
        RuntimeError: torchlint failed on a file.
    """
    if tree.exists():
        shutil.rmtree(tree)
    shutil.copytree(sources, tree, symlinks=True)
    rules = expand("TL", registry.rules(), opt_in=False)
    settings = LintSettings(
        rules=tuple(sorted(rules)),
        fixable=rules if only is None else frozenset(only),
        unsafe_fixes=unsafe,
        target=target,
    )
    applied: Counter[str] = Counter()
    files = 0
    for path in sorted(tree.rglob("*.py")):
        if b"torch" not in path.read_bytes():
            continue
        try:
            source = reading.read(path)
        except ValueError:
            continue  # a test file that is no text on purpose
        outcome = fix(source, settings)
        crashes = [item.message for item in outcome.diagnostics if item.code == "TL000"]
        if crashes:
            raise RuntimeError(f"{path.relative_to(tree)}: {crashes[0]}")
        if outcome.applied:
            path.write_bytes(outcome.source.to_bytes())
            applied += outcome.applied
            files += 1
    return Fixed(tree, applied, files)
