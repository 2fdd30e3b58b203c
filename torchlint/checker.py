"""What the rules say of one file: screen, parse, ask every rule, place the findings, obey suppressions."""

from __future__ import annotations

import logging
import textwrap
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlint import impact, linelength, parsing, registry, stopwatch
from torchlint.diagnostics import (
    UNTREATED,
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
from torchlint.documents import Document, Table, is_document
from torchlint.effort import Effort, ExhaustedError, is_too_large
from torchlint.impact import Worth
from torchlint.options import LintSettings
from torchlint.rule import Finding, Rule, vocabulary
from torchlint.source import Source, SourceError
from torchlint.suppressions import INVALID, UNUSED, Mistake, Suppressions, logical_line_end, may_matter
from torchlint.vocabulary import Words

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.project.project import Project
    from torchlint.semantics.configured import Configured
    from torchlint.semantics.module import Module
    from torchlint.syntax import SyntaxTree

CRASH, SYNTAX_ERROR = "TL000", "TL001"
# Found by the checker itself rather than by visits to nodes; the rules of these codes hold their pages.
GIVEN_UP = "TL004"
OWN_CODES = frozenset({SYNTAX_ERROR, UNUSED, INVALID, GIVEN_UP})
# How the codes of rules begin that have nothing to say of the programs of other frameworks.
ABOUT_TORCH = "TL"

_SHOWN = 6
"""How many codes a message names."""
_PATCHED = "another file replaces what this changes, as `mock.patch` does"
_AS_CONFIGURED = "the configuration lists the rule under `extend-unsafe-fixes`"

_log = logging.getLogger("torchlint")


def _go_on() -> None:
    """Let a check go on: the pulse of a check that nothing stops."""


def check(
    source: Source,
    settings: LintSettings,
    *,
    screen: bool = True,
    outline: bool = True,
    parse: Callable[[str], SyntaxTree] | None = None,
    pulse: Callable[[], None] = _go_on,
    project: Project | None = None,
) -> list[Diagnostic]:
    """Return all findings in ``source``, in the order in which diagnostics are shown.

    Without ``screen`` every enabled rule that concerns the file sees it, whatever else it mentions; without
    ``outline`` the file is parsed in full at once. They are the same in any case.
    ``parse`` is what parses it, `parsing.parse` without it.
    ``pulse`` is called before each rule, and what it raises ends the check. With a ``project``, what its
    other files say counts.
    """
    rules = registry.catalogue()
    unasked = OWN_CODES - {UNUSED} if _names_context(source, settings) else OWN_CODES
    enabled = [rules[code] for code in settings.rules if code in rules and code not in unasked]
    given_up: list[str] = []

    def look(program: Source, chosen: Sequence[Rule], skipped: list[str]) -> list[Diagnostic]:
        ways = (screen, outline, parse or parsing.parse, pulse)
        return _of_program(program, settings, chosen, skipped, *ways, project)

    if is_document(source.path):
        if project is None or not project.holds(source):
            return []
        checked = _of_document(source, enabled, look, project)
    else:
        checked = [found for found in look(source, enabled, given_up) if found.path == source.path]
    if not any(diagnostic.code == SYNTAX_ERROR for diagnostic in checked) and not settings.ignore_noqa:
        with stopwatch.of("suppressions"):
            checked = _suppress(source, settings, rules, checked, given_up)
    regraded = (_regrade(diagnostic, settings) for diagnostic in dict.fromkeys(checked))
    placed = (_in_cell(source, diagnostic) for diagnostic in regraded)
    return sorted(placed, key=lambda diagnostic: diagnostic.sort_key)


def _names_context(source: Source, settings: LintSettings) -> bool:
    """Return whether a file may have a context in which the host is allowed to wait, going by its words."""
    names = (name.rpartition(".")[2] for name in settings.allowed_sync_contexts)
    return any(max(name.split("*"), key=len) in source.text for name in names)


def _of_program(
    source: Source,
    settings: LintSettings,
    enabled: Sequence[Rule],
    given_up: list[str],
    screen: bool,
    outline: bool,
    parse: Callable[[str], SyntaxTree],
    pulse: Callable[[], None],
    project: Project | None,
) -> list[Diagnostic]:
    """Return all that is to be said of a program, before anything is suppressed.

    What is found at a place in a configuration file has the path of that. The codes of rules that would take
    too many steps are added to ``given_up``.
    """
    if project is not None and not project.holds(source):
        project = None
    with stopwatch.of("words of the file"):
        own = Words(source.text, vocabulary(registry.catalogue().values()))
        words = own if project is None else project.words(source.path, own)
        wanted = [rule.code for rule in enabled if (rule.may_fire(words) if screen else rule.concerns(words))]
    checked: list[Diagnostic] = []
    if source.in_cells or not wanted:
        # Cells that are no programs may make one together.
        with stopwatch.of("syntax"):
            checked = _problems(source)
    too_large = bool(wanted) and not checked and is_too_large(source.text)
    if too_large:
        given_up += wanted
    elif wanted and not checked:
        checked = parsing.on_deep_stack(
            _noting, source, settings, wanted, given_up, screen, outline, parse, pulse, project
        )
    if given_up and GIVEN_UP in settings.rules:
        checked.append(_unfinished(source, given_up, "is too large" if too_large else "takes too many steps"))
    return checked


def _of_document(
    source: Source,
    enabled: Sequence[Rule],
    look: Callable[[Source, Sequence[Rule], list[str]], list[Diagnostic]],
    project: Project,
) -> list[Diagnostic]:
    """Return what the programs that read a configuration file find in it: at one place each thing once."""
    chosen = [rule for rule in enabled if rule.configured]
    found: dict[tuple[str, Span], Diagnostic] = {}
    for file in project.configured_by(source.path) if chosen else ():
        try:
            program = project.index.source(file)
        except SourceError:
            continue
        for each in look(program, chosen, []):
            if each.path == source.path:
                key = each.code, each.span
                found[key] = _together(found[key], each) if key in found else each
    return list(found.values())


def _together(first: Diagnostic, second: Diagnostic) -> Diagnostic:
    """Return what two places of a program find at one place of a configuration file."""
    fixes = [each.fix for each in (first, second) if each.fix is not None]
    often = [each.frequency for each in (first, second) if each.frequency is not None]
    most = max((first, second), key=lambda each: each.impact)
    return replace(
        first,
        fix=min(fixes, key=lambda fix: fix.applicability) if len(fixes) == 2 else None,
        remedy=first.remedy or second.remedy,
        related=tuple(dict.fromkeys((*first.related, *second.related))),
        impact=most.impact,
        slight=most.slight,
        frequency=max(often) if len(often) == 2 else None,
    )


def breaks(source: Source) -> bool:
    """Return whether the interpreter refuses ``source``, or a cell of it; False where it cannot tell.

    Of a configuration file, whether it cannot be read.
    """
    if is_document(source.path):
        return Document(source).root is None
    return any(parsing.breaks(part.code) for part in source.parts)


def _problems(source: Source) -> list[Diagnostic]:
    """Return what is no program: the text, or every such cell of a notebook."""
    found = []
    for part in source.parts:
        problem = parsing.problem(part.code)
        if problem is not None:
            code = Source(source.path, part.code)
            begin = part.start + len(part.text) - len(part.code)
            start, end = begin + code.offset(problem.start), begin + code.offset(problem.end)
            found.append(own_diagnostic(SYNTAX_ERROR, source, Span(start, max(start, end)), problem.message))
    return found


def _in_cell(source: Source, diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic with its places in the cells of a notebook, and a fix that keeps to them."""
    start = source.locate(diagnostic.span.start)
    if start.cell is None:
        return diagnostic
    part = source.part(start.cell)
    assert part is not None
    span, last = diagnostic.span, part.start + len(part.text)
    fix = source.fitted(diagnostic.fix) if diagnostic.fix else None
    if diagnostic.fix and fix is None:
        diagnostic = replace(diagnostic, remedy=diagnostic.fix.message)
    row = min(max(diagnostic.noqa_row, 1), len(source.line_starts))
    return replace(
        diagnostic,
        cell=start.cell,
        start=start,
        end=source.locate(min(span.end, last)),
        noqa_row=source.locate(min(source.line_starts[row - 1], last)).row,
        fix=fix,
        related=tuple(
            (place if place.path else source.locate(source.offset(place)), remark)
            for place, remark in diagnostic.related
        ),
    )


def unreadable(source: Source, problem: parsing.Problem) -> Diagnostic:
    """Return the diagnostic for a text that is no program."""
    start, end = source.offset(problem.start), source.offset(problem.end)
    return own_diagnostic(SYNTAX_ERROR, source, Span(start, max(start, end)), problem.message)


def crash(source: Source, message: str, span: Span | None = None) -> Diagnostic:
    """Return the diagnostic for a failure of torchlint itself."""
    return own_diagnostic(CRASH, source, span or Span(0, 0), message)


def _unfinished(source: Source, given_up: Sequence[str], reason: str) -> Diagnostic:
    """Return the note that some rules say nothing of a file, since it would take them too long."""
    codes = sorted(given_up)
    shown = " and ".join((", ".join(codes[:-1]), codes[-1])) if len(codes) > 1 else codes[0]
    left = f"{shown} were" if len(codes) > 1 else f"{shown} was"
    if len(codes) > _SHOWN:
        left = f"{len(codes)} rules, among them {', '.join(codes[:_SHOWN])}, were"
    return own_diagnostic(GIVEN_UP, source, Span(0, 0), f"{left} not checked: this file {reason} to analyze")


def own_diagnostic(
    code: str, source: Source, span: Span, message: str, fix: Fix | None = None, remedy: str | None = None
) -> Diagnostic:
    """Return a diagnostic of torchlint about a file rather than of a rule about its program."""
    rule = registry.catalogue().get(code)
    start = source.position(span.start)
    return Diagnostic(
        code=code,
        name=rule.name if rule else "internal-error",
        message=message,
        severity=rule.severity if rule else Severity.ERROR,
        path=source.path,
        span=span,
        start=start,
        end=source.position(span.end),
        fix=fix,
        noqa_row=start.row,
        remedy=remedy,
        impact=Impact.HIGH if code in UNTREATED else Impact.MEDIUM,
    )


# --- rules ---------------------------------------------------------------------------------------------


def _noting(source: Source, *ways: Any) -> list[Diagnostic]:
    """Run `_run`, noting for a project what was read for the file."""
    project: Project | None = ways[-1]
    with nullcontext() if project is None else project.noting(source.path):
        return _run(source, *ways)


def _run(
    source: Source,
    settings: LintSettings,
    codes: list[str],
    given_up: list[str],
    screen: bool,
    outline: bool,
    parse: Callable[[str], SyntaxTree],
    pulse: Callable[[], None],
    project: Project | None,
) -> list[Diagnostic]:
    """Ask the rules about ``source``; to be called on a deep stack.

    With ``outline`` they are asked about the outline of the file, and only those that want to know more than
    it can tell are asked again about the full tree, apart from what is kept of the project. Those that would
    take more steps than the file is worth are ``given_up``.
    """
    diagnostics: list[Diagnostic] = []
    effort = Effort.worth(len(source.text))
    if screen and outline:
        diagnostics, codes = _of_outline(source, settings, codes, given_up, effort, pulse, project)
        if not codes:
            return diagnostics
    try:
        with stopwatch.of("full parse"):
            tree = parse(source.text)
    except parsing.UnreadableError as unread:
        return [unreadable(source, unread.problem)]
    placing, tree.effort = _Placing(source, tree), effort
    module = _built(source, tree, settings, project, apart=outline)
    waiting = list(reversed(codes))
    alone: str | None = None
    try:
        while waiting:
            rule = registry.rule(waiting.pop())
            if alone not in (None, rule.code):
                module.close()
                alone, module = None, _built(source, tree, settings, project, apart=outline)
            pulse()
            try:
                diagnostics += _found(rule, placing, module, screen)
            except ExhaustedError:
                given_up.append(rule.code)
                if tree.effort.left:
                    _close(module, project)
                    module = _built(source, tree, settings, None if alone else project, apart=outline)
            except _RuleError as failed:
                if project is not None and alone is None:
                    # It may have asked of another file what the outline of that cannot tell.
                    _close(module, project)
                    alone, module = rule.code, _built(source, tree, settings, None)
                    waiting.append(rule.code)
                    continue
                error = failed.error
                if isinstance(error, RecursionError) and not placing.possible:
                    return [unreadable(source, parsing.TOO_DEEP)]
                # LibCST reads some literals that are none, and that fail to be evaluated.
                if isinstance(error, SyntaxError) and (problem := parsing.refusal(source.text)):
                    return [unreadable(source, problem)]
                log_failure(source.path, error)
                diagnostics += failed.found
                diagnostics.append(crash(source, _failure(rule, source, error), placing.span(failed.node)))
    finally:
        if project is None or not project.keeps(module.link):
            _close(module, project)
    return diagnostics


def _close(module: Module, project: Project | None) -> None:
    """Forget a model, with those of the files that were looked at for it."""
    if module.link is None:
        module.close()
    elif project is not None and project.keeps(module.link):
        project.forget()
    else:
        module.link.close()


def _built(
    source: Source,
    tree: SyntaxTree,
    settings: LintSettings,
    project: Project | None,
    *,
    apart: bool = False,
) -> Module:
    """Return the model of a file, alone or among those of its project, with nothing computed yet.

    ``apart`` from what is kept of the project from one file to the next.
    """
    from torchlint.semantics import model

    if project is None:
        return model.build(tree, settings, source.locate, path=source.path)
    effort = tree.effort
    # An outline stands among the others; a full tree would take its place there, so that it has its own.
    program = project.apart(settings) if apart else project.program(settings, anew=True)
    module = program.add(source, tree)
    tree.effort.spent, tree.effort.most, tree.effort.limit = effort.spent, effort.most, effort.limit
    return module


def _of_outline(
    source: Source,
    settings: LintSettings,
    codes: list[str],
    given_up: list[str],
    effort: Effort,
    pulse: Callable[[], None],
    project: Project | None,
) -> tuple[list[Diagnostic], list[str]]:
    """Return what the rules find in the outline of the file, and those that need the full tree to tell.

    A project has the full tree of a file that cannot be outlined.
    """
    from torchlint.conversion import NotOutlinedError
    from torchlint.outline import Outline

    module: Module | None
    if project is not None:
        module = project.program(settings).begin(source, effort)
        if module is None:
            return [], codes
        tree: SyntaxTree = module.tree
    else:
        try:
            with stopwatch.of("outline"):
                tree = Outline(source.text)
        except NotOutlinedError:
            return [], codes
        tree.effort = effort
        module = _built(source, tree, settings, None)
    placing = _Placing(source, tree)
    diagnostics: list[Diagnostic] = []
    left: list[str] = []
    for rule in map(registry.rule, codes):
        pulse()
        try:
            diagnostics += _found(rule, placing, module)
        except ExhaustedError:
            given_up.append(rule.code)
            if tree.effort.left:
                module.close()
                module = _built(source, tree, settings, project)
        except _RuleError:
            # Whatever it is: the full tree has an answer, or the failure shows again. What the model
            # was about to find out is lost.
            module.close()
            module = _built(source, tree, settings, project)
            left.append(rule.code)
    if project is None:
        module.close()
    return diagnostics, left


def _tidied(
    path: Path, module: Module, edits: tuple[Edit, ...], most: int | None, safe: bool
) -> tuple[Edit, ...]:
    """Return edits of one file that keep lines to a length of ``most``, and take unused imports with them."""
    if most is not None and any(len(edit.content) > edit.span.end - edit.span.start for edit in edits):
        edits = linelength.kept(module.tree.text, edits, most, module.tree.root.default_indent)
    if path.name == "__init__.py":
        return edits
    from torchlint.fixes.unusedimports import without_unused_imports

    return (*edits, *without_unused_imports(module, edits, safe=safe))


class _RuleError(Exception):
    """A rule failed at a node; what it had found before that is kept."""

    def __init__(self, error: Exception, node: cst.CSTNode | None, found: list[Diagnostic]) -> None:
        super().__init__()
        self.error, self.node, self.found = error, node, found


def _found(rule: Rule, placing: _Placing, module: Module, screen: bool = True) -> list[Diagnostic]:
    """Return what one rule finds in a file; without ``screen`` it is shown nodes of any name.

    Raises:
        _RuleError: it failed.
        ExhaustedError: it would take too many steps.
    """
    from torchlint.semantics.permissions import may_synchronize
    from torchlint.syntax import ElsewhereError

    found: list[Diagnostic] = []
    node: cst.CSTNode | None = None
    check = rule.check
    placing.tree.effort.begin()
    try:
        with stopwatch.of(rule.code):
            if rule.code.startswith(ABOUT_TORCH) and module.classes.of_other_framework:
                return found
            for node in _shown(rule, module) if screen else placing.tree.nodes(*rule.on):
                try:
                    for finding in check(node, module):
                        if not (rule.synchronizes and may_synchronize(module, finding.node)):
                            found.append(placing.diagnostic(rule, finding, module))
                except ElsewhereError as error:
                    # What is to be said belongs to another file, and is said there if at all.
                    log_failure(placing.path, error)
    except ExhaustedError:
        raise
    except Exception as error:
        raise _RuleError(error, node, found) from error
    return found


def _shown(rule: Rule, module: Module) -> list[cst.CSTNode]:
    """Return the nodes that a rule is asked about, in source order."""
    tree, named = module.tree, rule.named
    if not named:
        return tree.nodes(*rule.on)
    found: list[cst.CSTNode] = []
    for kind in rule.on:
        found += tree.spelt(kind, named[kind], module.names.renamed) if kind in named else tree.nodes(kind)
    return sorted(found, key=tree.order.__getitem__) if len(rule.on) > 1 else found


class _Placing:
    """Turns findings at nodes into diagnostics at places."""

    def __init__(self, source: Source, tree: SyntaxTree) -> None:
        self._source = source
        self.path = source.path
        self.tree = tree
        self._ends: dict[int, int] = {}

    def diagnostic(self, rule: Rule, finding: Finding, module: Module) -> Diagnostic:
        """Return the diagnostic for what ``rule`` found."""
        if finding.at is not None:
            return self._in_document(rule, finding, finding.at, module)
        with stopwatch.of("places"):
            span = self.tree.span(finding.node)
        fix = finding.fix and self._tidied(finding.fix, module)
        position = self._source.position
        stake, often, slight = _at_stake(rule, finding, module)
        return Diagnostic(
            code=rule.code,
            name=rule.name,
            message=_one_line(finding.message),
            severity=finding.severity or rule.severity,
            path=self._source.path,
            span=span,
            start=position(span.start),
            end=position(span.end),
            fix=fix and replace(fix, message=_one_line(fix.message)),
            noqa_row=self._noqa_row(finding.node, span),
            related=tuple((self._place(node, module), remark) for node, remark in finding.related),
            remedy=_one_line(finding.remedy or rule.remedy or "") or None,
            impact=stake,
            frequency=often,
            advice=rule.advice,
            slight=slight,
        )

    def _in_document(self, rule: Rule, finding: Finding, at: Configured, module: Module) -> Diagnostic:
        """Return the diagnostic for what ``rule`` found at a place in a configuration file."""
        entry = at.entry
        source = entry.document.source
        span = entry.place if isinstance(entry, Table) else entry.span
        start = source.position(span.start)
        related = [(finding.node, f"`{at.key}` is used here"), *finding.related]
        places = [(self._place(node, module), remark) for node, remark in related]
        stake, often, slight = _at_stake(rule, finding, module)
        return Diagnostic(
            code=rule.code,
            name=rule.name,
            message=_one_line(finding.message),
            severity=finding.severity or rule.severity,
            path=source.path,
            span=span,
            start=start,
            end=source.position(span.end),
            fix=finding.fix,
            noqa_row=start.row,
            related=tuple(
                (place if place.path else replace(place, path=self.path), remark) for place, remark in places
            ),
            remedy=_one_line(finding.remedy or rule.remedy or "") or None,
            impact=stake,
            frequency=often,
            advice=rule.advice,
            slight=slight,
        )

    def _place(self, node: cst.CSTNode, module: Module) -> Position:
        """Return where a node begins, in this file or another."""
        if module.link is not None and self.tree.is_elsewhere(node):
            return module.link.place(node)
        return self._source.position(self.tree.span(node).start)

    def _tidied(self, fix: Fix, module: Module) -> Fix:
        """Return the fix in the layout of its files,
        and with the imports taken out that it leaves without a use.

        It is unsafe if another file replaces something that it concerns.
        """
        from torchlint.fixes.patched import touch_patched

        safe = fix.applicability is Applicability.SAFE
        met = safe and touch_patched(module, fix.own)
        edits: list[Edit] = list(_tidied(self._source.path, module, fix.own, self._line_length, safe))
        for path, others in fix.elsewhere.items():
            assert module.link is not None
            other = module.link.module(path)
            most = linelength.limit(other.tree.text)
            edits += (replace(edit, path=path) for edit in _tidied(path, other, others, most, safe))
            met = met or (safe and touch_patched(other, others))
        changed = replace(fix, edits=tuple(edits))
        if met or (safe and touch_patched(module, changed.own)):
            fix, changed = (each.lowered(Applicability.UNSAFE, _PATCHED) for each in (fix, changed))
        return changed if self._source.fitted(changed) is not None else fix

    @cached_property
    def _line_length(self) -> int | None:
        """The length that the lines of the file keep to; notebooks are not held to one."""
        return None if self._source.in_cells else linelength.limit(self._source.text)

    @property
    def possible(self) -> bool:
        """Whether the interpreter recurses deeply enough to tell the places of nodes.

        Python 3.12 and 3.13 limit the recursion of what is written in C whatever they are told.
        """
        try:
            self.tree.span(self.tree.root)
        except RecursionError:
            return False
        return True

    def span(self, node: cst.CSTNode | None) -> Span:
        """Return the place of a node; the start of the file if it has none."""
        try:
            return Span(0, 0) if node is None else self.tree.span(node)
        except (KeyError, ValueError, RecursionError):
            return Span(0, 0)

    def _noqa_row(self, node: cst.CSTNode, span: Span) -> int:
        """Return the last row of the logical line that the node starts in."""
        row = self._source.position(self.tree.span(self._line_owner(node)).start).row
        if row not in self._ends:
            self._ends[row] = logical_line_end(self._source, row)
        return max(self._ends[row], self._source.position(span.start).row)

    def _line_owner(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the statement or clause whose first line begins the logical line of ``node``."""
        import libcst as cst

        owners = (
            *(cst.SimpleStatementLine, cst.If, cst.For, cst.While, cst.With, cst.Match, cst.Try, cst.TryStar),
            *(cst.FunctionDef, cst.ClassDef, cst.Decorator, cst.Else, cst.Finally, cst.MatchCase),
            *(cst.ExceptHandler, cst.ExceptStarHandler),
        )
        return node if isinstance(node, owners) else self.tree.enclosing(node, *owners) or node


def _at_stake(rule: Rule, finding: Finding, module: Module) -> tuple[Impact, Frequency | None, str | None]:
    """Return the impact of a finding, how often its place runs if that plays a part, and why it is low
    if it is.

    The program is only asked for what can still make a difference.
    """
    from torchlint.messages import SELDOM
    from torchlint.semantics.contexts import context
    from torchlint.semantics.repetition import frequency, seldom
    from torchlint.syntax import ElsewhereError

    severity, worth, slight = finding.severity or rule.severity, impact.worth(rule), finding.slight
    often, around = None, None
    with stopwatch.of("impact"):
        try:
            if worth in (Worth.SOME, Worth.MUCH) and not rule.lasting and severity is not Severity.ERROR:
                often = finding.frequency
                seen = frequency(module, finding.node)
                often = often if seen is Frequency.UNKNOWN else seen
                if rule.synchronizes and finding.frequency is Frequency.UNKNOWN:
                    why = None if slight else seldom(module, finding.node)
                    slight = slight if why is None else SELDOM[why]
            stake = impact.impact(worth, severity, often, None)
            if stake is not Impact.LOW and slight is None:
                around = context(module, finding.node)
        except ElsewhereError:
            # How often a place of another file runs, or what it is for, is not known here.
            pass
    stake = impact.impact(worth, severity, often, around)
    if slight is not None and stake is not Impact.LOW:
        return Impact.LOW, often, _one_line(slight)
    return stake, often, impact.slight(worth, severity, often, around) if stake is Impact.LOW else None


def _one_line(text: str) -> str:
    """Return a message that quotes code, which may be spread over lines."""
    return text if text.isprintable() else " ".join(text.split())


def describe(error: BaseException) -> str:
    """Return an exception in one line, for a message: its type, and its text as far as that is short.

    Of anything but plain data the type is named: the text of a syntax node is the whole tree below it.
    """
    parts = [
        str(part) if isinstance(part, (str, bytes, int, float, type(None))) else f"<{type(part).__name__}>"
        for part in error.args
    ]
    text = f"{type(error).__name__}: {', '.join(parts)}"
    return textwrap.shorten(text, 200, placeholder=" …").rstrip(".: ")


def log_failure(path: Path, error: BaseException) -> None:
    """Write where torchlint failed to the log, which ``--verbose`` shows."""
    if _log.isEnabledFor(logging.DEBUG):
        frames = "".join(traceback.format_tb(error.__traceback__, limit=-20))
        _log.debug("%s: %s\nTraceback (most recent call last):\n%s", path, describe(error), frames)


def _failure(rule: Rule, source: Source, error: Exception) -> str:
    return f"rule {rule.code} ({rule.name}) failed in {source.path.name} with {describe(error)}"


# --- suppressions --------------------------------------------------------------------------------------


def _suppress(
    source: Source,
    settings: LintSettings,
    rules: Mapping[str, Rule],
    found: list[Diagnostic],
    given_up: Sequence[str],
) -> list[Diagnostic]:
    """Take out what comments silence, and add what there is to say of the comments.

    What is for rules that were ``given_up`` is not judged.
    """
    if not may_matter(source, rules, found, settings.markers):
        return found
    suppressions = Suppressions(source, rules, settings.markers)
    left = suppressions.apply(found)
    remarks: list[Diagnostic] = []
    if UNUSED in settings.rules and not any(diagnostic.code == CRASH for diagnostic in found):
        for message, span, fix in suppressions.unused(frozenset(settings.rules).difference(given_up)):
            remarks.append(own_diagnostic(UNUSED, source, span, message, fix))
    if INVALID in settings.rules:
        remarks += (_mistaken(source, mistake) for mistake in suppressions.mistakes)
    left += suppressions.apply(remarks)
    if INVALID in settings.rules:
        # A bare `noqa` would suppress what is said of itself.
        missing = suppressions.without_reason() if settings.reasons else ()
        about = [_mistaken(source, mistake) for mistake in (*suppressions.without_colon(), *missing)]
        left += suppressions.apply(about, blanket=False)
    return left


def _mistaken(source: Source, mistake: Mistake) -> Diagnostic:
    return own_diagnostic(INVALID, source, mistake.span, mistake.message, remedy=mistake.remedy)


def _regrade(diagnostic: Diagnostic, settings: LintSettings) -> Diagnostic:
    """Grade finding and fix as the settings want it; where nothing is to be fixed, say what it would do."""
    severity = dict(settings.severities).get(diagnostic.code)
    if severity is not None and diagnostic.code not in UNTREATED:
        diagnostic = replace(diagnostic, severity=severity)
    fix = diagnostic.fix
    if fix is None:
        return diagnostic
    if diagnostic.code not in settings.fixable:
        return replace(diagnostic, fix=None, remedy=fix.message)
    if diagnostic.code in settings.extend_unsafe_fixes:
        fix = fix.lowered(Applicability.UNSAFE, _AS_CONFIGURED)
    elif fix.applicability is Applicability.UNSAFE and diagnostic.code in settings.extend_safe_fixes:
        fix = replace(fix, applicability=Applicability.SAFE, risk=None)
    return diagnostic if fix is diagnostic.fix else replace(diagnostic, fix=fix)
