"""One line a finding, as compilers print them and editors jump to them."""

from __future__ import annotations

from torchlint.render.report import Report, headline, spot


def render(report: Report) -> str:
    """Return ``path:row:column: CODE [*] message`` lines."""
    colon = report.paint(":", "cyan")
    return "".join(
        f"{report.paint(report.shown(item.path), bold=True)}{colon}{spot(item).replace(':', colon)}"
        f"{colon} {headline(report, item)}\n"
        for item in report.diagnostics
    )
