"""The projects around the files that one process checks: one at a time, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint import reading
from torchlint.project.layout import Layout
from torchlint.project.traces import Changes, Rests
from torchlint.source import Source, SourceError, read_bytes

if TYPE_CHECKING:
    from torchlint.project.project import Project
    from torchlint.project.records import Records


def _same(records: Records) -> Records:
    return records


class Surroundings:
    """Makes the project of a layout when a file of it is checked, and keeps the last one.

    ``layouts`` are those of the run, by root. ``contents`` are the bytes of those files that count as
    something else than the disk has: what is staged, or what an editor sends. ``records`` gives what earlier
    runs know of files.
    """

    def __init__(
        self,
        layouts: Mapping[Path, Layout] | None = None,
        contents: Mapping[Path, bytes] | None = None,
        records: Callable[[], Records] | None = None,
    ) -> None:
        self._records = records
        self._layouts = dict(layouts or {})
        self._contents = dict(contents or {})
        self._texts: dict[Path, Source] = {}
        self._present: tuple[Path, Project] | None = None

    def __getstate__(self) -> dict[str, object]:
        """Return what another process is told: everything but what was computed,
        the records of files aside.
        """
        records = None if self._records is None else partial(_same, self._records())
        return {**vars(self), "_present": None, "_records": records}

    def take(self, texts: Mapping[Path, Source]) -> None:
        """Have files count as these texts from now on."""
        self._texts.update(texts)
        if self._present is not None:
            for text in texts.values():
                self._present[1].holds(text)

    def changes(self, changed: Iterable[tuple[Source, Source]], asked: Iterable[str]) -> Changes:
        """Return what the change of some files means to the others, by their texts before and now."""
        from torchlint.project.records import Records

        records = Records({}, {}) if self._records is None else self._records()
        return Changes(changed, asked, records, self._text)

    def _text(self, file: Path) -> str:
        """Return the text of a program as it counts; nothing of a notebook or what cannot be read."""
        if file in self._texts:
            return self._texts[file].text
        try:
            data = self._contents.get(file) or read_bytes(file)
            return reading.from_bytes(data, file).text if file.suffix == ".py" else ""
        except SourceError:
            return ""

    def project(self, root: Path | None) -> Project | None:
        """Return the project with this root, with all that was computed for the files before;
        None without one.
        """
        if root is None:
            return None
        if self._present is None or self._present[0] != root:
            if self._present is not None:
                self._present[1].close()
            self._present = root, self._made(self._layouts[root])
        return self._present[1]

    @property
    def keeps_model(self) -> bool:
        """Whether the model of a project is kept for the next of its files."""
        return self._present is not None and self._present[1].is_modelled

    def layout(self, root: Path | None) -> Layout | None:
        """Return the layout of the project with this root; None without one."""
        return None if root is None else self._layouts[root]

    def rests(self, root: Path | None, file: Path) -> Rests:
        """Return what was found in a file depends on; to be asked once it is checked.

        With it come all words that any file was asked for since this was asked.
        """
        project = self.project(root)
        return Rests() if project is None else replace(project.rests(file), asked=project.newly_asked())

    def _made(self, layout: Layout) -> Project:
        from torchlint.project.project import Project

        project = Project(layout.index(self._records() if self._records is not None else None))
        for path, content in self._contents.items():
            if path in layout.members:
                try:
                    notebook = path in layout.notebooks
                    project.holds(reading.from_bytes(content, path, notebook=notebook))
                except SourceError:
                    # Its own check says what is wrong with it; to the others it is as on the disk.
                    continue
        for path, text in self._texts.items():
            if path in layout.members:
                project.holds(text)
        return project
