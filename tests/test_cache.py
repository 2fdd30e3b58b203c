"""What is remembered of files: the same diagnostics, for the same bytes, settings and code, nothing else."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import libcst as cst
import pytest
from packaging.version import Version

from torchlint import cache, checker, registry, runner, source, store
from torchlint.cache import Cache
from torchlint.diagnostics import (
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Frequency,
    Impact,
    Position,
    Severity,
    Span,
)
from torchlint.options import LintSettings
from torchlint.rule import WARNING, Finding, rule
from torchlint.runner import Mode, Result, run
from torchlint.semantics.module import Module
from torchlint.source import Source
from torchlint.store import DAY, MAX_AGE, Store
from torchlint.target import Target
from torchlint.testing import cases

CHECK = Mode()
UseRules = Callable[..., LintSettings]
ROOT = Path(cache.__file__).parents[1]
PATH = Path("/p/a.py")
FULL = Diagnostic(
    code="XX101",
    name="old-name",
    message="an old name \udc80\u2028 `ü`",
    severity=Severity.NOTE,
    path=PATH,
    span=Span(3, 6),
    start=Position(1, 4),
    end=Position(1, 7),
    fix=Fix(
        *("Call it `new`", (Edit(Span(0, 0), "x\r\n"), Edit(Span(3, 6), "new")), Applicability.UNSAFE),
        risk="another name",
    ),
    url="https://example.org",
    noqa_row=2,
    cell=3,
    related=((Position(4, 1), "the loop"), (Position(5, 2), "it")),
    remedy="Do it by hand",
    impact=Impact.HIGH,
    frequency=Frequency.STEP,
    advice=True,
    slight="the loop is short",
)
PLAIN = Diagnostic("XX102", "b", "c", Severity.ERROR, PATH, Span(0, 0), Position(1, 1), Position(1, 1))


@rule("XX101", "old-name", severity=WARNING, fix="safe", on=cst.Name, mentions=("old",))
def old_name(node: cst.Name, module: Module) -> Iterator[Finding]:
    """Finds the name ``old``; the fix writes ``new``. Fails on ``crash``."""
    if node.value == "crash":
        raise KeyError("old")
    if node.value == "old":
        edits = (Edit(module.tree.span(node), "new"),)
        yield Finding(node, "an old name", Fix("Call it `new`", edits, Applicability.SAFE))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def opened(folder: Path) -> Callable[[], Cache]:
    return lambda: Cache(Store(folder), Path("/p"), "code")


@pytest.fixture
def settings(use_rules: UseRules) -> LintSettings:
    return use_rules(old_name)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were checked rather than remembered, in this process."""
    texts: list[str] = []
    check = checker.check

    def watched(read: Source, settings: LintSettings, **how: Any) -> list[Diagnostic]:
        texts.append(read.text)
        return check(read, settings, **how)

    monkeypatch.setattr("torchlint.checker.check", watched)
    monkeypatch.setattr("torchlint.fixer.check", watched)
    return texts


def document(folder: Path) -> Path:
    (path,) = folder.glob("results-*.json")
    return path


# --- entries -----------------------------------------------------------------------------------------------


def test_a_diagnostic_comes_back_whole(opened: Callable[[], Cache]) -> None:
    # Whoever adds a field to what is found stores it too.
    defaults = {item.name: item.default for item in dataclasses.fields(Diagnostic)}
    assert all(getattr(FULL, name) != default for name, default in defaults.items())
    first = opened()
    first.put("k", (FULL, PLAIN))
    first.put("clean", ())
    first.save()
    again = opened()
    assert again.get("k", PATH) == (FULL, PLAIN)
    assert again.get("clean", PATH) == ()
    assert again.get("other", PATH) is None
    elsewhere = Path("/p/b.py")
    moved = again.get("k", elsewhere)
    assert moved == tuple(dataclasses.replace(item, path=elsewhere) for item in (FULL, PLAIN))


@pytest.mark.parametrize("code", ["TL000", "TL001"])
def test_what_went_wrong_is_not_stored(opened: Callable[[], Cache], code: str) -> None:
    first = opened()
    first.put("k", (PLAIN, dataclasses.replace(PLAIN, code=code)))
    first.save()
    assert opened().get("k", PATH) is None


def entry(**changes: Any) -> list[Any]:
    """What is stored of a diagnostic, some of it replaced."""
    names = [
        "code",
        "name",
        "message",
        "severity",
        "span",
        "start",
        "end",
        "fix",
        "url",
        "noqa_row",
        "cell",
        "related",
        "remedy",
        "impact",
        "frequency",
        "advice",
        "slight",
    ]
    return [changes.get(name, value) for name, value in zip(names, cache._stored(FULL), strict=True)]


@pytest.mark.parametrize(
    "stored",
    [
        *(None, "", "x", {}, [], [[]], True, 1.5, [1], [1, ""], [1, {}], [1, [], 3], [True, []], ["1", []]),
        *([1, [item]] for item in (None, 3, "x" * 16, [], [None] * 16, list(range(16)), {"a": 1})),
        *(
            [1, [entry(**{name: value})]]
            for name, value in [
                *(("code", None), ("code", 1), ("message", None), ("severity", "fatal"), ("severity", None)),
                *(
                    ("span", [2, 1]),
                    ("span", [-1, 1]),
                    ("span", [0]),
                    ("span", [0.0, 1]),
                    ("span", ["0", "1"]),
                ),
                *(("start", [0, 1]), ("end", [1, True]), ("start", None), ("noqa_row", None), ("cell", -1)),
                *(("fix", []), ("fix", ["m", 7, []]), ("fix", ["m", 1, [[0, 1]]]), ("fix", ["m", 1, None])),
                *(("fix", ["m", 1, [[0, 1, None]]]), ("fix", [1, 1, []]), ("url", 1), ("remedy", [])),
                *(("code", "TL1\x1b"), ("code", "##[x]1"), ("name", "a\x1b"), ("name", "")),
                *(
                    ("impact", 3),
                    ("impact", None),
                    ("frequency", len(Frequency)),
                    ("frequency", "step"),
                    ("advice", None),
                    ("slight", 1),
                ),
                *(("url", "https://a\x1b[31m"), ("url", "https://a b"), ("url", "javascript:x()")),
                ("fix", ["m", 1, [[0, 5, ""], [3, 6, ""]]]),
                *(("related", None), ("related", [[1, 1]]), ("related", [[1, 1, 2]]), ("related", [3])),
            ]
        ),
    ],
)
def test_an_entry_of_another_shape_is_not_believed(
    folder: Path, opened: Callable[[], Cache], stored: Any
) -> None:
    first = opened()
    first.put("k", (FULL,))
    first.save()
    Store(folder).save(document(folder).stem, {"k": stored})
    again = opened()
    assert again.get("k", PATH) is None
    again.put("k", (PLAIN,))
    again.save()
    assert opened().get("k", PATH) == (PLAIN,)


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        *(({}, 5), ({"span": [3, 10**9]}, 10**6), ({"noqa_row": 10**9}, 10**6)),
        *(({"start": [10**9, 1]}, 10**6), ({"end": [1, 10**9]}, 10**6), ({"cell": 10**9}, 10**6)),
        ({"related": [[1, 10**9, None, ""]]}, 10**6),
    ],
)
def test_an_entry_about_a_larger_file_is_not_believed(
    folder: Path, opened: Callable[[], Cache], changes: dict[str, Any], size: int
) -> None:
    first = opened()
    first.put("k", (FULL,))
    first.save()
    assert opened().get("k", PATH, 6) == (FULL,)
    Store(folder).save(document(folder).stem, {"k": [1, [entry(**changes)]]})
    assert opened().get("k", PATH, size) is None


@pytest.mark.parametrize("content", [[], 3, "x", None])
def test_a_document_of_another_shape_is_not_believed(
    folder: Path, opened: Callable[[], Cache], content: Any
) -> None:
    first = opened()
    first.put("k", ())
    first.save()
    Store(folder).save(document(folder).stem, content)
    assert opened().get("k", PATH) is None


def test_entries_that_nobody_uses_go(opened: Callable[[], Cache], monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    first = opened()
    first.put("used", ())
    first.put("unused", (PLAIN,))
    first.save()
    for days in (20, 40):
        monkeypatch.setattr(cache, "time", SimpleNamespace(time=lambda days=days: now + days * DAY))
        later = opened()
        assert later.get("used", PATH) == ()
        later.save()
    assert MAX_AGE == 30 * DAY
    assert opened().get("unused", PATH) is None
    assert opened().get("used", PATH) == ()


def test_a_run_that_learnt_nothing_writes_nothing(
    folder: Path, opened: Callable[[], Cache], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    first.put("k", ())
    first.save()
    written = document(folder).stat().st_mtime_ns
    again = opened()
    again.get("k", PATH)
    again.save()
    assert document(folder).stat().st_mtime_ns == written


def test_runs_side_by_side_keep_what_each_learnt(opened: Callable[[], Cache]) -> None:
    one, other = opened(), opened()
    one.put("a", ())
    other.put("b", (PLAIN,))
    one.save()
    other.save()
    assert opened().get("a", PATH) == ()
    assert opened().get("b", PATH) == (PLAIN,)


def test_the_entries_used_last_are_kept_where_there_is_too_much(
    opened: Callable[[], Cache], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    first = opened()
    first.put("old", (FULL,))
    first.save()
    monkeypatch.setattr(cache, "_LARGEST_SHARE", 500)
    monkeypatch.setattr(cache, "time", SimpleNamespace(time=lambda: now + DAY))
    later = opened()
    later.put("new", (FULL,))
    later.put("newer", ())
    later.save()
    found = opened()
    assert [name for name in ("old", "new", "newer") if found.get(name, PATH) is not None] == ["new", "newer"]


def test_projects_do_not_share_a_document(folder: Path) -> None:
    first = Cache(Store(folder), Path("/p"), "code")
    first.put("k", ())
    first.save()
    assert Cache(Store(folder), Path("/q"), "code").get("k", PATH) is None


# --- keys --------------------------------------------------------------------------------------------------


def test_every_setting_is_part_of_the_key(opened: Callable[[], Cache]) -> None:
    two = Target(Version("2.1"), None, "pyproject.toml")
    changes: dict[str, list[Any]] = {
        "rules": [("TL101",), ("TL101", "TL102")],
        "fixable": [frozenset({"TL101"}), frozenset({"TL101", "TL102"})],
        "unsafe_fixes": [True],
        "target": [
            two,
            dataclasses.replace(two, upper=Version("2.1")),
            dataclasses.replace(two, lower=Version("2.1.0.post1")),
            dataclasses.replace(two, origin="setup.py"),
        ],
        "libraries": [{}, {"transformers": two}, {"accelerate": two}],
        "workers": [1, 0],
        "extend_safe_fixes": [frozenset({"TL101"})],
        "extend_unsafe_fixes": [frozenset({"TL101"})],
        "ignore_noqa": [True],
        "hot": [(("/p", "*.py::*.execute_model"),)],
        "cold": [(("/p", "*.py::*.warmup"),)],
        "max_file_size": [1],
        "severities": [(("TL101", Severity.NOTE),), (("TL101", Severity.ERROR),)],
        "markers": [(("sync-ok", ("TL101",)),), (("sync-ok", ()),)],
        "reasons": [True],
        "allowed_sync_contexts": [("a",), ("a", "b")],
        "host_names": [("a",)],
        "device_names": [("a",)],
        "known_async_helpers": [("a",)],
        "extension": [(("ipy", "ipynb"),), (("ipy", "python"),)],
    }
    assert set(changes) == {item.name for item in dataclasses.fields(LintSettings)}
    plain = LintSettings(libraries={"torchaudio": two})
    every = [
        plain,
        *(dataclasses.replace(plain, **{name: value}) for name in changes for value in changes[name]),
    ]
    salts = [opened().salt(item) for item in every]
    assert len(set(salts)) == len(every)
    assert [opened().salt(dataclasses.replace(item)) for item in every] == salts


def test_the_order_of_sets_is_not_part_of_the_key() -> None:
    code = (
        "from pathlib import Path; from torchlint.cache import Cache; from torchlint.store import Store\n"
        "from torchlint.options import LintSettings\n"
        "settings = LintSettings(fixable=frozenset(map(str, range(50))))\n"
        "print(Cache(Store(Path('/nowhere/x')), Path('/p'), 'code').salt(settings).hex())"
    )
    salts = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(salts) == 1 and len(salts.pop()) == 65


def test_code_and_versions_are_part_of_the_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = LintSettings()
    held = Store(folder)
    seen = {Cache(held, Path("/p"), "code").salt(settings), Cache(held, Path("/p"), "other").salt(settings)}
    for module, name, value in ((cache, "__version__", "9.9"), (cache, "FORMAT", -1)):
        with monkeypatch.context() as changed:
            changed.setattr(module, name, value)
            seen.add(Cache(held, Path("/p"), "code").salt(settings))
    monkeypatch.setattr(sys, "version_info", (3, 99, 0, "final", 0))
    seen.add(Cache(held, Path("/p"), "code").salt(settings))
    assert len(seen) == 5


def test_every_byte_is_part_of_the_key_and_the_name_is_not() -> None:
    assert cache.key(b"s", PATH, b"x") == cache.key(b"s", Path("/q/b.py"), b"x")
    keys = {
        cache.key(salt, Path(name), data)
        for salt in (b"s", b"t")
        for name in ("a.py", "a.ipynb", "a")
        for data in (b"", b"x", b"x\n", b"\xef\xbb\xbfx", b"\0x")
    }
    assert len(keys) == 2 * 3 * 5


# --- runs --------------------------------------------------------------------------------------------------


def treat(paths: list[Path], settings: LintSettings, known: Cache | None, mode: Mode = CHECK) -> list[Result]:
    return list(run(paths, lambda _: settings, mode, 1, None, known))


def test_a_second_run_gives_the_same_and_checks_nothing(
    tmp_path: Path, opened: Callable[[], Cache], settings: LintSettings, checked: list[str]
) -> None:
    paths = [tmp_path / f"{name}.py" for name in "abc"]
    for path, text in zip(paths, ("old\n", "x\n", "old  # noqa\nold\n"), strict=True):
        path.write_text(text)
    cold = treat(paths, settings, opened())
    assert len(checked) == 3
    assert treat(paths, settings, opened()) == cold == treat(paths, settings, None)
    assert len(checked) == 6
    paths[1].write_text("old, x\n")
    changed = treat(paths, settings, opened())
    assert checked[6:] == ["old, x\n"]
    assert changed == [cold[0], Result(paths[1], changed[1].diagnostics), cold[2]]
    assert len(changed[1].diagnostics) == 1
    paths[1].write_text("x\n")
    assert treat(paths, settings, opened()) == cold
    assert len(checked) == 7


def test_a_file_that_changes_while_it_is_checked_is_stored_as_what_was_checked(
    tmp_path: Path, opened: Callable[[], Cache], settings: LintSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old\n")
    read = source.read_bytes

    def racing(place: Path, limit: int = 0) -> bytes:
        data = read(place)
        path.write_bytes(b"x\n")
        return data

    with monkeypatch.context() as raced:
        raced.setattr(runner, "read_bytes", racing)
        (first,) = treat([path], settings, opened())
    assert first.diagnostics == ()
    path.write_bytes(b"old\n")
    (again,) = treat([path], settings, opened())
    assert [item.code for item in again.diagnostics] == ["XX101"]


@pytest.mark.parametrize("data", [b"crash\nold\n", b"old = (\n", b"\xff\n", None])
def test_files_that_failed_are_tried_again(
    tmp_path: Path, opened: Callable[[], Cache], settings: LintSettings, data: bytes | None
) -> None:
    path = tmp_path / "a.py"
    if data is not None:
        path.write_bytes(data)
    (first,) = treat([path], settings, opened())
    assert first.diagnostics[0].code in ("TL000", "TL001")
    assert treat([path], settings, opened()) == [first]
    path.write_bytes(b"x\n")
    assert treat([path], settings, opened()) == [Result(path)]


@pytest.mark.parametrize("mode", [Mode(fix=True), Mode(diff=True)])
def test_fixes_are_made_by_checking_anew_and_files_without_any_are_remembered(
    tmp_path: Path, opened: Callable[[], Cache], settings: LintSettings, checked: list[str], mode: Mode
) -> None:
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    paths[0].write_text("old\n")
    paths[1].write_text("x\n")
    expected = treat(paths, settings, None, Mode(diff=True))
    treat(paths, settings, opened())
    del checked[:]
    results = treat(paths, settings, opened(), mode)
    assert "x\n" not in checked
    assert results[0].applied == {"XX101": 1}
    assert results[0].diff == (expected[0].diff if mode.diff else None)
    assert paths[0].read_text() == ("old\n" if mode.diff else "new\n")
    unfixable = dataclasses.replace(settings, fixable=frozenset())
    treat(paths, unfixable, opened(), mode)
    del checked[:]
    treat(paths, unfixable, opened(), mode)
    assert checked == []


def test_an_interrupted_run_keeps_what_it_found(
    tmp_path: Path, opened: Callable[[], Cache], settings: LintSettings, checked: list[str]
) -> None:
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    for path in paths:
        path.write_text(f"old, {path.stem}\n")
    results = run(paths, lambda _: settings, Mode(), 1, None, opened())
    next(results)
    del results
    treat(paths, settings, opened())
    assert checked == ["old, a\n", "old, b\n"]


def test_workers_and_memory_agree(tmp_path: Path, opened: Callable[[], Cache]) -> None:
    settings = LintSettings(rules=tuple(registry.catalogue()), fixable=frozenset(registry.catalogue()))
    bad = (ROOT / "fixtures" / "TL601_cache_emptied_in_loop" / "bad.py").read_text()
    paths = [tmp_path / f"{at}.py" for at in range(6)]
    for path in paths:
        path.write_text(f"{bad}# {path.stem}{'-' * 60_000}\n")
    cold = list(run(paths, lambda _: settings, Mode(), 2, None, opened()))
    assert {item.code for item in cold[5].diagnostics} >= {"TL601"}
    warm = opened()
    assert list(run(paths, lambda _: settings, Mode(), 2, None, warm)) == cold
    assert list(run(paths, lambda _: settings, Mode(), 1, None, None)) == cold


def test_the_results_of_fixtures_come_back_as_they_were(opened: Callable[[], Cache]) -> None:
    catalogue = registry.catalogue()
    sample = [case for case in cases(ROOT / "fixtures") if case.bad][::25]
    assert len(sample) > 10
    settings = LintSettings(rules=tuple(catalogue), fixable=frozenset(catalogue))
    paths = [case.path for case in sample]
    cold = treat(paths, settings, opened())
    again = opened()
    assert [
        again.get(cache.key(again.salt(settings), path, sha256(path.read_bytes()).digest()), path)
        for path in paths
    ] == [result.diagnostics for result in cold]
    assert treat(paths, settings, opened()) == cold
    assert sum(len(result.diagnostics) for result in cold) > 30


def test_a_cache_that_cannot_be_written_changes_no_result(
    tmp_path: Path, opened: Callable[[], Cache], settings: LintSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_text("old\n")
    expected = treat([path], settings, None)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_replace", full)
    assert treat([path], settings, opened()) == expected
    assert treat([path], settings, opened()) == expected


def test_a_hostile_document_hides_nothing_that_git_tracks(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    folder = tmp_path / ".torchlint_cache"
    held = cache.open_store(folder)
    held.save("results-x", {})
    assert cache.open_store(folder).load("results-x") == {}
    subprocess.run(["git", "add", "-f", ".torchlint_cache"], cwd=tmp_path, check=True)
    with pytest.raises(store.StoreError, match="git tracks files in it"):
        cache.open_store(folder)


def test_documents_are_small(folder: Path, opened: Callable[[], Cache]) -> None:
    first = opened()
    for at in range(1000):
        first.put(f"{at:040}", ())
    first.save()
    assert len(json.dumps(Store(folder).load(document(folder).stem))) < 60_000
