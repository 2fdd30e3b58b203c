"""What the documentation site has beside the files in ``docs/``; mkdocs calls the functions as hooks.

The first page is README.md without its list of rules. The rules have a page of their own, family by family,
with badges, and each rule the same badges below its title, and its measured speed-ups as a figure. One page
has those of all rules.
"""

from __future__ import annotations

import posixpath
import re
from html import escape
from typing import Any

from mkdocs.structure.files import File, Files

from torchlint import effects, impact, links
from torchlint.dev import ROOT, speedups
from torchlint.registry import catalogue, families
from torchlint.rule import Rule
from torchlint.verify import report, results

_LINK = re.compile(r"\[([^\[\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
_RULE = re.compile(r"rules/(TL\d+)\.md")
_MEASURED = "\n## Measured\n\n"
_REPORT = "verify-report.html"
_PICTURE = re.compile(r"!\[.*\]\(pictures/verify\.png\)")
_STYLE = """\
.badge {
  border: 1px solid var(--md-default-fg-color--lighter); border-radius: 1rem;
  font-size: 0.65rem; font-weight: 600; line-height: 2; margin-right: 0.3rem; padding: 0.15rem 0.6rem;
  white-space: nowrap;
}
.badge.error, .badge.high { background: #b71c1c; border-color: #b71c1c; color: #fff; }
.badge.warning, .badge.medium { background: #bf360c; border-color: #bf360c; color: #fff; }
.badge.safe { background: #1b5e20; border-color: #1b5e20; color: #fff; }
.badge.unsafe { background: #4a148c; border-color: #4a148c; color: #fff; }
.badge.measured { background: #0d47a1; border-color: #0d47a1; color: #fff; }
iframe.report { border: 1px solid var(--md-default-fg-color--lighter); height: 40rem; width: 100%; }
"""


def on_config(config: Any) -> Any:
    """Set the addresses, as far as the project declares them, and list the pages."""
    urls = links.declared()
    config["site_url"] = urls.get("documentation", "")
    config["repo_url"] = urls.get("repository") or None
    rules = [{f"{family.title} ({family.prefix})": _pages(family.rules)} for family in families()]
    config["nav"] = [
        {"Home": "index.md"},
        {
            "Guides": [
                {"Getting started": "getting-started.md"},
                {"Adopting in an existing repository": "adopting.md"},
                {"Configuration": "configuration.md"},
                {"Projects": "projects.md"},
                {"Notebooks": "notebooks.md"},
                {"Impact": "impact.md"},
                {"Measuring fixes": "verify.md"},
                {"Inference engines": "serving.md"},
                {"Rule packs": "rule-packs.md"},
                {"Security": "security.md"},
                {"Questions": "faq.md"},
            ]
        },
        {"CI and editors": ["github-action.md", "gitlab.md", "editors.md", "report.md"]},
        {"Rules": ["rules/index.md", *rules]},
        {"Measurements": [{"What the fixes are worth": "worth.md"}, {"All figures": "measured.md"}]},
    ]
    return config


def _pages(rules: tuple[Rule, ...]) -> list[dict[str, str]]:
    return [{f"{rule.code} {rule.name}": f"rules/{rule.code}.md"} for rule in rules]


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made here, and the style of the badges."""
    made = {
        "index.md": _home(),
        "rules/index.md": _index(),
        "worth.md": _worth(),
        "stylesheets/site.css": _STYLE + speedups.STYLE,
    }
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    files.append(File.generated(config, _REPORT, content=verified()))
    return files


def verified() -> str:
    """Return the report of `torchlint verify` on a program, of results that are kept."""
    return report.render(results.load(ROOT / "benchmarks" / "results" / "verify-gpt.json"))


def _home() -> str:
    """Return README.md as a page of the site, without the list of rules, which has one of its own."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(?s)<!-- begin rules -->.*?<!-- end -->", "[All rules](docs/rules/index.md)", text)
    return _LINK.sub(lambda link: f"[{link[1]}]({_from_docs(link[2])})", text)


def _from_docs(target: str) -> str:
    """Return a link of a file at the top of the repository as one in ``docs/`` has it."""
    return target.removeprefix("docs/") if target.startswith("docs/") else f"../{target}"


def _index() -> str:
    """Return all rules by family."""
    parts = [
        "# Rules\n\nThe badges say how severe a finding is, the best fix, the highest impact it can have, ",
        "and whether the fix was measured. [Impact](../impact.md) explains them.\n",
    ]
    for family in families():
        parts.append(
            f"\n## {family.title}\n\n`--select {family.prefix}`\n\n| Rule | | Finds |\n| --- | --- | --- |\n"
        )
        for rule in family.rules:
            summary = " ".join(rule.summary.split()).replace("|", "\\|")
            name = f"[{rule.code}]({rule.code}.md)<br>{rule.name}"
            parts.append(f"| {name} | {_badges(rule)} | {summary} |\n")
    return "".join(parts)


def _worth() -> str:
    """Return the measured speed-ups of all rules."""
    rules = catalogue()
    figure = speedups.over_all(rules.values(), {code: effects.of(code) for code in rules})
    return (
        "---\nhide: [toc]\n---\n\n# What the fixes are worth\n\n"
        "Each row is a rule, in the size of its benchmark in which its fix gains most: time before over time "
        "after, with its 95 % interval. Green is faster beyond the noise, red slower, and grey neither. What "
        "these programs gain is not what yours will: `torchlint verify` measures that. The sizes that gain "
        "less, memory, and the machines are among [all figures](measured.md); rules without a row were not "
        f"measured, or no time could be.\n\n{figure}"
    )


def _badges(rule: Rule) -> str:
    """Return what there is to know of a rule at a glance, as HTML."""
    worth = impact.worth(rule)
    shown = [(rule.severity.value, rule.severity.value)]
    shown.append((rule.fix, f"{rule.fix} fix" if rule.fix != "none" else "no fix"))
    if worth is not None:
        highest = max(impact.TABLE[worth].values()).label
        shown.append((highest, f"up to {highest} impact"))
    if effects.of(rule.code):
        shown.append(("measured", "measured"))
    if rule.opt_in:
        shown.append(("optional", "opt-in"))
    if rule.advice:
        shown.append(("advice", "advice"))
    return " ".join(f'<span class="badge {kind}">{escape(told)}</span>' for kind, told in shown)


def on_page_markdown(markdown: str, page: Any, **unused: object) -> str:
    """Add badges to rules and the report to its guide, and lead links out of the site elsewhere."""
    path = str(page.file.src_uri)
    rule = _RULE.fullmatch(path)
    if rule is not None:
        title, _, rest = markdown.partition("\n")
        markdown = f"{title}\n\n{_badges(catalogue()[rule[1]])}\n{rest}"
        figure = speedups.by_size(effects.of(rule[1]))
        markdown = markdown.replace(_MEASURED, f"{_MEASURED}{figure}\n", 1)
    if path == "verify.md":
        frame = f'<iframe class="report" src="../{_REPORT}" title="The report"></iframe>'
        markdown = _PICTURE.sub(
            f"[The whole report]({_REPORT}), of a program on an H200:\n\n{frame}", markdown
        )
    if path == "measured.md":
        page.meta["hide"] = ["navigation", "toc"]  # its tables are wide
    return _LINK.sub(lambda link: _led(link, path), markdown)


def _led(link: re.Match[str], page: str) -> str:
    """Return a link as the site has it: one out of ``docs/`` leads to the repository, if that is known."""
    text, (target, _, anchor) = link[1], link[2].partition("#")
    outside = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    if not target or outside.startswith("docs/"):
        return link[0]
    repository = links.declared().get("repository")
    if repository is None:
        return text
    return f"[{text}]({repository.rstrip('/')}/blob/HEAD/{outside}{f'#{anchor}' if anchor else ''})"
