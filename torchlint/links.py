"""Where the project is on the web: decided by ``[project.urls]`` of ``pyproject.toml`` alone.

Without an entry there no address is known, and whoever would give a link leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from torchlint.rule import Rule


def home() -> str | None:
    """The address of the project."""
    urls = _urls()
    return urls.get("homepage") or urls.get("repository")


def page(rule: Rule) -> str | None:
    """The address of a rule's page: the one called Documentation is that of the folder ``docs``.

    The rules of a pack are documented elsewhere.
    """
    documentation = _urls().get("documentation")
    if documentation is None or not rule.check.__module__.startswith("torchlint."):
        return None
    return f"{documentation.rstrip('/')}/rules/{rule.code}.md"


@cache
def _urls() -> Mapping[str, str]:
    """The project's addresses by their names in lower case, as the installed metadata has them."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        entries = metadata("torchlint").get_all("Project-URL") or []
    except PackageNotFoundError:  # run from a checkout that is not installed
        return {}
    pairs = (str(entry).partition(",") for entry in entries)
    return {name.strip().lower(): url.strip() for name, _, url in pairs}
