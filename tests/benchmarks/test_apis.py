"""What the table says of deprecated and removed names is what their releases were seen to have."""

from __future__ import annotations

import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks import apis
from benchmarks.libraries import Library, releases
from benchmarks.missing import LEFT_OUT, PACKAGES
from torchlint.registry import catalogue
from torchlint.releases import RELEASES
from torchlint.semantics.api.upgrades import UPGRADES, Upgrade
from torchlint.semantics.names import canonical
from torchlint.target import Target

CHECKED = [
    pytest.param(row, id=" ".join(apis.key(row).values())) for row in UPGRADES if row.package in RELEASES
]


@cache
def looked_at() -> dict[str, Any]:
    """What the result file holds, by what it is about."""
    held = json.loads(apis.RESULTS.read_text(encoding="utf-8"))
    assert held["releases"] == {name: releases(name) for name in RELEASES}
    return {json.dumps(apis.key_of(entry)): entry for entry in held["rows"]}


@pytest.mark.parametrize("row", CHECKED)
def test_the_releases_are_as_the_table_says(row: Upgrade) -> None:
    entry = looked_at()[json.dumps(apis.key(row))]
    assert list(apis.contradictions(entry, row, releases(row.package))) == []


def test_the_result_holds_no_row_that_the_table_lacks() -> None:
    assert set(looked_at()) == {json.dumps(apis.key(row)) for row in UPGRADES if row.package in RELEASES}


@pytest.mark.parametrize(("package", "symbol", "argument", "since"), apis.ARRIVALS)
def test_parameters_came_with_the_release_that_rules_wait_for(
    package: str, symbol: str, argument: str, since: str
) -> None:
    held = json.loads(apis.RESULTS.read_text(encoding="utf-8"))["arrivals"]
    (entry,) = [row for row in held if (row["symbol"], row["argument"]) == (symbol, argument)]
    known = releases(package)
    before = known[known.index(since) - 1]
    assert entry["state"] == {before: apis.GONE, since: apis.THERE}


@pytest.mark.parametrize("row", UPGRADES)
def test_a_row_is_written_as_rules_look_for_it(row: Upgrade) -> None:
    assert row.symbol == canonical(row.symbol)
    assert row.source
    assert row.replacement or row.note
    assert row.replacement or not row.exact
    assert row.argument or not (row.value or row.switched_on)
    for release in filter(None, (row.deprecated, row.removed, row.since)):
        assert row.package not in RELEASES or release in releases(row.package)


@pytest.mark.parametrize("row", [row for row in UPGRADES if not (row.owner or row.private)])
def test_the_screen_lets_each_row_pass(row: Upgrade) -> None:
    """A word that the rules about upgrades do not mention would keep them from ever seeing the file."""
    place, _, last = row.symbol.rpartition(".")
    given = f"({row.argument}=1)" if row.argument else "()"
    spellings = (f"from {place} import {last}\n{last}{given}", f"import {place}\n{place}.{last}{given}")
    for code, since in (("TL901", row.removed), ("TL902", row.deprecated)):
        if since is not None and row.package in ("torch", "torchvision", "torchaudio"):
            assert all(catalogue()[code].may_fire(text) for text in spellings), code


def test_each_thing_has_one_row() -> None:
    keys = [json.dumps(apis.key(row)) for row in UPGRADES]
    assert len(set(keys)) == len(keys)


def test_what_may_be_said_depends_on_the_target() -> None:
    row = Upgrade(symbol="torch.a", deprecated="2.4", removed="2.9", replacement="torch.b", since="2.6")
    stages = {
        text: (row.is_deprecated(target), row.is_replaceable(target), row.is_removed(target))
        for text in ("unknown", "2.3", "2.4", ">=2.6,<2.8", "2.9")
        for target in [Target.parse(text)]
    }
    assert stages == {
        "unknown": (False, False, False),
        "2.3": (False, False, False),
        "2.4": (True, False, False),
        ">=2.6,<2.8": (True, True, False),
        "2.9": (True, True, True),
    }


# --- reading a library --------------------------------------------------------------------------------

FILES = {
    "lib/__init__.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from .models import *
from .inner.core import run as start, Args
try:
    from ._c import fast
except ImportError:
    fast = None
""",
    "lib/inner/__init__.py": "",
    "lib/inner/core.py": '''
import warnings
from dataclasses import dataclass, field
from typing_extensions import deprecated
from .base import Base

def run(x, old=None, *, new=None, **kwargs):
    """Runs."""
    if old is not None:
        warnings.warn("The argument `old` is deprecated, use `new`.")
    name = kwargs.pop("hidden", None)

@deprecated("`lib.stop` is deprecated.")
def stop(): ...

@dataclass
class Args(Base):
    size: int = 1
    width: int = field(default=1, metadata={"help": "Deprecated. Use size."})
    height: int = 2

    def __post_init__(self):
        if self.height: warnings.warn(f"`height` is deprecated and will be removed, {self}")
        warnings.warn("using `Enum` for `size` is deprecated")
''',
    "lib/inner/base.py": "class Base:\n    depth: int = 0\n    def make(self, kind): ...\n",
    "lib/_c.pyi": "def fast(x: int) -> int: ...\n",
    "lib/models/__init__.py": "from .one import *\n",
    "lib/models/one.py": 'class Model:\n    """A model."""\n',
}


@pytest.fixture
def library(tmp_path: Path) -> Library:
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    return Library(tmp_path / "lib.zip")


@pytest.mark.parametrize(
    ("dotted", "where"),
    [
        ("lib.start", "lib/inner/core.py:7"),
        ("lib.inner.core.run", "lib/inner/core.py:7"),
        ("lib.fast", "lib/_c.pyi:1"),
        ("lib.Model", "lib/models/one.py:1"),
        ("lib.Args.make", "lib/inner/base.py:3"),
        ("lib.Args.nothing", None),
        ("lib.run", None),
        ("other.run", None),
    ],
)
def test_names_are_followed_to_where_they_are_defined(
    library: Library, dotted: str, where: str | None
) -> None:
    found = library.symbol(dotted)
    assert (found.where if found else None) == where


@pytest.mark.parametrize(
    ("dotted", "argument", "mark"),
    [
        ("lib.start", "x", ""),
        ("lib.start", "old", "The argument `old` is deprecated, use `new`."),
        ("lib.start", "hidden", ""),
        ("lib.start", "other", None),
        ("lib.Args", "depth", ""),
        ("lib.Args", "width", "Deprecated."),
        ("lib.Args", "height", "`height` is deprecated and will be removed, {}"),
        ("lib.Args", "size", ""),
        ("lib.inner.core.stop", "", "deprecated('`lib.stop` is deprecated.')"),
    ],
)
def test_words_that_give_something_up_are_found(
    library: Library, dotted: str, argument: str, mark: str | None
) -> None:
    found = library.argument(dotted, argument) if argument else library.symbol(dotted)
    assert (None if found is None else found.mark or "") == mark


@pytest.mark.parametrize("package", PACKAGES)
def test_what_went_has_a_row_or_a_reason(package: str) -> None:
    lacking = json.loads(apis.RESULTS.read_text(encoding="utf-8"))["missing"][package]
    assert lacking["gone"] == {}
    assert lacking["deprecated"] == []
    assert set(lacking["left out"]) <= {reason for _, reason in LEFT_OUT}
