"""The projects around open texts, in the process in which files are checked, kept from one check to the next.

What an editor has open counts for its file; the other files are read from the disk, and again once they have
changed there. What was found in a text stays until something changes that it depends on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchlint.diagnostics import Diagnostic
from torchlint.options import LintSettings
from torchlint.project.layout import Layout
from torchlint.project.project import Project
from torchlint.project.roots import METADATA
from torchlint.source import Source, state_of

_MOST_KEPT = 3
"""Projects of which the trees are kept; most people work on one."""


@dataclass(frozen=True)
class Surroundings:
    """The project that a text is checked in.

    ``texts`` are what else the editor has open of it. ``generation`` is another number once something may
    have changed on the disk.
    """

    layout: Layout
    texts: Mapping[Path, Source] = field(default_factory=dict)
    generation: int = 0


@dataclass(frozen=True)
class _Answer:
    """What was found in a text with these settings, depending on where names lead and on other texts."""

    text: str
    settings: LintSettings
    shape: int
    others: Mapping[Path, str]
    found: tuple[Diagnostic, ...]


class OpenProject:
    """A project of which something is open."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.project = Project(layout.index())
        self._open: frozenset[Path] = frozenset()
        self._states = {file: state_of(file) for file in layout.every}
        self._metadata = state_of(layout.root / METADATA)
        self._answers: dict[Path, _Answer] = {}

    def is_of(self, layout: Layout) -> bool:
        """Return whether this is the project of a layout, as its metadata is now."""
        return self.layout == layout and self._metadata == state_of(layout.root / METADATA)

    def follow(self, texts: Mapping[Path, Source]) -> None:
        """Take over what is open now, and read again what is not and has changed on the disk."""
        for file in self.layout.every:
            if file not in texts:
                state = state_of(file)
                if state != self._states[file] or file in self._open:
                    self._states[file] = state
                    self.project.reread(file)
        for source in texts.values():
            self.project.overlay(source)
        self._open = frozenset(texts)

    def known(self, source: Source, settings: LintSettings) -> tuple[Diagnostic, ...] | None:
        """Return what was found in a text, if all that it depends on is as it was then."""
        answer = self._answers.get(source.path)
        if answer is None or answer.text != source.text or answer.settings != settings:
            return None
        project = self.project
        same = answer.shape == project.index.shape and all(
            project.text(file) == text for file, text in answer.others.items()
        )
        return answer.found if same else None

    def keep(self, source: Source, settings: LintSettings, found: tuple[Diagnostic, ...]) -> None:
        """Remember what was found in a text."""
        project = self.project
        others = {file: project.text(file) for file in project.consulted(source.path)}
        self._answers[source.path] = _Answer(source.text, settings, project.index.shape, others, found)


class OpenProjects:
    """The projects of which something is open, the one asked for last at the end."""

    def __init__(self) -> None:
        self._kept: dict[Path, OpenProject] = {}

    def of(self, around: Surroundings, source: Source) -> OpenProject:
        """Return the project around a text, with that text and whatever else is open of it."""
        root = around.layout.root
        kept = self._kept.pop(root, None)
        if kept is None or not kept.is_of(around.layout):
            kept = OpenProject(around.layout)
        self._kept[root] = kept
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        kept.follow({**around.texts, source.path: source})
        return kept
