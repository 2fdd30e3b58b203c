"""A fixpoint solver for questions that depend on each other, whichever of them is asked first.

Each question is answered by asking others. Questions that lead back to themselves form a strongly connected
component of the graph of who asked whom, and are solved together: every member starts from the answer that
says nothing, and the members are evaluated again, in a fixed order rather than that of the asking, until each
answer agrees with those that it was computed from. Only then is any of them remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torchlint.effort import Effort
from torchlint.semantics.dependencies import noted

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")

MANY = 64
"""How many of anything are told apart: the one bound of the model, which widens what would not end by itself.

Where more definitions than these reach a read, one of them stands for all; a value with more parts is told
without what is in them; a formula of more operations is none; an iteration goes into no more functions; and
answers that go on changing for so many rounds are given up, since not all that is asked is monotone. What
people write stays far below: the answers of a circle agree in five rounds.
"""


@dataclass(frozen=True, slots=True)
class Answers(Generic[A]):
    """The answers there are to one sort of question.

    Attributes:
        nothing: what a question says that is still being computed, neutral wherever answers meet.
        unknown: what is said where no answer holds.
    """

    nothing: A
    unknown: A


_Question = tuple[Any, Callable[[Any], Any], Answers[Any]]
"""A key, what works it out, and the answers there are."""


class Fixpoint(Generic[Q, A]):
    """Computes questions and remembers their answers.

    ``order`` tells in which order the questions of a component are gone through; questions that are alike
    in it must not be in one component. ``depth`` bounds how deep one question may lead into others at a
    time: whatever lies deeper is solved like a component, step by step. ``effort`` counts the steps: rounds
    through a long component ask again what its answers depend on, though nothing is computed anew.
    """

    def __init__(
        self, order: Callable[[Q], tuple[int, str]], *, depth: int, effort: Effort | None = None
    ) -> None:
        self.settled: dict[Q, A] = {}
        """The answers that hold, whatever else is asked, and that depend on no other file."""
        self.resting: dict[Q, tuple[A, int]] = {}
        """Those that depend on other files, with these; all of a component on the same."""
        self._order = order
        self._depth = depth
        self._effort = effort or Effort()
        # Open questions in the order in which they were met, and the number of each; those of a component
        # that is being gone through have the same. ``_bounds`` has the numbers at which, as far as has been
        # seen, components begin (H. N. Gabow, Path-based depth-first search, 2000).
        self.open: list[_Question] = []
        self._numbers: dict[Q, int] = {}
        self._bounds: list[int] = []
        self._working: set[Q] = set()
        self._current: dict[Q, A] = {}
        self._previous: dict[Q, A] = {}
        self._leaned: dict[Q, A] = {}
        """The questions that were asked while in work, and what they said then."""
        self._grounds: dict[Q, tuple[list[tuple[_Question, A]], A]] = {}
        """What answers depend on: the open questions asked for each, with what they said, and it."""
        self.asked: list[tuple[_Question, A]] = []
        """The open questions that the one in work has asked so far, and what they said."""
        self.leaning: dict[Any, tuple[list[tuple[_Question, A]], Any, int]] = {}
        """What others keep that depends on open questions: these, with what they said, it, and its files."""

    def __len__(self) -> int:
        """Return how many answers are remembered."""
        return len(self.settled) + len(self.resting)

    def knows(self, key: Q) -> bool:
        """Return whether a question has an answer that holds, whatever else is asked."""
        return key in self.settled or key in self.resting

    def grounds_since(self, begin: int) -> list[tuple[_Question, A]]:
        """Return the open questions ``asked`` since there were so many, each once, with what they said."""
        asked = self.asked
        asked[begin:] = {question[0]: (question, said) for question, said in asked[begin:]}.values()
        return asked[begin:]

    def still(self, grounds: Sequence[tuple[_Question, A]]) -> bool:
        """Return whether questions still say what they said; they count as asked by the one in work."""
        for question, then in grounds:
            now = self.ask(*question)
            if now is not then and now != then:
                return False
        return True

    def ask(self, key: Q, work_out: Callable[[Q], A], answers: Answers[A]) -> A:
        """Return the answer to a question; inside a component that is still open, what it says so far."""
        known = self.settled.get(key)
        if known is not None:
            return known
        resting = self.resting.get(key)
        if resting is not None:
            noted.files |= resting[1]
            return resting[0]
        number = self._numbers.get(key)
        if number is None:
            answer = self._first(key, work_out, answers)
            if key not in self._numbers:
                return answer
        else:
            if self._bounds[-1] > number:
                self._merge(number)
            current = self._current.get(key)
            answer = self._again(key, work_out, answers) if current is None else current
        self.asked.append(((key, work_out, answers), answer))
        return answer

    def _first(self, key: Q, work_out: Callable[[Q], A], answers: Answers[A]) -> A:
        """Return the answer to a question that is not open yet."""
        number = len(self.open)
        self._numbers[key] = number
        self.open.append((key, work_out, answers))
        if len(self._working) >= self._depth:
            self._merge(0)
            self._leaned[key] = answers.nothing
            return answers.nothing
        bounds = self._bounds
        bounds.append(number)
        # What `_work_out` does, without one more call for each question that is asked.
        outer = self.asked
        asked = self.asked = []
        self._working.add(key)
        files, noted.files = noted.files, 0
        try:
            answer = work_out(key)
        except BaseException:
            self._abandon()
            noted.files |= files
            raise
        finally:
            self.asked = outer
        self._working.discard(key)
        if bounds[-1] == number and len(self.open) == number + 1 and key not in self._leaned:
            bounds.pop()
            self.open.pop()
            del self._numbers[key]
            if not number:
                self.leaning.clear()
            if answer is answers.nothing:
                answer = answers.unknown
            if noted.files:
                self.resting[key] = answer, noted.files
                noted.files |= files
            else:
                self.settled[key] = answer
                noted.files = files
            return answer
        if asked:
            self._grounds[key] = asked, answer
        self._current[key] = answer
        if bounds[-1] != number:
            noted.files |= files
            return answer
        try:
            # All of its component has been asked since it was, or is now.
            self._solve(number)
        finally:
            noted.files |= files
        if key in self._current:
            return self._current[key]
        settled = self.settled.get(key)
        return self.resting[key][0] if settled is None else settled

    def _again(self, key: Q, work_out: Callable[[Q], A], answers: Answers[A]) -> A:
        """Return what an open question says that has no answer at present."""
        if key in self._working or len(self._working) >= self._depth:
            present = self._leaned[key] = self._previous.get(key, answers.nothing)
            return present
        answer = self._current[key] = self._renewed(key, work_out)
        return answer

    def _merge(self, number: int) -> None:
        """Take everything from this number on for one component: it leads back there."""
        while self._bounds[-1] > number:
            self._bounds.pop()

    def _renewed(self, key: Q, work_out: Callable[[Q], A]) -> A:
        """Return the answer once more: the same, without work, if all it depends on says the same as then.

        That is asked in the same order, so that everything happens as if the answer were computed.
        """
        grounds = self._grounds.get(key)
        if grounds is None:
            return self._work_out(key, work_out)
        rested_on, answer = grounds
        self._effort.spent += 1 + len(rested_on)
        asked, self.asked = self.asked, []
        self._working.add(key)
        try:
            for question, then in rested_on:
                # What has an answer at present was merged with the asker when that was computed.
                now = self._current.get(question[0])
                if now is None:
                    now = self.ask(*question)
                if now is not then and now != then:
                    break
            else:
                self._working.discard(key)
                return answer
        except BaseException:
            self._abandon()
            raise
        finally:
            self.asked = asked
        return self._work_out(key, work_out)

    def _work_out(self, key: Q, work_out: Callable[[Q], A]) -> A:
        outer = self.asked
        asked = self.asked = []
        self._working.add(key)
        try:
            answer = work_out(key)
        except BaseException:
            self._abandon()
            raise
        finally:
            self.asked = outer
        self._working.discard(key)
        if asked:
            self._grounds[key] = asked, answer
        return answer

    def _abandon(self) -> None:
        """Forget all open questions, since the work on them was broken off."""
        self.open.clear()
        self._bounds.clear()
        for table in (self._numbers, self._current, self._previous, self._leaned, self._grounds):
            table.clear()
        self.leaning.clear()
        self._working.clear()

    def _solve(self, base: int) -> None:
        """Settle the open questions from a number on, if none of them leads back behind it."""
        members = self._gather(base)
        given_up: dict[Q, A] = {}
        left: dict[Q, list[A]] = {}
        """The answers that gave way to others."""
        told: set[Q] = set()
        """The questions that were told that they are unknown, since nothing else tells anything of them."""
        rounds = 0
        while True:
            rounds += 1
            self._go_through(members, given_up)
            if self._bounds[-1] < base:
                # It leads further back than was seen before, and will be solved with that.
                self._forget(self._previous, members)
                return
            if len(self.open) > base + len(members):
                # More questions belong to it: it starts again, so that all have gone through the same.
                members = self._gather(base)
                if rounds <= MANY:
                    self._forget(self._previous, members)
                    left.clear()
                    told.clear()
                continue
            current = self._current
            disputed = [q for q in members if self._leaned.get(q[0], current[q[0]]) != current[q[0]]]
            silent = [q for q in members if current[q[0]] is q[2].nothing is not q[2].unknown]
            if not disputed and not silent:
                self._settle(base, members)
                return
            self._previous.update((key, current[key]) for key, _, _ in members)
            for key, _, answers in disputed:
                # An answer that comes back after another would come and go for ever.
                if rounds > MANY or current[key] in left.get(key, ()):
                    given_up[key] = answers.unknown
                elif self._leaned[key] is not answers.nothing:
                    left.setdefault(key, []).append(self._leaned[key])
            for key, _, answers in () if disputed else silent:
                # What nothing outside of the component tells anything of is unknown in it, too.
                if key in told:
                    given_up[key] = answers.unknown
                told.add(key)
                self._previous[key] = answers.unknown

    def _gather(self, base: int) -> list[_Question]:
        """Return the open questions from a number on, as one component, in the order to go through them."""
        members = sorted(self.open[base:], key=lambda question: self._order(question[0]))
        self._numbers.update((key, base) for key, _, _ in members)
        return members

    def _go_through(self, members: Sequence[_Question], given_up: Mapping[Q, A]) -> None:
        """Compute every question of a component once; what is still in work answers as the time before."""
        self._forget(self._current, members)
        self._forget(self._leaned, members)
        self._effort.spent += len(members)
        self._current.update(given_up)
        for key, work_out, _ in members:
            if key not in self._current:
                self._current[key] = self._renewed(key, work_out)

    def _settle(self, base: int, members: Sequence[_Question]) -> None:
        """Remember the answers of a component, which is no longer open."""
        said = self._current
        if noted.files:
            self.resting.update((key, (said[key], noted.files)) for key, _, _ in members)
        else:
            self.settled.update((key, said[key]) for key, _, _ in members)
        for table in (self._current, self._previous, self._leaned, self._numbers, self._grounds):
            self._forget(table, members)
        del self.open[base:]
        self._bounds.pop()
        if not self.open:
            self.leaning.clear()

    @staticmethod
    def _forget(table: dict[Q, Any], members: Sequence[_Question]) -> None:
        for key, _, _ in members:
            table.pop(key, None)
