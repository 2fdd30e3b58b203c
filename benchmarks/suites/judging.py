"""What fixes did to the tests of one package, and which rule is to blame."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.suites import running, trees
from benchmarks.suites.packages import Suite
from benchmarks.suites.running import Outcomes
from torchlint.target import Target

_AGAIN = 2
"""How often a test that seems lost is run again on each copy."""


@dataclass(slots=True)
class Lost:
    """A test that passes on the original and does not on a fixed copy, whenever it is run.

    Attributes:
        said: the first line of what it fails with.
        rules: whose fixes lose it, each on its own; empty if no rule does on its own.
        reason: why an unsafe fix may do that, from ``suites.toml``; empty if nobody wrote it down.
    """

    test: str
    said: str
    rules: list[str]
    reason: str = ""


@dataclass(slots=True)
class Variant:
    """The tests on one copy.

    ``missing`` tests passed before and were not run, since the run was ended by its limit. ``unstable`` ones
    ended otherwise than before once, and not each time they were run again. Seconds are of wall time.
    """

    fixes: dict[str, int] = field(default_factory=dict)
    files: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    missing: int = 0
    seconds: float = 0.0
    unstable: list[str] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)


@dataclass(slots=True)
class Verdict:
    """The tests of one package before, after the safe fixes, and after the unsafe ones if they were made."""

    package: str
    version: str
    left_out: dict[str, str]
    before: Variant
    safe: Variant
    unsafe: Variant | None

    @property
    def problems(self) -> list[str]:
        """Tests that were lost to a safe fix, or to an unsafe one without a reason; a sentence each."""
        found = [f"{self.package}: {lost.test} is lost to a safe fix: {lost.said}" for lost in self.safe.lost]
        found += [
            f"{self.package}: {lost.test} is lost to {', '.join(lost.rules) or 'several fixes together'}, "
            f"and nothing says why: {lost.said}"
            for lost in (self.unsafe.lost if self.unsafe is not None else ())
            if not lost.reason
        ]
        return found

    def as_json(self) -> dict[str, Any]:
        """Return it for the results file."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Judge:
    """Runs the tests of packages.

    Attributes:
        python: the interpreter that has what the packages need.
        target: the releases of torch that the fixes may take for granted: those of that interpreter.
        folder: where copies are made.
        jobs: how many processes run tests.
        limit: seconds for one run of all tests of a package.
        report: is told of each step.
        timeout: seconds after which one test counts as failed.
    """

    python: Path
    target: Target
    folder: Path
    jobs: int
    limit: float
    report: Callable[[str], None]
    timeout: int = 120

    def judge(self, suite: Suite, sources: Path, *, unsafe_too: bool = True) -> Verdict:
        """Run the tests of one package before and after the safe fixes, and after the unsafe ones.

        Raises:
            RuntimeError: its tests cannot be run at all, or torchlint failed on a file.
        """
        original = self.folder / f"{suite.name}-before"
        if original.exists():
            shutil.rmtree(original)
        shutil.copytree(sources, original, symlinks=True)
        before = self._run(suite, original)
        self.report(f"{suite.name} before: {_told(before)}")
        safe = self._variant(suite, original, before, unsafe=False, settled=())
        lost = [item.test for item in safe.lost]
        unsafe = self._variant(suite, original, before, unsafe=True, settled=lost) if unsafe_too else None
        return Verdict(
            suite.name, suite.version, suite.left_out, _counted(before, Outcomes({}, {}, 0)), safe, unsafe
        )

    def _variant(
        self, suite: Suite, original: Path, before: Outcomes, *, unsafe: bool, settled: Sequence[str]
    ) -> Variant:
        """Return the tests on a fixed copy; those ``settled`` are known to be lost to the safe fixes
        already.
        """
        name = "unsafe" if unsafe else "safe"
        copy = trees.fixed(original, self.folder / f"{suite.name}-{name}", target=self.target, unsafe=unsafe)
        after = self._run(suite, copy.tree) if copy.files else before
        self.report(f"{suite.name} {name}: {copy.applied.total()} fixes; {_told(after)}")
        variant = _counted(after, before)
        variant.fixes, variant.files = dict(sorted(copy.applied.items())), copy.files
        suspects = [
            test
            for test, outcome in before.ended.items()
            if outcome == "passed" and after.ended.get(test, "passed") != "passed" and test not in settled
        ]
        # A module that can no longer be collected has no tests at all.
        suspects += [test for test in after.said if test not in before.ended]
        really = self._steadily_lost(suite, suspects, original, copy.tree)
        variant.unstable = sorted(set(suspects) - set(really))
        for test in really:
            rules = self._guilty(suite, test, original, copy.applied, unsafe=unsafe)
            reason = " ".join(dict.fromkeys(suite.lost[rule] for rule in rules if rule in suite.lost))
            variant.lost.append(Lost(test, after.said.get(test, "it is no longer there"), rules, reason))
            self.report(f"{suite.name} {name}: lost {test} to {', '.join(rules)}")
        return variant

    def _steadily_lost(self, suite: Suite, tests: Iterable[str], original: Path, copy: Path) -> list[str]:
        """Return those of some tests that pass on the original and fail on the copy whenever they are run."""
        steady = list(tests)
        for _ in range(_AGAIN):
            if not steady:
                break
            before, after = (self._run(suite, tree, steady) for tree in (original, copy))
            steady = [
                test
                for test in steady
                if before.ended.get(test, "passed") == "passed" != after.ended.get(test, "missing")
            ]
        return steady

    def _guilty(
        self, suite: Suite, test: str, original: Path, rules: Iterable[str], *, unsafe: bool
    ) -> list[str]:
        """Return the rules whose fixes alone lose a test."""
        guilty = []
        for rule in sorted(rules):
            copy = trees.fixed(
                original,
                self.folder / f"{suite.name}-{rule}",
                target=self.target,
                unsafe=unsafe,
                only=[rule],
            )
            if self._run(suite, copy.tree, [test]).ended.get(test) != "passed":
                guilty.append(rule)
        return guilty

    def _run(self, suite: Suite, tree: Path, tests: Sequence[str] = ()) -> Outcomes:
        return running.run(
            self.python, suite, tree, tests=tests, jobs=self.jobs, limit=self.limit, timeout=self.timeout
        )


def _counted(outcomes: Outcomes, before: Outcomes) -> Variant:
    return Variant(
        passed=outcomes.count("passed"),
        failed=outcomes.count("failed"),
        skipped=outcomes.count("skipped"),
        missing=sum(test not in outcomes.ended for test, end in before.ended.items() if end == "passed"),
        seconds=outcomes.seconds,
    )


def _told(outcomes: Outcomes) -> str:
    counts = ", ".join(f"{outcomes.count(end)} {end}" for end in ("passed", "failed", "skipped"))
    return f"{counts} in {outcomes.seconds:.0f} s"
