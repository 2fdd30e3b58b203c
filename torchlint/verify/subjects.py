"""What is measured: the script of a user, or the bench case of a rule."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from torchlint import reading
from torchlint.runner import unified_diff
from torchlint.source import NOTEBOOK, Source, read_bytes, with_line_feeds
from torchlint.verify.cases import STEP, STEP_FIXED, Case, fixed_text
from torchlint.verify.results import AGAIN, ORIGINAL, TOGETHER, Machine, Variant
from torchlint.verify.variants import Texts
from torchlint.verify.worker.copies import copied
from torchlint.verify.worker.job import Job
from torchlint.verify.workspace import Workspace


class Script:
    """A user's program, as ``python SCRIPT ARGUMENTS`` would run it, in copies of its project.

    A notebook runs as the program that its cells make, without what only IPython understands; in the copies,
    that program stands in its place.

    With ``module`` it is run as ``python -m MODULE ARGUMENTS``, found in the folder ``search``.
    With ``entry`` (``module:function``, or the name of a function of the script) the program is not run as
    a whole: its module is imported, and each call of the function is a step.
    With ``ranks`` it is run as ``torchrun --nproc-per-node RANKS`` does.
    ``started`` is a remark on how that is done.
    """

    reruns = False

    def __init__(
        self,
        workspace: Workspace,
        arguments: Sequence[str] = (),
        *,
        device: str = "auto",
        entry: str = "",
        module: str = "",
        search: Path | None = None,
        directory: Path | None = None,
        ranks: int = 1,
        started: str = "",
    ) -> None:
        self.ranks = ranks
        self._started = started
        self._workspace, self._arguments = workspace, tuple(arguments)
        self._module = (module, search.resolve()) if module and search else None
        self._device, self._entry = device, entry
        self._directory = _inside(directory or Path.cwd(), workspace)
        self.name = str(workspace.relative)
        self.path = workspace.project / workspace.relative
        self.source = with_line_feeds(read_bytes(self.path).decode("utf-8", "replace"))
        self.contents: dict[str, Mapping[PurePosixPath, bytes]] = {}
        """For each variant, the new contents of the files that it changes."""
        self._program: dict[PurePosixPath, bytes] = {}
        if self.path.suffix == NOTEBOOK:
            self.source = reading.read(self.path).text
            self._program = {workspace.relative: self.source.encode()}

    def sources(self, modules: Sequence[str]) -> dict[PurePosixPath, Source]:
        """Return the script and those of its project's modules that it imports, as the user has them."""
        paths = [self._workspace.relative, *(PurePosixPath(module) for module in modules)]
        return {path: reading.read(self._workspace.project / path) for path in dict.fromkeys(paths)}

    def encoded(self, texts: Texts) -> dict[PurePosixPath, bytes]:
        """Return the bytes of new texts, in the encodings that their files have."""
        return {
            path: text.encode()
            if path in self._program
            else reading.read(self._workspace.project / path).encode(text)
            for path, text in texts.items()
        }

    def job(self, variant: str, task: str) -> Job:
        """Return the run of a variant in a new copy of the project."""
        copy = self._workspace.copy({**self._program, **self.contents.get(variant, {})})
        project = copy.project
        script = project / self._workspace.relative
        form, path, search = "script", str(script), script.parent
        package = _package(script, project, self.source)
        if self._module is not None:
            module, searched = self._module
            package = module, Path(copied(str(searched), self._workspace.project, project))
        if package is not None:
            form, path, search = "module", package[0], package[1]
        function = ""
        if self._entry:
            module, _, function = self._entry.rpartition(":")
            form, path = "entry", module or (package[0] if package else script.stem)
        return Job(
            task=task,
            form=form,
            path=path,
            folder=str(project / self._directory),
            search=(str(search),),
            arguments=tuple(self._led(text, project) for text in self._arguments),
            function=function,
            ranks=self.ranks,
            device=self._device,
            project=str(project),
            scratch=str(copy.scratch),
            original=str(self._workspace.project),
        )

    def remarks(self) -> list[str]:
        """Return what the user should know of the runs so far: how they started,
        and if they left their copies.
        """
        remarks = [self._started] if self._started else []
        touched = self._workspace.touched()
        if not touched:
            return remarks
        named = ", ".join(touched[:3]) + (f" and {len(touched) - 3} more" if len(touched) > 3 else "")
        remark = (
            f"{named} in {self._workspace.project} changed while the program ran: unless somebody edited it, "
            "the program writes to it by an absolute path instead of to its copy"
        )
        return [*remarks, remark]

    def _led(self, argument: str, project: Path) -> str:
        """Return the argument with a path into the user's project leading into the copy."""
        head, equals, path = argument.partition("=") if argument.startswith("-") else ("", "", argument)
        return head + equals + copied(path, self._workspace.project, project)


def module_file(name: str, searched: Sequence[Path]) -> tuple[Path, Path] | None:
    """Return the file that ``python -m NAME`` runs, and the folder of ``searched`` that has it;
    None if none has.
    """
    for folder in searched:
        place = folder.joinpath(*name.split("."))
        for file in (place.with_name(f"{place.name}.py"), place / "__main__.py"):
            if file.is_file():
                return file, folder
    return None


class Bench:
    """The case of one rule; its good form is made by the fixer, or is a function of the case itself."""

    reruns = True

    def __init__(self, case: Case, folder: Path, *, device: str = "auto") -> None:
        self._case, self._device = case, device
        self._fixed = fixed_text(case)
        self.name = case.code
        self.ranks = max(case.ranks, case.ranks_fixed)
        self.source = case.text
        self.variant = self._variant()
        self.folder = folder / case.code
        self.folder.mkdir()
        self._numbers = itertools.count(1)

    def chosen(self, sizes: Sequence[str]) -> list[str]:
        """Return the sizes of the case, or those of ``sizes`` that it has."""
        return [size for size in self._case.sizes if not sizes or size in sizes]

    def place(self, found: Machine) -> tuple[Machine, list[str]]:
        """Choose where the case runs, now that the machine is known: what it is there, and what to say of it.

        Ranks have a GPU each. Where there are too few, all run on the processor.
        """
        if self.ranks == 1 or found.device == "cpu" or found.gpus >= self.ranks:
            return found, []
        self._device = "cpu"
        devices = f"{found.gpus} GPU{'s' if found.gpus != 1 else ''}" if found.gpus else "no GPU for them"
        note = f"its {self.ranks} ranks ran on the CPU with gloo: there is {devices} on this machine"
        return replace(found, device="cpu", gpu=None, gpu_memory=None, gpus=0), [note]

    def _variant(self) -> Variant:
        """Return the good form, with what the fixer did to get there."""
        path = PurePosixPath(self._case.path.name)
        source = Source(Path(path), self._case.text)
        return Variant(TOGETHER, (self.name,), diff=unified_diff(source, self._fixed))

    def job(self, variant: str, task: str) -> Job:
        """Return the run of a variant in a folder of its own."""
        bad = variant in (ORIGINAL, AGAIN)
        project = self.folder / f"run{next(self._numbers)}" / "case"
        project.mkdir(parents=True)
        path = project / self._case.path.name
        path.write_text(self._case.text if bad else self._fixed, encoding="utf-8")
        return Job(
            task=task,
            form="case",
            path=str(path),
            folder=str(project),
            function=STEP if bad or not self._case.has_step_fixed else STEP_FIXED,
            ranks=self._case.ranks if bad else self._case.ranks_fixed,
            compared=self._case.compared,
            device=self._device,
            size=self._case.sizes[0],
            project=str(project),
            scratch=str(project.parent),
        )


def _inside(directory: Path, workspace: Workspace) -> PurePosixPath:
    """Return where the program runs, within the project: where the user stands,
    or else where the script lies.
    """
    try:
        return PurePosixPath(directory.resolve().relative_to(workspace.project).as_posix())
    except ValueError:
        return workspace.relative.parent


def _package(script: Path, project: Path, text: str) -> tuple[str, Path] | None:
    """Return the dotted name of a script with relative imports, and where to import it from;
    None for others.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    if not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree)):
        return None
    names, folder = [script.stem], script.parent
    while folder != project and (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    return (
        (".".join(names), folder)
        if len(names) > 1
        else (f"{script.parent.name}.{script.stem}", script.parent.parent)
    )
