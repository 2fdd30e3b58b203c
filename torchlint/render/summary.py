"""The last lines of the human formats: how much was found, fixed, and can be fixed."""

from __future__ import annotations

from collections import Counter

from torchlint.diagnostics import Applicability, Severity
from torchlint.render.report import Report, plural


def render(report: Report) -> str:
    """What was found, and what ``--fix`` could do about it."""
    remaining = len(report.diagnostics)
    fixed = sum(sum(counts.values()) for counts in report.applied.values())
    if fixed:
        found = plural(remaining + fixed + report.settled, "problem")
        told = [f"{fixed} fixed", *_by_other_fixes(report), f"{remaining} remaining"]
        out = f"Found {found} ({', '.join(told)}).\n"
    elif remaining:
        counts = Counter(item.severity for item in report.diagnostics)
        parts = [
            plural(counts[severity], severity.value) for severity in reversed(Severity) if counts[severity]
        ]
        out = f"Found {', '.join(parts)}.\n"
    else:
        return report.paint("All checks passed!", "green") + "\n"
    fixable, unsafe = _available(report)
    hidden = f"{plural(unsafe, 'unsafe fix')} available with `--fix --unsafe-fixes`"
    if fixable:
        star = report.paint("*", "cyan")
        out += f"[{star}] {fixable} fixable with `--fix`" + (f" ({hidden})" if unsafe else "") + ".\n"
    elif unsafe:
        out += f"{hidden}.\n"
    return out


def _available(report: Report) -> tuple[int, int]:
    """How many findings ``--fix`` fixes, and how many more ``--unsafe-fixes`` would add."""
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
    """How the number of fixes made comes from the number of fixable findings that a check tells."""
    told = []
    if report.later:
        told.append(f"{report.later} of them caused by other fixes")
    if report.settled:
        told.append(f"{report.settled} more resolved by other fixes")
    return told


def render_fix_only(report: Report, *, written: bool) -> str:
    """What was fixed, or with ``--diff`` would be."""
    fixed = sum(sum(counts.values()) for counts in report.applied.values())
    unsafe = _available(report)[1]
    verb = "Fixed" if written else "Would fix"
    if fixed:
        told = f"{verb} {plural(fixed, 'problem')}"
        more = "additional fix" if unsafe == 1 else "additional fixes"
        asides = _by_other_fixes(report)
        if unsafe:
            asides.append(f"{unsafe} {more} available with `--unsafe-fixes`")
        return told + (f" ({', '.join(asides)})" if asides else "") + ".\n"
    if not unsafe:
        return ""
    told = "No problems fixed" if written else "No problems would be fixed"
    return f"{told} ({plural(unsafe, 'fix')} available with `--unsafe-fixes`).\n"


def render_fixes(report: Report, *, written: bool) -> str:
    """The applied fixes by file and rule, for ``--show-fixes``."""
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
