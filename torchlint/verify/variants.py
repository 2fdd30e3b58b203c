"""The forms of a program that are compared: as written, with all fixes, and with each fix alone.

Every fixed form is made by torchlint's own fixer, so that what is measured is what ``--fix`` would write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from torchlint import fixer
from torchlint.checker import check
from torchlint.diagnostics import Diagnostic
from torchlint.options import LintSettings
from torchlint.runner import unified_diff
from torchlint.source import Source
from torchlint.verify.results import TOGETHER, AppliedFix, Variant

SettingsFor = Callable[[Source], LintSettings]
Texts = Mapping[PurePosixPath, str]
"""New texts of files, by their paths within the project's folder; the others stay as they are."""


@dataclass(frozen=True)
class Form:
    """A variant together with the texts that make it."""

    variant: Variant
    texts: Texts


def forms(
    sources: Mapping[PurePosixPath, Source], settings_for: SettingsFor, *, each_place: bool = False
) -> list[Form]:
    """Return the form with all fixes first, then one for each rule that has a fix of its own to offer.

    ``sources`` are the files of the program. With ``each_place`` there is a form for each single finding
    instead of one for each rule. Where a single rule or place is all there is, only the form with all fixes
    is returned; without any fix, none is.
    """
    together = _form(
        TOGETHER, sources, {path: _fixed(source, settings_for(source)) for path, source in sources.items()}
    )
    if together is None:
        return []
    alone = (
        _places(sources, settings_for)
        if each_place
        else _rules(sources, settings_for, together.variant.codes)
    )
    return [together, *(alone if len(alone) > 1 else [])]


def accepted(
    sources: Mapping[PurePosixPath, Source], settings_for: SettingsFor, names: Collection[str]
) -> Texts:
    """Return the texts of the files that change
    if exactly the fixes of the variants ``names`` are applied.
    """
    texts = {}
    for path, source in sources.items():
        settings = settings_for(source)
        places = [item for item in _offered(source, settings) if _place_name(path, item, sources) in names]
        if places:
            chosen = fixer.choose(places, source.text)
            text = fixer.apply(source.text, [edit for item in chosen if item.fix for edit in item.fix.edits])
        else:
            codes = settings.fixable & frozenset(names)
            text = _fixed(source, replace(settings, fixable=codes)).text if codes else source.text
        if text != source.text:
            texts[path] = text
    return texts


def _rules(
    sources: Mapping[PurePosixPath, Source], settings_for: SettingsFor, codes: Sequence[str]
) -> list[Form]:
    found = []
    for code in codes:
        fixed = {
            path: _fixed(source, replace(settings_for(source), fixable=frozenset({code})))
            for path, source in sources.items()
        }
        form = _form(code, sources, fixed)
        if form is not None:
            found.append(form)
    return found


def _places(sources: Mapping[PurePosixPath, Source], settings_for: SettingsFor) -> list[Form]:
    found = []
    for path, source in sources.items():
        for item in _offered(source, settings_for(source)):
            assert item.fix is not None
            text = fixer.apply(source.text, item.fix.edits)
            name, diff = _place_name(path, item, sources), _diff(path, source, text)
            found.append(Form(Variant(name, (item.code,), (_applied(path, item),), diff), {path: text}))
    return found


def _offered(source: Source, settings: LintSettings) -> list[Diagnostic]:
    """Return the findings of a file whose fixes may be applied."""
    return [item for item in check(source, settings) if fixer.applicable(item, settings)]


def _place_name(path: PurePosixPath, item: Diagnostic, sources: Collection[PurePosixPath]) -> str:
    """Return ``TL202:41``; with the file between them where the program has several."""
    return f"{item.code}:{item.start.row}" if len(sources) == 1 else f"{item.code}:{path}:{item.start.row}"


@dataclass(frozen=True)
class _Fixed:
    text: str
    fixes: tuple[tuple[str, Diagnostic | None], ...]
    """The code of each fix, with the finding of the original text that it belongs to, if there is one."""


def _fixed(source: Source, settings: LintSettings) -> _Fixed:
    fixed = fixer.fix(source, settings)
    if fixed.text == source.text:
        return _Fixed(source.text, ())
    at_first = _offered(source, settings)
    fixes: list[tuple[str, Diagnostic | None]] = []
    for code, count in sorted(fixed.applied.items()):
        known = [item for item in at_first if item.code == code][:count]
        fixes += [(code, item) for item in known] + [(code, None)] * (count - len(known))
    return _Fixed(fixed.text, tuple(fixes))


def _form(
    name: str, sources: Mapping[PurePosixPath, Source], fixed: Mapping[PurePosixPath, _Fixed]
) -> Form | None:
    """Return the form that has these texts; None if none of them is changed."""
    changed = {path: outcome for path, outcome in fixed.items() if outcome.fixes}
    if not changed:
        return None
    fixes = tuple(
        _applied(path, item) if item is not None else _later(path, code)
        for path, outcome in changed.items()
        for code, item in outcome.fixes
    )
    codes = tuple(sorted({fix.code for fix in fixes}))
    diff = "".join(_diff(path, sources[path], outcome.text) for path, outcome in changed.items())
    return Form(Variant(name, codes, fixes, diff), {path: outcome.text for path, outcome in changed.items()})


def _applied(path: PurePosixPath, item: Diagnostic) -> AppliedFix:
    assert item.fix is not None
    return AppliedFix(
        item.code, item.name, item.fix.message, item.fix.applicability.label, str(path), item.start.row
    )


def _later(path: PurePosixPath, code: str) -> AppliedFix:
    """Return a fix of a finding that another fix brought up."""
    from torchlint.registry import rules

    return AppliedFix(code, rules()[code].name, "", "", str(path), 0)


def _diff(path: PurePosixPath, source: Source, text: str) -> str:
    return unified_diff(replace(source, path=Path(path)), text)
