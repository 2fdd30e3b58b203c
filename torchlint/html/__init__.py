"""What all HTML pages share: their look, their head, and how text gets into them.

A page needs nothing else: no network, no script, no font. Needs Jinja, which is imported when a page is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def environment(package: str) -> Environment:
    """Return the templates of a package, which extend ``base.html.jinja``.

    Raises:
        ImportError: Jinja is missing.
    """
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package), jinja2.PackageLoader("torchlint.html")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["code"] = _code
    return made


def render(made: Environment, template: str, **shown: Any) -> str:
    """Return a page of a template."""
    return _printable(made.get_template(template).render(**shown).strip()) + "\n"


def _printable(text: str) -> str:
    """Return control characters as visible ones and halves of pairs as question marks:
    HTML allows neither.
    """
    return text.translate(_CONTROL).encode("utf-8", "replace").decode("utf-8")


_CONTROL = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    **dict.fromkeys(range(0x7F, 0xA0), "\ufffd"),
}


def _code(text: str) -> Markup:
    """Return a message with what stands between backticks as code."""
    from markupsafe import Markup, escape

    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    marked = (
        Markup("<code>{}</code>").format(part) if odd % 2 else escape(part) for odd, part in enumerate(parts)
    )
    return Markup("").join(marked)
