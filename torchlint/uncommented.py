"""The code in a text: what is left of a program without its comments and empty lines."""

from __future__ import annotations

import re

_STRING = (
    r'''"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""|\'\'\'[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*\'\'\''''
    r"""|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*\'"""
)
# Prose, an empty line or a comment of its own; a comment behind code; a string, which may hold the like. What
# has quotation marks in it stays: since Python 3.12 the fields of a formatted string may have those of the
# string itself, so that ``f"{names["#"]}"`` looks like two with a comment behind.
_NO_CODE = re.compile(
    r"(?<!\\)\n(?P<prose>(?:#{20,}|# ?%%[^\n]*)\n# *\S[^\n]*(?=\n))"
    r"|(?<!\\)\n[ \t\r]*(?:#[^\n]*)?(?=\n)|(?<![\\ \t\n])[ \t]*#[^\n'\"]*(?=\n)"
    rf"|{_STRING}|#[^\n]*",
    re.DOTALL,
)
PROSE = "\n#%%"
"""What stands for prose between the blocks of a tutorial, of which web pages and notebooks are made."""
_RULED = "#" * 20


def may_have_prose(text: str) -> bool:
    """Return whether a text may hold prose between blocks, going by its words:
    a cheap question to ask first.
    """
    return "%%" in text or _RULED in text


def uncommented(text: str) -> str:
    """Return a program without comments and empty lines; it has the same syntax tree, places aside.

    Some comments may stay: those behind code that have quotation marks in them. Prose between blocks is
    `PROSE`, whatever it says.
    """
    return _NO_CODE.sub(_kept, f"\n{text}\n")


def _kept(found: re.Match[str]) -> str:
    if found["prose"]:
        return PROSE
    return found[0] if found[0][0] in "\"'#" else ""
