"""Where the project is on the web: decided by ``[project.urls]`` of ``pyproject.toml`` alone.

Without an entry there no address is known, and whoever would give a link leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from torchlint import installation
from torchlint.diagnostics import Diagnostic
from torchlint.rule import Rule


def home() -> str | None:
    """Return the address of the project."""
    urls = declared()
    return urls.get("homepage") or urls.get("repository")


def page(rule: Rule) -> str | None:
    """Return the address of a rule's page: on the site called Documentation,
    else in the folder of the repository.

    The rules of a pack are documented elsewhere.
    """
    if not rule.check.__module__.startswith("torchlint."):
        return None
    urls = declared()
    if "documentation" in urls:
        return f"{urls['documentation'].rstrip('/')}/rules/{rule.code}/"
    if "repository" in urls:
        # GitHub and GitLab both take HEAD for the branch that is shown first.
        return f"{urls['repository'].rstrip('/')}/blob/HEAD/docs/rules/{rule.code}.md"
    return None


def explaining(diagnostic: Diagnostic, rules: Mapping[str, Rule]) -> str | None:
    """Return the address that explains a finding: its own, or the page of its rule."""
    if diagnostic.url is not None or diagnostic.code not in rules:
        return diagnostic.url
    return page(rules[diagnostic.code])


@cache
def declared() -> Mapping[str, str]:
    """Return the project's addresses by their names in lower case, as the installed metadata has them."""
    return installation.urls()
