"""The two measurements as a whole: of the bench cases of rules, and of a user's script.

What has been measured can be had at any time, so that an interrupted run loses only what it had not finished.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath

from torchlint import __version__
from torchlint.source import Source
from torchlint.verify.cases import Case
from torchlint.verify.measure import Pool, Progress, Session, Settings, processors
from torchlint.verify.plan import LEAST_REPLICATES
from torchlint.verify.processes import Failure, Nurseries, Spares, machine
from torchlint.verify.results import (
    AGAIN,
    ORIGINAL,
    TOGETHER,
    Evidence,
    Machine,
    Results,
    SyncReport,
    Timeline,
    Variant,
)
from torchlint.verify.scratch import Scratch
from torchlint.verify.subjects import Bench, Script
from torchlint.verify.timeline import AFTER, BEFORE, Recording, brief, steadiest
from torchlint.verify.variants import Form, Texts

GPU = Path("/dev/nvidiactl")
"""What is there with the driver of a GPU."""
MOST_SPARES = 14
"""How many processes import torch early: two of each variant, where four rules have fixes."""
BUSY_PROCESSORS = 2
"""The processors that are left to others meanwhile."""
PROCESS_ROOM = 1 << 30
"""Bytes of device memory that a waiting process may take: its CUDA context, and a little."""
CASE_ROOM = 16 << 30
"""Bytes of device memory that the examination of a case may take."""
RANKED_AT_ONCE = 2
"""How many cases of several ranks are examined at once: one can use the GPUs while another writes or compares
results. More would get in each other's way, as ranks that wait use up time of their GPUs."""
REPORTING = 0.03
"""The share of a budget that is kept for what is written at the end."""
RECORDING = 0.1
"""The share of a budget that a timeline which is only drawn may take."""
TOO_EXPENSIVE = (
    "recording a step takes more than a tenth of the budget; raise `--budget`, or use `--trace FILE`"
)
EXAMINING = 0.2
"""The share of a bench run that the examinations take, roughly."""

Sources = Mapping[PurePosixPath, Source]
"""The files of a program, by their paths within the project's folder."""
FormsOf = Callable[[Sources], Sequence[Form]]
"""Makes the variants of a program."""
ReportOf = Callable[[Evidence, Mapping[str, Set[int]] | None, Sources], SyncReport]
"""Joins what was seen, and the lines that ran, with what is predicted."""


class Run:
    """What one command measures."""

    def __init__(self, command: str, settings: Settings, progress: Progress) -> None:
        self._command, self._settings, self._progress = command, settings, progress
        self._started = datetime.now(timezone.utc)
        self._clock = time.monotonic()
        self._machine: Machine | None = None
        self._sessions: list[Session] = []
        self._share = 0.0
        self.recordings: Sequence[Recording] = ()
        """Those of one step, if they were asked for."""
        self.fixed: Texts = {}
        """The files that all fixes together change."""

    def bench(self, cases: Sequence[Case], sizes: Sequence[str] = ()) -> None:
        """Measure each case in each of its sizes, or in those of ``sizes`` that it has.

        Raises:
            Failure: there is no torch, or no such device.
            ValueError: the fixer leaves a case unchanged.
        """
        with ExitStack() as stack:
            folder = stack.enter_context(Scratch())
            subjects = [Bench(case, folder, device=self._settings.device) for case in cases]
            nurseries = stack.enter_context(Nurseries(folder, self._settings.device))
            for number in range(min(self._replicates, processors())):
                nurseries.get(number)
            self._progress("inspecting the machine", 0.0)
            found = self._machine = machine(self._settings.device, folder, nurseries.get(0))
            pools = [stack.enter_context(Pool(subject, nurseries)) for subject in subjects]
            places = [subject.place(found) for subject in subjects]
            sessions = [
                [
                    Session(pool, settings, place, subject.folder, size, tuple(remarks))
                    for size in subject.chosen(sizes)
                ]
                for subject, pool, settings, (place, remarks) in zip(
                    subjects, pools, map(self._settings_of, cases), places, strict=True
                )
            ]
            self._sessions = [session for of_case in sessions for session in of_case]
            self._examine(subjects, pools, sessions, found)
            for of_case, pool in zip(sessions, pools, strict=True):
                self._time(of_case, found, pool)
            self._time_more()

    def _settings_of(self, case: Case) -> Settings:
        """Return the settings of the run, with the tolerance that a case asks for if it is wider."""
        return replace(self._settings, tolerance=max(self._settings.tolerance, case.tolerance))

    def syncs(self, script: Script, folder: Path, report_of: ReportOf) -> None:
        """Run a script once, to its end or for the budget's time, and join where it waits with predictions.

        Raises:
            Failure: there is no torch, no such device, or the script itself does not run.
        """
        self._progress("inspecting the machine", 0.0)
        found = self._machine = machine(self._settings.device, folder)
        with Pool(script) as pool:
            session = Session(pool, self._settings, found, folder)
            self._sessions = [session]
            self._progress("running the program", 0.2)
            session.allow(self._left() - REPORTING * self._settings.budget)
            evidence, phases, ended = session.watch_original()
            session.notes += script.remarks()
            report = report_of(evidence, session.lines, script.sources(session.modules))
            seen = evidence.syncs is not None
            session.syncs = replace(report, phases=phases if seen else (), ended=ended)

    def verify(
        self, script: Script, folder: Path, forms_of: FormsOf, *, traced: bool = False, drawn: bool = False
    ) -> None:
        """Measure a script with all fixes, and with each alone.

        A step is recorded for its timeline if that is ``traced``, or ``drawn`` and not too expensive.

        Raises:
            Failure: there is no torch, no such device, or the script itself does not run.
        """
        with ExitStack() as stack:
            # A second one would take as long as everything else until the first step.
            nurseries = stack.enter_context(Nurseries(folder, self._settings.device, most=1))
            spares = stack.enter_context(Spares(folder, self._settings.device, self._spares(script)))
            background = stack.enter_context(ThreadPoolExecutor(1))
            self._progress("inspecting the machine", 0.0)
            began = time.monotonic()
            nursery = nurseries.get(0)
            # While it imports torch: most programs are a single file.
            of_script = background.submit(forms_of, script.sources(()))
            found = self._machine = machine(self._settings.device, folder, nursery)
            imported = time.monotonic() - began
            pool = stack.enter_context(Pool(script, nurseries, spares))
            if found.device != "cpu":
                # A copy is not the program: there, the main thread has as many threads as the machine has
                # processors, even where a loader that pins memory would have left it a single one.
                pool.fresh = frozenset({"time"})
            session = Session(pool, self._settings, found, folder, importing=imported)
            session.allow(self._left() - REPORTING * self._settings.budget)
            self._sessions = [session]
            self._tell("running the original")
            session.examine_original()
            sources = script.sources(session.modules)
            single = of_script.result() if len(sources) == 1 else None
            loading = background.submit(nurseries.load, session.libraries)
            before = {str(path): source.text for path, source in sources.items()}
            made = []
            for form in single if single is not None else forms_of(sources):
                if session.reaches(before, {str(path): text for path, text in form.texts.items()}):
                    made.append(form.variant)
                    script.contents[form.variant.name] = script.encoded(form.texts)
                    if form.variant.name == TOGETHER:
                        self.fixed = form.texts
                else:
                    session.unreached.append(form.variant)
            loading.result()
            recording = session.recording_seconds * (2 if made else 1)
            cheap = recording <= RECORDING * self._settings.budget
            if made:
                self._tell("comparing results")
                chosen = session.affordable(made, recording if traced or (drawn and cheap) else 0.0)
                session.examine(chosen)
                if nurseries.loaded and session.examinations[AGAIN].failure is not None:
                    # The original ran by itself: a library does not let itself be copied.
                    nurseries.renew()
                    session.examine(chosen)
                if session.rejected(chosen) and len(chosen) < len(made):
                    # What was left out has all the time now.
                    session.examine([variant for variant in made if variant not in chosen])
                    session.dropped.clear()
                session.train()
            # Who asks for a file gets it, as everybody gets a timing, whatever the budget is.
            if traced or (drawn and cheap and self._left() > 0):
                self._tell("recording a step")
                self.recordings = self._recorded(session)
                session.timelines = self._briefly(sources, made)
            elif drawn:
                session.timelines = [
                    Timeline(ORIGINAL, missing="the time was up" if cheap else TOO_EXPENSIVE)
                ]
            if made:
                session.time(lambda text, _: self._tell(text))
            session.notes += script.remarks()

    def _recorded(self, session: Session) -> Sequence[Recording]:
        """Return a step of the original, and the same with all fixes."""
        before = session.record(BEFORE, ORIGINAL)
        if TOGETHER not in session.examinations:
            reason = "lines that fixes change did not run" if session.unreached else "there are no fixes"
            return steadiest([before, Recording(AFTER, missing=reason)])
        failure = session.examinations[TOGETHER].failure
        after = Recording(AFTER, missing=failure) if failure else session.record(AFTER, TOGETHER)
        return steadiest([before, after])

    def after(self, sources: Sources) -> Sources:
        """Return the files of the program as all fixes together leave them."""
        return {**sources, **{file: replace(sources[file], text=text) for file, text in self.fixed.items()}}

    def _briefly(self, sources: Sources, made: Sequence[Variant]) -> list[Timeline]:
        """Return the recordings as the page shows them."""
        changed = {(fix.file, fix.row) for item in made if item.name == TOGETHER for fix in item.fixes}
        before, after = self.recordings
        return [brief(before, ORIGINAL, sources, changed), brief(after, TOGETHER, self.after(sources))]

    @property
    def modules(self) -> Sequence[str]:
        """The files of the script's project that it has loaded."""
        return self._sessions[0].modules if self._sessions else ()

    def results(self, *, interrupted: bool = False) -> Results:
        """Return everything that is known by now.

        Raises:
            Failure: not even the machine is.
        """
        if self._machine is None:
            raise Failure("nothing was measured")
        return Results(
            command=self._command,
            torchlint=__version__,
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self._clock, 1),
            machine=self._machine,
            measurements=tuple(session.measurement() for session in self._sessions if session.begun),
            commit=_commit(),
            interrupted=interrupted,
        )

    @property
    def _replicates(self) -> int:
        """The replicates that are certain to be run."""
        return self._settings.wishes.replicates or LEAST_REPLICATES

    def _spares(self, script: Script) -> int:
        """Return how many processes shall import torch from the start,
        since a program is timed in them on a GPU.

        That is as early as nobody knows the device or how many variants there are.
        """
        if script.ranks > 1 or self._settings.device == "cpu" or not GPU.exists():
            return 0
        return max(0, min(processors() - BUSY_PROCESSORS, MOST_SPARES))

    def _tell(self, text: str) -> None:
        """Say what is being done, and which share of the budget is over."""
        self._progress(text, min(1 - self._left() / self._settings.budget, 1.0))

    def _left(self) -> float:
        """Return seconds of the budget."""
        return self._settings.budget - (time.monotonic() - self._clock)

    def _examine(
        self,
        subjects: Sequence[Bench],
        pools: Sequence[Pool],
        sessions: Sequence[Sequence[Session]],
        found: Machine,
    ) -> None:
        """Examine all cases, several at once: nothing of that is timed."""

        few = threading.Semaphore(RANKED_AT_ONCE)

        def examine(number: int) -> None:
            room = few if subjects[number].ranks > 1 else nullcontext()
            with room, pools[number].closing():
                for variant in (AGAIN, TOGETHER):
                    pools[number].start(variant, "examine", 1)
                for session in sessions[number]:
                    with _failures_noted(session):
                        session.examine_original()
                        session.examine([subjects[number].variant])
                    self._progress(f"{subjects[number].name} {session.size}: results compared", self._share)

        at_once = processors() // 2
        if found.gpu_memory is not None:
            at_once = min(at_once, found.gpu_memory // CASE_ROOM)
        with ThreadPoolExecutor(max(1, at_once)) as threads:
            try:
                for done, _ in enumerate(threads.map(examine, range(len(pools)))):
                    self._share = EXAMINING * (done + 1) / len(pools)
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                for pool in pools:
                    pool.abort()
                raise

    def _time(self, sessions: Sequence[Session], found: Machine, pool: Pool) -> None:
        """Time one case in all its sizes, in the same processes."""
        with pool.closing():
            self._start(pool, found)
            for session in sessions:
                number = self._sessions.index(session)

                def progress(
                    text: str, share: float, session: Session = session, number: int = number
                ) -> None:
                    behind = EXAMINING + (1 - EXAMINING) * (number + share) / len(self._sessions)
                    self._progress(f"{session.pool.subject.name} {session.size}: {text}", behind)

                with _failures_noted(session):
                    session.allow(self._left() / (len(self._sessions) - number))
                    session.time(progress)

    def _time_more(self) -> None:
        """Spend what is left of the budget where a few more replicates may settle something."""
        # The narrowest of the intervals that are too wide are the easiest to narrow.
        for session in sorted(self._sessions, key=lambda session: session.half_width):

            def progress(text: str, _: float, session: Session = session) -> None:
                self._progress(f"{session.pool.subject.name} {session.size}: {text}", 1.0)

            session.allow(self._left())
            with session.pool.closing(), _failures_noted(session):
                session.time_more(progress)

    def _start(self, pool: Pool, found: Machine) -> None:
        """Let the processes of a case find the device at once, as many as there is room for."""
        count = 3 * self._replicates * pool.subject.ranks
        if count > processors() or (found.gpu_memory or count * PROCESS_ROOM) < count * PROCESS_ROOM:
            return
        for variant in (ORIGINAL, AGAIN, TOGETHER):
            pool.start(variant, "time", self._replicates)


@contextmanager
def _failures_noted(session: Session) -> Iterator[None]:
    """Note the failure of one case, so that it does not cost the others."""
    try:
        yield
    except Failure as error:
        session.notes.append(error.reason)


def _commit() -> str | None:
    """Return the commit of the checkout that this torchlint is imported from."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return found.stdout.strip() or None
