"""The last lines of the human formats: how much was found, fixed, and can be fixed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from torchlint.diagnostics import UNTREATED, Applicability, Impact, Severity
from torchlint.render import concise
from torchlint.render.report import Report, plural, visible

MANY = 10
"""With more findings than this, the summary names those that matter most."""
_MOST = 3


def render(report: Report) -> str:
    """Return what was found, what of it matters most, and what ``--fix`` could do about it."""
    if report.alone and not report.diagnostics:
        return _of_advice(report) + _hidden(report)
    return _of_findings(report) + _hidden(report)


def _of_advice(report: Report) -> str:
    """Return how much advice there is, and how much of it was followed."""
    fixed = sum(sum(counts.values()) for counts in report.applied.values())
    told = plural(len(report.advice), "piece") + " of advice" if report.advice else "No advice"
    return f"{told}{f', {fixed} more followed' if fixed else ''}.\n"


def _hidden(report: Report) -> str:
    """Return how many findings, or pieces of advice, are of too little impact to be reported."""
    count = report.hidden
    if not count:
        return ""
    told = f"{plural(count, 'piece')} of advice" if report.alone else plural(count, "finding")
    levels = " or ".join(impact.label for impact in Impact if impact < report.least)
    are, them = ("is", "it") if count == 1 else ("are", "them")
    return f"{told} of {levels} impact {are} not shown; `--impact low` shows {them}.\n"


def _most(report: Report) -> str:
    """Return those findings of many that matter most, by impact and by what was measured;
    one of each rule.
    """
    if len(report.diagnostics) <= MANY:
        return ""
    from torchlint.impact import gain

    ranked = sorted(
        (item for item in report.diagnostics if item.impact is Impact.HIGH and item.code not in UNTREATED),
        key=lambda item: (-item.severity.rank, -gain(item.code).best, -(item.frequency or 0), item.sort_key),
    )
    first = list({item.code: item for item in reversed(ranked)}.values())[::-1][:_MOST]
    if not first:
        return ""
    shown = concise.render(replace(report, diagnostics=tuple(first)))
    lines = "".join(f"  {line}\n" for line in shown.splitlines())
    return f"{len(first)} that {'matters' if len(first) == 1 else 'matter'} most:\n{lines}"


def _of_findings(report: Report) -> str:
    remaining = len(report.diagnostics)
    where = f" {report.restriction}" if report.restriction else ""
    fixed = sum(sum(counts.values()) for counts in report.applied.values())
    if fixed:
        found = plural(remaining + fixed + report.settled, "problem")
        told = [f"{fixed} fixed", *_by_other_fixes(report), f"{remaining} remaining"]
        out = f"Found {found}{where} ({', '.join(told)}).\n"
    elif remaining:
        counts = Counter(item.severity for item in report.diagnostics)
        parts = [
            plural(counts[severity], severity.value) for severity in reversed(Severity) if counts[severity]
        ]
        out = f"Found {', '.join(parts)}{where}.\n"
    else:
        return report.paint("All checks passed!", "green") + "\n"
    out += _most(report)
    fixable, unsafe = _available(report)
    hidden = f"{plural(unsafe, 'unsafe fix')} available with `--fix --unsafe-fixes`"
    if fixable:
        star = report.paint("*", "cyan")
        out += f"[{star}] {fixable} fixable with `--fix`" + (f" ({hidden})" if unsafe else "") + ".\n"
    elif unsafe:
        out += f"{hidden}.\n"
    return out + _explained(report)


def _explained(report: Report) -> str:
    """Return where the rules are explained, for as long as findings carry no address that says so."""
    codes = [item.code for item in report.diagnostics if item.code not in UNTREATED]
    if not codes or any(report.url(item) for item in report.diagnostics):
        return ""
    return f"For more information about a rule, run `torchlint rule {visible(codes[0])}`.\n"


def _available(report: Report) -> tuple[int, int]:
    """Return how many findings ``--fix`` fixes, and how many more ``--unsafe-fixes`` would add."""
    fixable = sum(map(report.fixable, report.diagnostics))
    unsafe = sum(
        item.fix is not None
        and item.fix.applicability is Applicability.UNSAFE
        and not item.fix.withheld
        and not report.fixable(item)
        for item in report.diagnostics
    )
    return fixable, unsafe


def _by_other_fixes(report: Report) -> list[str]:
    """Return how the number of fixes made comes from the number of fixable findings that a check tells."""
    told = []
    if report.later:
        told.append(f"{report.later} of them only after other fixes")
    if report.settled:
        told.append(f"{report.settled} more resolved by other fixes")
    return told


def render_fix_only(report: Report, *, written: bool) -> str:
    """Return what was fixed, or with ``--diff`` would be."""
    fixed = sum(sum(counts.values()) for counts in report.applied.values())
    unsafe = _available(report)[1]
    verb = "Fixed" if written else "Would fix"
    if fixed:
        told = f"{verb} {plural(fixed, 'problem')}"
        more = "additional fix" if unsafe == 1 else "additional fixes"
        asides = _by_other_fixes(report)
        if unsafe:
            asides.append(f"{unsafe} {more} available with `--unsafe-fixes`")
        return told + (f" ({', '.join(asides)})" if asides else "") + ".\n" + _risks(report)
    if not unsafe:
        return ""
    told = "No problems fixed" if written else "No problems would be fixed"
    return f"{told} ({plural(unsafe, 'fix')} available with `--unsafe-fixes`).\n" + _risks(report)


def _risks(report: Report) -> str:
    """Return why fixes are unsafe that were made, or are left to ``--unsafe-fixes``."""
    left = (item for item in report.diagnostics if item.fix is not None and not item.fix.withheld)
    risks = report.risks + Counter(
        (item.code, item.fix.risk) for item in left if item.fix is not None and item.fix.risk is not None
    )
    out = ""
    for (code, risk), count in sorted(risks.items()):
        times = f" ({count} times)" if count > 1 else ""
        out += f"  {report.paint(code, 'red', bold=True)} unsafe: {visible(risk)}{times}\n"
    return out


def render_fixes(report: Report, *, written: bool) -> str:
    """Return the applied fixes by file and rule, for ``--show-fixes``."""
    total = sum(sum(counts.values()) for counts in report.applied.values())
    if not total:
        return ""
    verb = "Fixed" if written else "Would fix"
    heading = f"{verb} {plural(total, 'problem')}:"
    out = [report.paint(heading, bold=True) + "\n"]
    width = max(len(str(count)) for counts in report.applied.values() for count in counts.values())
    for path, counts in sorted(report.applied.items()):
        if not counts:
            continue
        out.append(f"- {report.paint(report.shown(path), bold=True)}:\n")
        for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            name = f" ({report.rules[code].name})" if code in report.rules else ""
            out.append(f"    {count:>{width}} × {report.paint(code, 'red', bold=True)}{name}\n")
    return "".join(out)
